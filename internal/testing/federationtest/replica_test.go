package federationtest_test

import (
	"slices"
	"testing"
	"time"

	"agentsite/internal/federation"
	"agentsite/internal/record"
	"agentsite/internal/testing/federationtest"
	"agentsite/internal/testing/recordtest"
)

var (
	_ federation.Replica  = (*federationtest.Replica)(nil)
	_ federation.Registry = (*federationtest.Registry)(nil)
)

func TestReplica_HoldsWhatItsGateAdmits(t *testing.T) {
	t.Parallel()
	ctx, p := t.Context(), recordtest.NewPortal("one")
	var m federationtest.Replica
	gate, err := record.NewGate(recordtest.Network, &m)
	if err != nil {
		t.Fatal(err)
	}
	admit := func(b record.Body) *record.Record {
		t.Helper()
		r := p.Sign(t, b)
		if _, fresh, err := gate.Admit(ctx, r.Wire, recordtest.Start); err != nil || !fresh {
			t.Fatal(fresh, err)
		}
		return r
	}
	card := admit(p.Card())
	var tree record.Tree
	x, _ := admit(p.Agent("x")), admit(p.Agent("y"))
	tree.Apply(x)
	gone := admit(p.Gone("y"))
	head := admit(p.Head(&tree))
	if b, _ := m.Card(ctx, p.ID); string(b) != string(card.Wire) {
		t.Error("the card is another")
	}
	if b, _ := m.Head(ctx, p.ID); string(b) != string(head.Wire) {
		t.Error("the head is another")
	}
	if list, _ := m.Log(ctx, p.ID, 0, 10, 1<<20); len(list) != 2 || string(list[0]) != string(x.Wire) || string(list[1]) != string(gone.Wire) {
		t.Errorf("the log has %d entries", len(list))
	}
	if list, _ := m.Log(ctx, p.ID, x.Seq, 10, 1); len(list) != 1 || string(list[0]) != string(gone.Wire) {
		t.Errorf("the log after %d has %d entries", x.Seq, len(list))
	}
	var leaves []record.Hash
	m.Leaves(ctx, p.ID, func(_, hash record.Hash) bool { leaves = append(leaves, hash); return true })
	if !slices.Equal(leaves, []record.Hash{x.Hash}) {
		t.Errorf("leaves %v", leaves)
	}
	if n, size, _ := m.Holding(ctx, p.ID); n != 1 || size != int64(len(x.Wire)) {
		t.Errorf("holds %d agents of %d bytes", n, size)
	}
	if rows, _ := m.Heads(ctx); len(rows) != 1 || rows[0].Version != head.Version() || rows[0].Count != 1 {
		t.Errorf("heads %v", rows)
	}
	if err := m.Drop(ctx, p.ID); err != nil {
		t.Fatal(err)
	}
	if n, _, _ := m.Holding(ctx, p.ID); n != 0 {
		t.Errorf("%d agents are left", n)
	}
	if _, fresh, err := gate.Admit(ctx, x.Wire, recordtest.Start); err != nil || !fresh {
		t.Error("what was dropped does not come back", err)
	}
	if s, _ := m.Seen(ctx, head.Slot()); s.Version != head.Version() {
		t.Error("the version of the head was forgotten")
	}
	if err := m.Sweep(ctx, recordtest.Start.Add(400*24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if s, _ := m.Seen(ctx, head.Slot()); s.Version != head.Version() {
		t.Error("the version of the head was forgotten by a sweep")
	}
}

func TestRegistry_KnowsWhomItLearnedOf(t *testing.T) {
	t.Parallel()
	var g federationtest.Registry
	p := recordtest.NewPortal("one")
	g.Fault(p.ID, "signature")
	g.Learned(p.Card(), false)
	g.Fault(p.ID, "signature")
	g.Seen(p.ID, time.Second)
	list := g.Portals(t.Context())
	if len(list) != 1 || list[0].Host() != "one.example" || list[0].Faults["signature"] != 1 || list[0].RTT != time.Second || list[0].State != federation.Active {
		t.Errorf("%+v", list)
	}
	g.Say(p.ID, federation.Decision{Reason: "no"})
	if g.Decide(t.Context(), p.ID, "").In || !g.Decide(t.Context(), recordtest.NewPortal("two").ID, "").In {
		t.Error("decisions are mixed up")
	}
}

func TestReplica_DoesAllThatADatabaseMust(t *testing.T) {
	t.Parallel()
	federationtest.Check(t, func(*testing.T) federation.Replica { return new(federationtest.Replica) })
}
