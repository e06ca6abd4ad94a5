package record_test

import (
	"testing"
	"time"

	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
)

// TestGate_VouchedNeedsNoAcquaintance is of values of the DHT: a card and what
// its portal signed, of a portal that nobody here met.
func TestGate_VouchedNeedsNoAcquaintance(t *testing.T) {
	met, stranger := recordtest.NewPortal("met"), recordtest.NewPortal("stranger")
	gate, mem := recordtest.Gate(t, met)
	now := time.UnixMilli(stranger.Now)
	provides := func(p *recordtest.Portal) *record.Provider {
		return &record.Provider{Header: p.Header(time.Hour.Milliseconds()), Kind: record.ProvidesAgent, Key: record.AgentKey("x"), HeadSeq: 1, Count: 1}
	}
	card, rec := stranger.Sign(t, stranger.Card()), stranger.Sign(t, provides(stranger))
	c, r, err := gate.Vouched(t.Context(), card.Wire, rec.Wire, now)
	if err != nil || c.Portal != stranger.ID || r.Hash != rec.Hash {
		t.Fatal(c, r, err)
	}
	if s, err := mem.Standing(t.Context(), stranger.ID); err != nil || s.Ring != nil {
		t.Error("its card was taken in", err)
	}
	if c, r, err := gate.Vouched(t.Context(), card.Wire, nil, now); err != nil || c == nil || r != nil {
		t.Error("a card alone:", c, r, err)
	}

	forged, err := record.Sign(recordtest.Network, provides(stranger), met.Op)
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		card, wire []byte
		at         time.Time
		want       record.Reason
	}{
		"another's key":        {card.Wire, forged.Wire, now, record.NoKey},
		"altered":              {card.Wire, recordtest.Bent(rec.Wire), now, record.BadSignature},
		"altered card":         {recordtest.Bent(card.Wire), rec.Wire, now, record.BadSignature},
		"another's card":       {met.Sign(t, met.Card()).Wire, rec.Wire, now, record.NotConsistent},
		"no card":              {rec.Wire, rec.Wire, now, record.NotConsistent},
		"a card as the record": {card.Wire, card.Wire, now, record.NotConsistent},
		"over":                 {card.Wire, rec.Wire, now.Add(2 * time.Hour), record.Expired},
	} {
		if _, _, err := gate.Vouched(t.Context(), x.card, x.wire, x.at); record.ReasonOf(err) != x.want {
			t.Errorf("%s: %v, want %s", name, err, x.want)
		}
	}
}

// TestGate_VouchedKnowsTheNewerCard has an old card come that lists a key which
// the portal has dropped since: what that key signed counts no more.
func TestGate_VouchedKnowsTheNewerCard(t *testing.T) {
	p := recordtest.NewPortal("one")
	old := p.Sign(t, p.Card())
	stolen := p.Op
	gate, _ := recordtest.Gate(t, p)
	now := time.UnixMilli(p.Now)
	provides := func() *record.Provider {
		return &record.Provider{Header: p.Header(time.Hour.Milliseconds()), Kind: record.ProvidesAgent, Key: record.AgentKey("x"), HeadSeq: 1, Count: 1}
	}
	before := p.Sign(t, provides())
	p.Op = recordtest.Key("the next")
	if _, _, err := gate.Admit(t.Context(), p.Sign(t, p.Card()).Wire, now); err != nil {
		t.Fatal(err)
	}
	if _, _, err := gate.Vouched(t.Context(), old.Wire, before.Wire, now); record.ReasonOf(err) != record.NoKey {
		t.Error("signed before:", err)
	}
	late, err := record.Sign(recordtest.Network, provides(), stolen)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := gate.Vouched(t.Context(), old.Wire, late.Wire, now); record.ReasonOf(err) != record.NoKey {
		t.Error("signed by whoever has it now:", err)
	}
	if _, _, err := gate.Vouched(t.Context(), old.Wire, nil, now); record.ReasonOf(err) != record.Stale {
		t.Error("the old card alone:", err)
	}
	// What the new key signed holds, whichever card came with it.
	if _, _, err := gate.Vouched(t.Context(), old.Wire, p.Sign(t, provides()).Wire, now); err != nil {
		t.Error("signed by the new one:", err)
	}
}

// TestGate_VouchedTakesAnOlderHead has a head come that is not over, though a
// newer one was seen: a value of the DHT is stored less often than heads are
// signed.
func TestGate_VouchedTakesAnOlderHead(t *testing.T) {
	p := recordtest.NewPortal("one")
	gate, _ := recordtest.Gate(t, p)
	now := time.UnixMilli(p.Now)
	card := p.Sign(t, p.Card())
	old := p.Sign(t, p.Head(new(record.Tree)))
	for _, wire := range [][]byte{card.Wire, p.Sign(t, p.Head(new(record.Tree))).Wire} {
		if _, _, err := gate.Admit(t.Context(), wire, now); err != nil && record.ReasonOf(err) != record.Stale {
			t.Fatal(err)
		}
	}
	if _, r, err := gate.Vouched(t.Context(), card.Wire, old.Wire, now); err != nil || r.Hash != old.Hash {
		t.Error(r, err)
	}
	if _, _, err := gate.Vouched(t.Context(), card.Wire, recordtest.Bent(old.Wire), now); record.ReasonOf(err) != record.BadSignature {
		t.Error("altered:", err)
	}
	if _, _, err := gate.Vouched(t.Context(), card.Wire, old.Wire, now.Add(49*time.Hour)); err == nil {
		t.Error("it is over, and was taken")
	}
}

// TestGate_CurrentIsTheCardThatIsHeld is of cards that are not read each time: a
// newer one counts at once, and one that came is no more than what it was before.
func TestGate_CurrentIsTheCardThatIsHeld(t *testing.T) {
	p := recordtest.NewPortal("one")
	gate, mem := recordtest.Gate(t)
	now := time.UnixMilli(p.Now)
	if c, s, err := gate.Current(t.Context(), p.ID); c != nil || s.Ring != nil || err != nil {
		t.Error("of a portal that nobody knows:", c, err)
	}
	old := p.Sign(t, p.Card())
	rec := p.Sign(t, &record.Provider{Header: p.Header(time.Hour.Milliseconds()), Kind: record.ProvidesAgent, Key: record.AgentKey("x"), HeadSeq: 1, Count: 1})
	vouched := func(card []byte, at time.Time) error {
		t.Helper()
		_, _, err := gate.Vouched(t.Context(), card, rec.Wire, at)
		return err
	}
	if err := vouched(old.Wire, now); err != nil {
		t.Fatal(err)
	}
	if c, _, _ := gate.Current(t.Context(), p.ID); c != nil {
		t.Error("a card that only came along is held")
	}
	admit := func(wire []byte) {
		t.Helper()
		if _, _, err := gate.Admit(t.Context(), wire, now); err != nil {
			t.Fatal(err)
		}
	}
	admit(old.Wire)
	first, _, err := gate.Current(t.Context(), p.ID)
	if err != nil || first == nil || first.Seq != old.Seq {
		t.Fatal(first, err)
	}
	if again, _, _ := gate.Current(t.Context(), p.ID); again != first {
		t.Error("it is read each time")
	}
	for range 2 { // read, and as it is remembered
		if err := vouched(old.Wire, now); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := gate.Vouched(t.Context(), old.Wire, nil, now.Add(200*24*time.Hour)); record.ReasonOf(err) != record.Expired {
		t.Errorf("by a card that is over: %v", err)
	}
	// The key that signed is thrown away.
	p.Op = recordtest.Key("the next")
	next := p.Sign(t, p.Card())
	admit(next.Wire)
	if err := vouched(old.Wire, now); record.ReasonOf(err) != record.NoKey {
		t.Errorf("by a key that was thrown away: %v", err)
	}
	if c, _, err := gate.Current(t.Context(), p.ID); err != nil || c.Seq != next.Seq {
		t.Error("the old card is current", err)
	}
	// Nothing of it counts once its portal is quarantined.
	if err := mem.Quarantine(t.Context(), record.Conflict{Slot: next.Slot(), Version: next.Version(), Lower: next.Wire, Higher: next.Wire}); err != nil {
		t.Fatal(err)
	}
	if err := vouched(next.Wire, now); record.ReasonOf(err) != record.Quarantined {
		t.Errorf("of a portal in quarantine: %v", err)
	}
}
