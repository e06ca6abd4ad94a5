package app

import (
	"context"
	"testing"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
)

// Lied makes a portal known that was proved to lie, and returns its id.
func (p *Portal) Lied(t testing.TB) string {
	t.Helper()
	liar := recordtest.NewPortal("liar")
	liar.Now = clock.Now().UnixMilli()
	liar.Epoch = liar.Now - recordtest.Hour
	card := liar.Card()
	card.Origin = "https://liar.example"
	one := liar.Head(new(record.Tree))
	other := *one
	other.Expires -= time.Minute.Milliseconds()
	for _, b := range []record.Body{card, one, &other} {
		key := liar.Op
		if b == record.Body(card) {
			key = liar.Root
		}
		r, err := record.Sign(p.set.NetworkName, b, key)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := p.node.Gate.Admit(context.Background(), r.Wire, clock.Now()); err != nil && record.ReasonOf(err) != record.Equivocation {
			t.Fatal(err)
		}
	}
	p.peers.Learned(card, true)
	p.peers.Fault(liar.ID, string(record.Equivocation))
	return string(liar.ID)
}
