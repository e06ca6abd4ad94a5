package record_test

import (
	"testing"

	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
)

func TestHead_CoversWhatItsTreeHas(t *testing.T) {
	t.Parallel()
	p := recordtest.NewPortal("one")
	var tree record.Tree
	a, gone, late := p.Sign(t, p.Agent("a")), p.Sign(t, p.Agent("gone")), p.Agent("late")
	for _, r := range []*record.Record{a, gone, p.Sign(t, p.Gone("gone")), p.Sign(t, p.Head(&tree))} {
		tree.Apply(r) // a head changes nothing
	}
	h := p.Head(&tree)
	if h.Count != 1 || !h.Describes(&tree) {
		t.Errorf("the head counts %d", h.Count)
	}
	id := func(name string) string { return record.AgentID(p.ID, name) }
	if !h.Covers(a, tree.Prove(record.AgentKey(id("a")))) {
		t.Error("the head does not cover its agent")
	}
	if h.Covers(gone, tree.Prove(record.AgentKey(id("gone")))) || !h.Lacks(id("gone"), tree.Prove(record.AgentKey(id("gone")))) {
		t.Error("the head covers what is gone")
	}
	if h.Lacks(id("a"), tree.Prove(record.AgentKey(id("gone")))) || h.Lacks(id("a"), tree.Prove(record.AgentKey(id("a")))) {
		t.Error("a proof of another agent hides one")
	}
	late.Header = p.Header(hour)
	tree.Apply(p.Sign(t, late))
	if h.Describes(&tree) || h.Covers(p.Sign(t, late), tree.Prove(record.AgentKey(id("late")))) {
		t.Error("the head describes a later tree")
	}
}

// A portal may put into its tree what it likes; a head covers what it may.
func TestHead_CoversNothingOutOfPlace(t *testing.T) {
	t.Parallel()
	p, q := recordtest.NewPortal("one"), recordtest.NewPortal("two")
	old := *p
	old.Epoch--
	right, gone, foreign, before := p.Sign(t, p.Agent("x")), p.Sign(t, p.Gone("x")), q.Sign(t, q.Agent("x")), old.Sign(t, old.Agent("x"))
	seq := p.Seq + 1
	p.Seq++ // of the head
	after := p.Sign(t, p.Agent("x"))
	for name, c := range map[string]struct {
		r    *record.Record
		key  record.Hash
		want bool
	}{
		"in its place":             {right, record.AgentKey(record.AgentID(p.ID, "x")), true},
		"at another agent's key":   {right, record.AgentKey(record.AgentID(p.ID, "y")), false},
		"a tombstone":              {gone, record.AgentKey(record.AgentID(p.ID, "x")), false},
		"another portal's":         {foreign, record.AgentKey(record.AgentID(q.ID, "x")), false},
		"of an epoch that is over": {before, record.AgentKey(record.AgentID(p.ID, "x")), false},
		"signed after the head":    {after, record.AgentKey(record.AgentID(p.ID, "x")), false},
	} {
		var tree record.Tree
		tree.Set(c.key, c.r.Hash)
		tree.Set(record.Hash{}, record.Hash{})
		h := p.Head(&tree)
		h.Seq = seq
		if h.Covers(c.r, tree.Prove(c.key)) != c.want {
			t.Errorf("%s: covered %v", name, !c.want)
		}
		if h.Count++; h.Describes(&tree) {
			t.Errorf("%s: a head of one more describes the tree", name)
		}
	}
}

func TestReadLog_RefusesWhatDoesNotFollow(t *testing.T) {
	t.Parallel()
	p, q := recordtest.NewPortal("one"), recordtest.NewPortal("two")
	var tree record.Tree
	old := *p
	old.Epoch--
	first, second := p.Sign(t, p.Agent("a")), p.Sign(t, p.Gone("b"))
	head := p.Head(&tree)
	after := p.Sign(t, p.Agent("c"))
	q.Seq = 1
	old.Seq = 1
	l := record.ReadLog(head, 0)
	for _, c := range []struct {
		r  *record.Record
		ok bool
	}{{q.Sign(t, q.Agent("a")), false}, {old.Sign(t, old.Agent("a")), false}, {p.Sign(t, p.Head(&tree)), false}, {after, false}, {first, true}, {first, false}, {second, true}, {first, false}, {after, false}} {
		if err := l.Next(c.r); (err == nil) != c.ok || err != nil && record.ReasonOf(err) != record.NotConsistent {
			t.Errorf("%s %d: %v", c.r.Type, c.r.Seq, err)
		}
	}
	if l.After() != second.Seq {
		t.Errorf("goes on after %d", l.After())
	}
}
