package record_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
)

func TestGate_CheckTakesNothingIn(t *testing.T) {
	p, other := recordtest.NewPortal("one"), recordtest.NewPortal("two")
	gate, mem := recordtest.Gate(t, p)
	now := time.UnixMilli(p.Now)
	a := p.Sign(t, p.Agent("x"))
	if r, err := gate.Check(t.Context(), a.Wire, now); err != nil || r.Hash != a.Hash {
		t.Fatal(r, err)
	}
	if seen, err := mem.Seen(t.Context(), a.Slot()); err != nil || seen != (record.Seen{}) {
		t.Error("it was taken in", seen, err)
	}
	forged := p.Agent("x")
	forged.Title = "Another"
	wrong, err := record.Sign(recordtest.Network, forged, other.Op)
	if err != nil {
		t.Fatal(err)
	}
	_, sign, _ := strings.Cut(string(a.Wire), `"s":"`)
	other1 := "A"
	if sign[0] == 'A' {
		other1 = "B"
	}
	for name, c := range map[string]struct {
		wire []byte
		at   time.Time
		want record.Reason
	}{
		"another's key":  {wrong.Wire, now, record.NoKey},
		"unknown portal": {other.Sign(t, other.Agent("x")).Wire, now, record.NoPortal},
		"expired":        {a.Wire, now.Add(31 * 24 * time.Hour), record.Expired},
		"no agent":       {p.Sign(t, p.Head(new(record.Tree))).Wire, now, record.NotConsistent},
		"altered":        {bytes.Replace(a.Wire, []byte(`"s":"`+sign[:1]), []byte(`"s":"`+other1), 1), now, record.BadSignature},
	} {
		if _, err := gate.Check(t.Context(), c.wire, c.at); record.ReasonOf(err) != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	newer := p.Sign(t, p.Agent("x"))
	if _, _, err := gate.Admit(t.Context(), newer.Wire, now); err != nil {
		t.Fatal(err)
	}
	if _, err := gate.Check(t.Context(), a.Wire, now); record.ReasonOf(err) != record.Stale {
		t.Error("older than what is held:", err)
	}
}
