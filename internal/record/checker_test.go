package record_test

import (
	"testing"
	"time"

	"agentsite/internal/record"
	"agentsite/internal/testing/federationtest"
	"agentsite/internal/testing/recordtest"
)

func TestChecker_RemembersWhatNeverChanges(t *testing.T) {
	t.Parallel()
	mem := new(federationtest.Replica)
	gate, err := record.NewGate(recordtest.Network, mem)
	if err != nil {
		t.Fatal(err)
	}
	p := recordtest.NewPortal("one")
	now := time.UnixMilli(p.Now)
	admit := func(b record.Body) {
		t.Helper()
		if _, _, err := gate.Admit(t.Context(), p.Sign(t, b).Wire, now); err != nil {
			t.Fatal(err)
		}
	}
	admit(p.Card())
	k := record.NewChecker(gate)
	good := p.Sign(t, p.Agent("x"))
	bent := recordtest.Bent(good.Wire)
	stranger := *p
	stranger.Op = recordtest.Key("nobody's")
	forged := stranger.Sign(t, good.Body)
	head := p.Sign(t, p.Head(new(record.Tree)))
	var first *record.Record
	check := func(now time.Time, want ...record.Reason) {
		t.Helper()
		got, err := k.Check(t.Context(), [][]byte{good.Wire, bent, forged.Wire, head.Wire, nil}, now)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range got {
			if record.ReasonOf(r.Err) != want[i] || (r.Err == nil) != (r.Record != nil) {
				t.Errorf("%d: %v, want %q", i, r.Err, want[i])
			}
		}
		if first == nil {
			first = got[0].Record
		} else if r := got[0].Record; r != nil && r != first {
			t.Error("it was read again")
		}
	}
	malformed := func() record.Reason { _, err := record.Open(recordtest.Network, nil); return record.ReasonOf(err) }()
	for range 2 { // the second time the record and its signature are known
		check(now, "", record.BadSignature, record.NoKey, record.NotConsistent, malformed)
	}
	check(now.Add(400*24*time.Hour), record.Expired, record.Expired, record.Expired, record.NotConsistent, malformed)
	old := p.Op
	p.Op = recordtest.Key("the next")
	admit(p.Card())
	check(now, record.NoKey, record.NoKey, record.NoKey, record.NotConsistent, malformed)
	p.Op = old
	if seen, _ := mem.Seen(t.Context(), good.Slot()); seen != (record.Seen{}) {
		t.Error("it was taken in")
	}
}
