package federationtest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/internal/federation"
	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
)

// Check runs the tests that every federation.Replica must pass, each with a new empty one from open.
func Check(t *testing.T, open func(t *testing.T) federation.Replica) {
	for name, test := range map[string]func(*bench){
		"knows nothing at first":              checkEmpty,
		"keeps in the place of what it said":  checkSwap,
		"keeps many in order":                 checkMany,
		"reads what it holds":                 checkReads,
		"bounds a log":                        checkLog,
		"takes keys from a card":              checkCard,
		"never forgets cards and heads":       checkNever,
		"remembers versions while it must":    checkSweep,
		"quarantines with proof":              checkQuarantine,
		"takes in again what it let go":       checkAgain,
		"lets go in steps":                    checkLetGo,
		"ends an epoch":                       checkEpoch,
		"numbers the others":                  checkOthers,
		"stands many ways at once":            checkAtOnce,
		"is asked for many as for one":        checkBatch,
		"tells portals apart":                 checkApart,
		"lists an agent of two portals twice": checkPortable,
		"shows what a head covers":            checkWhole,
		"lets go of what a newer one awaits":  checkReplaced,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := open(t)
			gate, err := record.NewGate(recordtest.Network, m)
			if err != nil {
				t.Fatal(err)
			}
			test(&bench{T: t, m: m, gate: gate, p: recordtest.NewPortal("one")})
		})
	}
}

// bench is one running test with its replica, the gate in front of it, and the portal p that signs
// records.
type bench struct {
	*testing.T
	m    federation.Replica
	gate *record.Gate
	p    *recordtest.Portal
}

// admit signs body as portal p and admits it. The record must be new.
func (b *bench) admit(body record.Body) *record.Record { b.Helper(); return b.admitOf(b.p, body) }

func (b *bench) admitOf(p *recordtest.Portal, body record.Body) *record.Record {
	b.Helper()
	r := p.Sign(b, body)
	b.fresh(r, p.Now)
	return r
}

func (b *bench) fresh(r *record.Record, now int64) {
	b.Helper()
	if _, fresh, err := b.gate.Admit(b.Context(), r.Wire, time.UnixMilli(now)); err != nil || !fresh {
		b.Fatalf("%s of seq %d: fresh %v, %v", r.Type, r.Seq, fresh, err)
	}
}

func (b *bench) refused(r *record.Record, now int64, want record.Reason) {
	b.Helper()
	if _, fresh, err := b.gate.Admit(b.Context(), r.Wire, time.UnixMilli(now)); fresh || record.ReasonOf(err) != want {
		b.Errorf("%s of seq %d: fresh %v, %v; want %q", r.Type, r.Seq, fresh, err, want)
	}
}

func (b *bench) is(what string, got []byte, err error, want []byte) {
	b.Helper()
	if err != nil || !bytes.Equal(got, want) || (got == nil) != (want == nil) {
		b.Errorf("%s: %d bytes, %v; want %d", what, len(got), err, len(want))
	}
}

func (b *bench) agents(portal record.PortalID) (list []string) {
	b.Helper()
	if err := b.m.Agents(b.Context(), portal, func(w []byte) bool { list = append(list, string(w)); return true }); err != nil {
		b.Fatal(err)
	}
	return list
}

func (b *bench) leaves(portal record.PortalID) *record.Tree {
	b.Helper()
	var tree record.Tree
	var last record.Hash
	err := b.m.Leaves(b.Context(), portal, func(key, hash record.Hash) bool {
		if bytes.Compare(last[:], key[:]) >= 0 {
			b.Error("leaves are not in order")
		}
		last = key
		tree.Set(key, hash)
		return true
	})
	if err != nil {
		b.Fatal(err)
	}
	return &tree
}

func (b *bench) log(after int64) [][]byte {
	b.Helper()
	list, err := b.m.Log(b.Context(), b.p.ID, after, 1000, 1<<20)
	if err != nil {
		b.Fatal(err)
	}
	return list
}

func (b *bench) holds(portal record.PortalID, want int) {
	b.Helper()
	if n, size, err := b.m.Holding(b.Context(), portal); err != nil || n != want || want > 0 && size <= 0 {
		b.Errorf("holds %d agents of %d bytes (%v), want %d", n, size, err, want)
	}
	if list := b.agents(portal); len(list) != want {
		b.Errorf("lists %d agents, want %d", len(list), want)
	}
	if n := b.leaves(portal).Len(); n != want {
		b.Errorf("has %d leaves, want %d", n, want)
	}
}

func (b *bench) convicted(want ...record.PortalID) {
	b.Helper()
	if got, err := b.m.Convicted(b.Context()); err != nil || !slices.Equal(got, want) {
		b.Errorf("convicted are %v (%v), want %v", got, err, want)
	}
}

func (b *bench) sweep(now int64) {
	b.Helper()
	if err := b.m.Sweep(b.Context(), time.UnixMilli(now)); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) head(tree *record.Tree) *record.Record { b.Helper(); return b.admit(b.p.Head(tree)) }

func checkEmpty(b *bench) {
	ctx, id := b.Context(), b.p.ID
	if s, err := b.m.Standing(ctx, id); err != nil || s != (record.Standing{}) {
		b.Error(s, err)
	}
	for _, typ := range []record.Type{record.TypeCard, record.TypeHead, record.TypeAgent, record.TypeAttest} {
		slot := record.Slot{Type: typ, Portal: id, About: "x"}
		if s, err := b.m.Seen(ctx, slot); err != nil || s != (record.Seen{}) {
			b.Error(typ, s, err)
		}
		w, err := b.m.Held(ctx, slot)
		b.is("held", w, err, nil)
	}
	w, err := b.m.Card(ctx, id)
	b.is("card", w, err, nil)
	w, err = b.m.Agent(ctx, id, record.Hash{})
	b.is("agent", w, err, nil)
	if list, err := b.m.Heads(ctx); err != nil || len(list) != 0 {
		b.Error(list, err)
	}
	b.holds(id, 0)
	b.holds("", 0)
	if c, err := b.m.Quarantined(ctx, id); c != nil || err != nil {
		b.Error(c, err)
	}
	b.convicted()
	if at, err := b.m.Position(ctx, id); err != nil || at != (record.Version{}) {
		b.Error(at, err)
	}
	for _, err := range []error{b.m.Drop(ctx, id), b.m.Omit(ctx, id, []record.Hash{{1}}), b.m.Release(ctx, id), b.m.Sweep(ctx, recordtest.Start)} {
		if err != nil {
			b.Error(err)
		}
	}
}

func checkSwap(b *bench) {
	ctx := b.Context()
	b.admit(b.p.Card())
	for _, bodies := range [][]record.Body{
		{b.p.Agent("x"), b.p.Agent("x"), b.p.Agent("x")},
		{b.p.Head(new(record.Tree)), b.p.Head(new(record.Tree)), b.p.Head(new(record.Tree))},
	} {
		var rs [3]*record.Record
		for i, body := range bodies {
			rs[i] = b.p.Sign(b, body)
		}
		slot := rs[0].Slot()
		if ok, err := b.m.Keep(ctx, rs[0], record.Seen{}, 5); err != nil || !ok {
			b.Fatal(ok, err)
		}
		was, err := b.m.Seen(ctx, slot)
		if err != nil || was != (record.Seen{Version: rs[0].Version(), Hash: rs[0].Hash, Until: 5}) {
			b.Fatal(was, err)
		}
		if ok, err := b.m.Keep(ctx, rs[1], record.Seen{}, 5); err != nil || ok {
			b.Error("kept in the place of nothing", err)
		}
		if ok, err := b.m.Keep(ctx, rs[1], was, 6); err != nil || !ok {
			b.Error("not kept", err)
		}
		if ok, err := b.m.Keep(ctx, rs[2], was, 7); err != nil || ok {
			b.Error("kept in the place of what is there no more", err)
		}
		w, err := b.m.Held(ctx, slot)
		b.is("held", w, err, rs[1].Wire)
	}
	b.holds(b.p.ID, 1)
}

func checkMany(b *bench) {
	ctx := b.Context()
	b.admit(b.p.Card())
	var list []record.Keeping
	var want []bool
	for i := range 150 { // more than the replica processes in one transaction
		r := b.p.Sign(b, b.p.Agent(fmt.Sprint("a", i)))
		list, want = append(list, record.Keeping{Record: r, Until: r.Expires}), append(want, true)
	}
	again := b.p.Sign(b, b.p.Agent("a7"))
	head := b.p.Sign(b, b.p.Head(new(record.Tree)))
	list = append(list, record.Keeping{Record: again, Until: 1}, record.Keeping{Record: head})
	want = append(want, false, true)
	kept, err := b.m.KeepAll(ctx, list)
	if err != nil || !slices.Equal(kept, want) {
		b.Fatal(kept, err)
	}
	var slots []record.Slot
	for _, k := range list[:150] {
		slots = append(slots, k.Record.Slot())
	}
	slots = append(slots, record.Slot{Type: record.TypeAgent, Portal: b.p.ID, About: "nobody"}, head.Slot())
	seen, err := b.m.SeenAll(ctx, slots)
	if err != nil || len(seen) != len(slots) {
		b.Fatal(len(seen), err)
	}
	for i, k := range list[:150] {
		if seen[i].Hash != k.Record.Hash || seen[i].Until != k.Until || seen[i].Void {
			b.Errorf("%d: %v", i, seen[i])
		}
	}
	if seen[150] != (record.Seen{}) || seen[151].Hash != head.Hash {
		b.Error(seen[150:])
	}
	if ok, err := b.m.Keep(ctx, again, seen[7], 1); err != nil || !ok {
		b.Error(ok, err)
	}
	b.holds(b.p.ID, 150)
	if _, err := b.m.KeepAll(ctx, nil); err != nil {
		b.Error(err)
	}
}

func checkReads(b *bench) {
	ctx := b.Context()
	card := b.admit(b.p.Card())
	var tree record.Tree
	x, y := b.admit(b.p.Agent("x")), b.admit(b.p.Agent("y"))
	z := b.admit(b.p.Agent("z"))
	gone := b.admit(b.p.Gone("y"))
	for _, r := range []*record.Record{x, y, z, gone} {
		tree.Apply(r)
	}
	head := b.head(&tree)
	w, err := b.m.Card(ctx, b.p.ID)
	b.is("card", w, err, card.Wire)
	w, err = b.m.Head(ctx, b.p.ID)
	b.is("head", w, err, head.Wire)
	w, err = b.m.Agent(ctx, b.p.ID, record.AgentKey(string(b.p.ID)+"/x"))
	b.is("agent", w, err, x.Wire)
	w, err = b.m.Held(ctx, y.Slot())
	b.is("tombstone", w, err, gone.Wire)
	b.holds(b.p.ID, 2)
	if !head.Body.(*record.Head).Describes(b.leaves(b.p.ID)) {
		b.Error("the head does not describe the leaves")
	}
	list := b.log(0)
	if len(list) != 3 || !bytes.Equal(list[0], x.Wire) || !bytes.Equal(list[1], z.Wire) || !bytes.Equal(list[2], gone.Wire) {
		b.Errorf("a log of %d", len(list))
	}
	rows, err := b.m.Heads(ctx)
	if err != nil || len(rows) != 1 || rows[0] != (federation.HeadRow{Portal: b.p.ID, Version: head.Version(), Issued: head.Issued, Expires: head.Expires, Count: 2}) {
		b.Error(rows, err)
	}
	n := 0
	if err := b.m.Agents(ctx, "", func([]byte) bool { n++; return false }); err != nil || n != 1 {
		b.Errorf("goes on after false: %d, %v", n, err)
	}
	at := record.Version{Epoch: 7, Seq: 9}
	if err := b.m.SetPosition(ctx, b.p.ID, at); err != nil {
		b.Error(err)
	}
	if got, err := b.m.Position(ctx, b.p.ID); err != nil || got != at {
		b.Error(got, err)
	}
}

func checkLog(b *bench) {
	b.admit(b.p.Card())
	var rs []*record.Record
	for i := range 20 {
		rs = append(rs, b.admit(b.p.Agent(fmt.Sprint("a", i))))
	}
	if list := b.log(0); len(list) != 0 {
		b.Errorf("a log of %d without a head", len(list))
	}
	b.head(new(record.Tree))
	one := len(rs[0].Wire)
	for _, c := range []struct{ limit, bytes, want int }{{5, 1 << 20, 5}, {100, 1, 1}, {100, 3*one + one/2, 3}, {100, 1 << 20, 18}} {
		list, err := b.m.Log(b.Context(), b.p.ID, rs[1].Seq, c.limit, c.bytes)
		if err != nil || len(list) != c.want || !bytes.Equal(list[0], rs[2].Wire) {
			b.Errorf("limit %d, %d bytes: %d, %v", c.limit, c.bytes, len(list), err)
		}
	}
}

func checkCard(b *bench) {
	ctx := b.Context()
	b.admit(b.p.Card())
	x := b.admit(b.p.Agent("x"))
	word := b.admit(&record.Attest{Header: b.p.Header(recordtest.Day), Subject: recordtest.NewPortal("two").ID, Verdict: record.Vouch})
	old := *b.p
	b.p.Op = recordtest.Key("one op, the next")
	b.admit(b.p.Card())
	s, err := b.m.Standing(ctx, b.p.ID)
	if err != nil || !s.Ring.Has(b.p.Key().ID) || s.Ring.Has(old.Key().ID) {
		b.Error("the ring is not the new card's", err)
	}
	for _, r := range []*record.Record{x, word} {
		w, err := b.m.Held(ctx, r.Slot())
		b.is("what is void", w, err, nil)
		if seen, err := b.m.Seen(ctx, r.Slot()); err != nil || seen.Hash != r.Hash || !seen.Void {
			b.Error(seen, err)
		}
	}
	b.holds(b.p.ID, 0)
	// A record that was verified before the new card and stored after it must be refused, too.
	old.Seq = b.p.Seq
	late := old.Sign(b, old.Agent("late"))
	if ok, err := b.m.Keep(ctx, late, record.Seen{}, 0); err != nil || ok {
		b.Error("kept what no key of the card signed", err)
	}
	b.refused(x, b.p.Now, record.NoKey)
	// The hash covers the content only, so the same agent signed by the new key has the same hash.
	again := b.p.Sign(b, x.Body)
	if again.Hash != x.Hash {
		b.Fatal("the hash is of more than the words")
	}
	b.fresh(again, b.p.Now)
	b.holds(b.p.ID, 1)
}

func checkNever(b *bench) {
	card := b.admit(b.p.Card())
	old := b.p.Sign(b, b.p.Head(new(record.Tree)))
	now := b.admit(b.p.Head(new(record.Tree)))
	at := b.p.Now + 1000*recordtest.Day
	b.sweep(at)
	if err := b.m.Drop(b.Context(), b.p.ID); err != nil {
		b.Fatal(err)
	}
	b.sweep(at)
	for _, r := range []*record.Record{card, now} {
		if seen, err := b.m.Seen(b.Context(), r.Slot()); err != nil || seen.Version != r.Version() || seen.Hash != r.Hash || seen.Until != 0 {
			b.Errorf("%s: %v, %v", r.Type, seen, err)
		}
	}
	if s, err := b.m.Standing(b.Context(), b.p.ID); err != nil || s.Head != now.Version() {
		b.Error(s, err)
	}
	b.refused(old, b.p.Now, record.Stale)
}

func checkSweep(b *bench) {
	ctx := b.Context()
	b.admit(b.p.Card())
	x := b.admit(b.p.Agent("x"))
	brief := b.p.Agent("y")
	brief.Expires = brief.Issued + recordtest.Hour
	y := b.admit(brief)
	word := b.admit(&record.Attest{Header: b.p.Header(recordtest.Day), Subject: recordtest.NewPortal("two").ID, Verdict: record.Vouch})
	b.sweep(b.p.Now)
	b.holds(b.p.ID, 2)
	b.sweep(b.p.Now + 2*recordtest.Day)
	b.holds(b.p.ID, 1)
	for _, r := range []*record.Record{y, word} {
		if seen, err := b.m.Seen(ctx, r.Slot()); err != nil || seen.Hash != r.Hash || !seen.Void {
			b.Error("an expired record: ", seen, err)
		}
	}
	b.sweep(b.p.Now + 400*recordtest.Day)
	b.holds(b.p.ID, 0)
	for _, r := range []*record.Record{x, y, word} {
		if seen, err := b.m.Seen(ctx, r.Slot()); err != nil || seen != (record.Seen{}) {
			b.Error("is remembered for ever: ", seen, err)
		}
	}
}

// twins returns two different heads with one version, the one with the lower hash first.
func twins(b *bench) (lower, higher *record.Record) {
	b.Helper()
	lower = b.p.Sign(b, b.p.Head(new(record.Tree)))
	b.p.Seq--
	h := b.p.Head(new(record.Tree))
	h.Prev = record.Hash{1}
	higher = b.p.Sign(b, h)
	if bytes.Compare(lower.Hash[:], higher.Hash[:]) > 0 {
		lower, higher = higher, lower
	}
	return lower, higher
}

func checkQuarantine(b *bench) {
	ctx, id := b.Context(), b.p.ID
	b.admit(b.p.Card())
	x := b.p.Sign(b, b.p.Agent("x"))
	lower, higher := twins(b)
	b.fresh(higher, b.p.Now)
	b.refused(lower, b.p.Now, record.Equivocation)
	b.refused(x, b.p.Now, record.Quarantined)
	c, err := b.m.Quarantined(ctx, id)
	if err != nil || c == nil || c.Slot != lower.Slot() || c.Version != lower.Version() || !bytes.Equal(c.Lower, lower.Wire) || !bytes.Equal(c.Higher, higher.Wire) || c.Proof() == nil {
		b.Fatalf("%+v, %v", c, err)
	}
	b.convicted(id)
	w, err := b.m.Head(ctx, id)
	b.is("the head that stays", w, err, lower.Wire)
	if err := b.m.Drop(ctx, id); err != nil {
		b.Error(err)
	}
	b.sweep(b.p.Now + 1000*recordtest.Day)
	if c, err := b.m.Quarantined(ctx, id); err != nil || c == nil || len(c.Lower) == 0 || len(c.Higher) == 0 {
		b.Error("a sweep takes the proof away", err)
	}
	if err := b.m.Release(ctx, id); err != nil {
		b.Fatal(err)
	}
	if c, err := b.m.Quarantined(ctx, id); err != nil || c != nil {
		b.Error(c, err)
	}
	b.convicted()
	b.fresh(x, b.p.Now)
	// The operator settled this conflict, so it must not count again; another conflict must.
	b.refused(higher, b.p.Now, record.Equivocation)
	if s, err := b.m.Standing(ctx, id); err != nil || s.Quarantined {
		b.Error("the conflict that an operator settled counts again", err)
	}
	lower, higher = twins(b)
	b.fresh(lower, b.p.Now)
	b.refused(higher, b.p.Now, record.Equivocation)
	if s, err := b.m.Standing(ctx, id); err != nil || !s.Quarantined {
		b.Error("another conflict does not count", err)
	}
}

func checkAgain(b *bench) {
	ctx := b.Context()
	b.admit(b.p.Card())
	x, y := b.admit(b.p.Agent("x")), b.admit(b.p.Agent("y"))
	word := b.admit(&record.Attest{Header: b.p.Header(recordtest.Day), Subject: recordtest.NewPortal("two").ID, Verdict: record.Vouch})
	head := b.head(new(record.Tree))
	if err := b.m.SetPosition(ctx, b.p.ID, head.Version()); err != nil {
		b.Fatal(err)
	}
	if err := b.m.Omit(ctx, b.p.ID, []record.Hash{record.AgentKey(string(b.p.ID) + "/x"), {7}}); err != nil {
		b.Fatal(err)
	}
	b.holds(b.p.ID, 1)
	if at, err := b.m.Position(ctx, b.p.ID); err != nil || at != head.Version() {
		b.Error(at, err)
	}
	b.fresh(x, b.p.Now)
	b.holds(b.p.ID, 2)
	if err := b.m.Drop(ctx, b.p.ID); err != nil {
		b.Fatal(err)
	}
	b.holds(b.p.ID, 0)
	if at, err := b.m.Position(ctx, b.p.ID); err != nil || at != (record.Version{}) {
		b.Error(at, err)
	}
	w, err := b.m.Head(ctx, b.p.ID)
	b.is("head", w, err, head.Wire)
	all := [][]byte{x.Wire, y.Wire, word.Wire}
	got, err := b.gate.AdmitAll(ctx, all, time.UnixMilli(b.p.Now))
	for i := range all {
		if err != nil || !got[i].Fresh {
			b.Errorf("%d does not come back: %+v, %v", i, got, err)
		}
	}
	b.holds(b.p.ID, 2)
	for _, r := range []*record.Record{x, y, word} {
		if _, fresh, err := b.gate.Admit(ctx, r.Wire, time.UnixMilli(b.p.Now)); fresh || err != nil {
			b.Error("it is new each time", err)
		}
	}
	// The version must stay remembered after the record is dropped.
	if err := b.m.Drop(ctx, b.p.ID); err != nil {
		b.Fatal(err)
	}
	b.p.Seq = x.Seq - 1
	other := b.p.Agent("x")
	other.Title = "Another"
	b.refused(b.p.Sign(b, other), b.p.Now, record.Equivocation)
}

func checkLetGo(b *bench) {
	ctx := b.Context()
	b.admit(b.p.Card())
	var all [][]byte
	for i := range 10 {
		all = append(all, b.admit(b.p.Agent(fmt.Sprint("a", i))).Wire)
	}
	all = append(all, b.admit(b.p.Gone("a3")).Wire)
	word := b.admit(&record.Attest{Header: b.p.Header(recordtest.Day), Subject: recordtest.NewPortal("two").ID, Verdict: record.Vouch})
	head := b.head(new(record.Tree))
	if err := b.m.SetPosition(ctx, b.p.ID, head.Version()); err != nil {
		b.Fatal(err)
	}
	for i, want := range []bool{false, false, true, true} {
		if done, err := b.m.LetGo(ctx, b.p.ID, 4); err != nil || done != want {
			b.Error(i, done, err)
		}
		if at, err := b.m.Position(ctx, b.p.ID); err != nil || at != (record.Version{}) {
			b.Error("what is left passes for the whole", at, err)
		}
	}
	b.holds(b.p.ID, 0)
	if list := b.log(0); len(list) != 0 {
		b.Errorf("%d entries are left", len(list))
	}
	w, err := b.m.Held(ctx, word.Slot())
	b.is("what else it said", w, err, word.Wire)
	if done, err := b.m.LetGo(ctx, recordtest.NewPortal("two").ID, 4); err != nil || !done {
		b.Error("of nobody", done, err)
	}
	got, err := b.gate.AdmitAll(ctx, all[9:], time.UnixMilli(b.p.Now))
	for i := range got {
		if err != nil || !got[i].Fresh {
			b.Errorf("%d does not come back: %+v, %v", i, got, err)
		}
	}
	b.holds(b.p.ID, 1)
}

func checkEpoch(b *bench) {
	b.admit(b.p.Card())
	b.admit(b.p.Agent("x"))
	b.admit(b.p.Agent("y"))
	b.head(new(record.Tree))
	b.p.Epoch, b.p.Seq = b.p.Epoch+1, 0
	z := b.admit(b.p.Agent("z"))
	b.holds(b.p.ID, 3)
	b.head(new(record.Tree))
	b.holds(b.p.ID, 1)
	if list := b.log(0); len(list) != 1 || !bytes.Equal(list[0], z.Wire) {
		b.Errorf("a log of %d", len(list))
	}
	b.admit(b.p.Agent("x"))
	b.holds(b.p.ID, 2)
}

func checkOthers(b *bench) {
	ctx := b.Context()
	b.admit(b.p.Card())
	b.admit(b.p.Agent("x"))
	b.head(new(record.Tree))
	word := func(name string) *record.Record {
		return b.admit(&record.Attest{Header: b.p.Header(recordtest.Day), Subject: recordtest.NewPortal(name).ID, Verdict: record.Vouch})
	}
	first, second := word("two"), word("three")
	sum := b.admit(&record.Summary{Header: b.p.Header(recordtest.Day)})
	types := []record.Type{record.TypeAttest, record.TypeFork, record.TypeSummary}
	list, err := b.m.Others(ctx, types, 0, 10)
	if err != nil || len(list) != 3 || !bytes.Equal(list[0].Wire, first.Wire) || !bytes.Equal(list[1].Wire, second.Wire) || !bytes.Equal(list[2].Wire, sum.Wire) {
		b.Fatal(len(list), err)
	}
	newer := word("two")
	page, err := b.m.Others(ctx, types, list[0].Number, 2)
	if err != nil || len(page) != 2 || !bytes.Equal(page[0].Wire, second.Wire) || !bytes.Equal(page[1].Wire, sum.Wire) {
		b.Error(len(page), err)
	}
	page, err = b.m.Others(ctx, []record.Type{record.TypeAttest}, list[2].Number, 10)
	if err != nil || len(page) != 1 || !bytes.Equal(page[0].Wire, newer.Wire) || page[0].Number <= list[2].Number {
		b.Error(len(page), err)
	}
	// The numbers of removed records must not be used again.
	top := page[0].Number
	b.sweep(b.p.Now + 400*recordtest.Day)
	if list, err := b.m.Others(ctx, types, 0, 10); err != nil || len(list) != 0 {
		b.Error(len(list), err)
	}
	word("four")
	if list, err := b.m.Others(ctx, types, 0, 10); err != nil || len(list) != 1 || list[0].Number <= top {
		b.Error(list, err)
	}
}

func checkAtOnce(b *bench) {
	const ways, versions = 6, 12
	b.admit(b.p.Card())
	var wires [][]byte
	for range versions {
		wires = append(wires, b.p.Sign(b, b.p.Agent("x")).Wire, b.p.Sign(b, b.p.Agent("y")).Wire)
	}
	wires = append(wires, b.p.Sign(b, b.p.Gone("y")).Wire)
	fresh := make([]int, len(wires))
	var mu sync.Mutex
	var wg sync.WaitGroup
	for way := range ways {
		wg.Go(func() {
			mine := slices.Concat(wires[way*4:], wires[:way*4])
			got, err := b.gate.AdmitAll(context.Background(), mine, time.UnixMilli(b.p.Now))
			if err != nil {
				b.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			for i, r := range got {
				if r.Err != nil && record.ReasonOf(r.Err) != record.Stale {
					b.Error(r.Err)
				}
				if r.Fresh {
					fresh[(i+way*4)%len(wires)]++
				}
			}
		})
		wg.Go(func() {
			b.leaves(b.p.ID)
			b.agents("")
			b.sweep(b.p.Now)
		})
	}
	wg.Wait()
	for i, n := range fresh {
		if n > 1 || i >= len(wires)-3 && i != len(wires)-2 && n != 1 {
			b.Errorf("record %d was new %d times", i, n)
		}
	}
	b.holds(b.p.ID, 1)
}

func checkBatch(b *bench) {
	q := recordtest.NewPortal("two")
	var tree record.Tree
	cards := [][]byte{b.p.Sign(b, b.p.Card()).Wire, q.Sign(b, q.Card()).Wire}
	a := b.p.Sign(b, b.p.Agent("a"))
	a2 := b.p.Sign(b, b.p.Agent("a"))
	b.p.Seq--
	twin := b.p.Agent("a")
	twin.Title = "A twin"
	liar := b.p.Sign(b, twin)
	late := b.p.Sign(b, b.p.Agent("late"))
	others := q.Sign(b, q.Agent("a"))
	lone := q.Sign(b, q.Head(&tree))
	old := q.Sign(b, q.Agent("old"))
	q.Epoch++
	over := q.Sign(b, q.Head(&tree))
	batch := slices.Concat([][]byte{a.Wire}, cards, [][]byte{a.Wire, others.Wire, lone.Wire, a.Wire, a2.Wire, a.Wire, liar.Wire, late.Wire, over.Wire, old.Wire, others.Wire})
	want := []record.Reason{record.NoPortal, "", "", "", "", "", "", "", record.Stale, record.Equivocation, record.Quarantined, "", record.Stale, record.Stale}
	fresh := []bool{false, true, true, true, true, true, false, true, false, false, false, true, false, false}
	got, err := b.gate.AdmitAll(b.Context(), batch, time.UnixMilli(b.p.Now))
	if err != nil {
		b.Fatal(err)
	}
	for i, r := range got {
		if record.ReasonOf(r.Err) != want[i] || r.Fresh != fresh[i] {
			b.Errorf("%d: fresh %v, %v; want %q", i, r.Fresh, r.Err, want[i])
		}
	}
	b.holds(b.p.ID, 1)
	b.holds(q.ID, 0)
}

func checkApart(b *bench) {
	q := recordtest.NewPortal("two")
	b.admit(b.p.Card())
	b.admitOf(q, q.Card())
	b.admit(b.p.Agent("x"))
	x := b.admitOf(q, q.Agent("x"))
	b.admitOf(q, q.Agent("y"))
	b.holds(b.p.ID, 1)
	b.holds(q.ID, 2)
	if list := b.agents(""); len(list) != 3 {
		b.Errorf("lists %d agents of all", len(list))
	}
	if err := b.m.Drop(b.Context(), b.p.ID); err != nil {
		b.Fatal(err)
	}
	b.holds(b.p.ID, 0)
	b.holds(q.ID, 2)
	w, err := b.m.Held(b.Context(), x.Slot())
	b.is("of the other", w, err, x.Wire)
}

func checkPortable(b *bench) {
	q := recordtest.NewPortal("two")
	key := recordtest.Key("an agent")
	for _, p := range []*recordtest.Portal{b.p, q} {
		b.admitOf(p, p.Card())
		a := p.Agent("x")
		a.ID = record.PortableID(record.PublicOf(key))
		if err := a.Cosign(recordtest.Network, key); err != nil {
			b.Fatal(err)
		}
		r := b.admitOf(p, a)
		w, err := b.m.Agent(b.Context(), p.ID, record.AgentKey(a.ID))
		b.is(p.Name, w, err, r.Wire)
	}
	b.holds(b.p.ID, 1)
	b.holds(q.ID, 1)
}

// checkWhole tests that a stored record is not shown before a head covers it.
func checkWhole(b *bench) {
	ctx, id := b.Context(), b.p.ID
	covered := func(turn int64) (list []string) {
		b.Helper()
		if err := b.m.Covered(ctx, id, turn, func(w []byte) bool { list = append(list, string(w)); return true }); err != nil {
			b.Fatal(err)
		}
		return list
	}
	expect := func(what string, turn int64, want ...*record.Record) {
		b.Helper()
		got := covered(turn)
		if len(got) != len(want) {
			b.Errorf("%s: %d records are covered, want %d", what, len(got), len(want))
			return
		}
		for _, r := range want {
			if !slices.Contains(got, string(r.Wire)) {
				b.Errorf("%s: that of seq %d is not covered", what, r.Seq)
			}
			w, err := b.m.CoveredAgent(ctx, id, keyOf(r))
			b.is(what, w, err, r.Wire)
		}
	}
	complete := func(head *record.Record, was record.Version, want bool) (turn int64) {
		b.Helper()
		turn, ok, err := b.m.Complete(ctx, id, was, head.Version(), federation.Whole{Version: head.Version(), Hash: head.Hash})
		if err != nil || ok != want {
			b.Fatal(ok, err)
		}
		return turn
	}
	b.admit(b.p.Card())
	x := b.admit(b.p.Agent("x"))
	expect("before a head", 0)
	var tree record.Tree
	tree.Apply(x)
	head := b.head(&tree)
	expect("before it is known that the head covers it", 0)
	// Another pull has changed the position, so this one must not complete.
	complete(head, record.Version{Epoch: 7, Seq: 7}, false)
	wrong := *head
	wrong.Hash[0]++
	complete(&wrong, record.Version{}, false)
	first := complete(head, record.Version{}, true)
	expect("whole", 0, x)
	if at, err := b.m.Position(ctx, id); err != nil || at != head.Version() {
		b.Error(at, err)
	}
	if w, turn, err := b.m.Whole(ctx, id); err != nil || w != (federation.Whole{Version: head.Version(), Hash: head.Hash}) || turn != first+1 {
		b.Error(w, turn, err)
	}
	// New records wait for the next head. Until then the older records that they replace must stay,
	// however many come.
	y, z := b.admit(b.p.Agent("y")), b.admit(b.p.Agent("z"))
	expect("more came", 0, x)
	b.admit(b.p.Agent("x"))
	expect("a newer one waits", 0, x)
	x2 := b.admit(b.p.Agent("x"))
	expect("a second newer one waits", 0, x)
	expect("it was kept in the first turn", first+1)
	w, err := b.m.CoveredAgent(ctx, id, keyOf(y))
	b.is("what waits", w, err, nil)
	gone := b.admit(b.p.Gone("y"))
	for _, r := range []*record.Record{y, z, x2, gone} {
		tree.Apply(r)
	}
	older := head
	head = b.head(&tree)
	complete(head, older.Version(), true)
	expect("whole again", 0, x2, z)
	expect("since the first", first+1, x2, z, gone)
	expect("since the next", first+2)
	// An omitted record is no longer covered, not even after it was stored again.
	if err := b.m.Omit(ctx, id, []record.Hash{keyOf(z)}); err != nil {
		b.Fatal(err)
	}
	expect("omitted", 0, x2)
	b.fresh(z, b.p.Now)
	expect("taken in again", 0, x2)
	if err := b.m.Drop(ctx, id); err != nil {
		b.Fatal(err)
	}
	expect("dropped", 0)
	if w, _, err := b.m.Whole(ctx, id); err != nil || w != (federation.Whole{}) {
		b.Error(w, err)
	}
	complete(head, head.Version(), false)
	b.fresh(x2, b.p.Now)
	expect("some of it came again", 0)
	complete(head, record.Version{}, true)
	expect("and was found whole", 0, x2)
	// With two heads of one version it is unknown which of them covers the records.
	one := b.p.Head(&tree)
	two := *one
	two.Count, two.Root = 0, new(record.Tree).Root()
	lower, higher := b.p.Sign(b, one), b.p.Sign(b, &two)
	if bytes.Compare(lower.Hash[:], higher.Hash[:]) > 0 {
		lower, higher = higher, lower
	}
	b.fresh(higher, b.p.Now)
	complete(higher, head.Version(), true)
	b.refused(lower, b.p.Now, record.Equivocation)
	complete(lower, higher.Version(), false)
	if err := b.m.Release(ctx, id); err != nil {
		b.Fatal(err)
	}
	if w, _, err := b.m.Whole(ctx, id); err != nil || w != (federation.Whole{}) {
		b.Error("whole by a head that another took the place of", w, err)
	}
	complete(higher, record.Version{}, false)
	complete(lower, record.Version{}, true)
}

// checkReplaced tests that when a record is removed before a head covers it, the older record that it
// would have replaced is removed as well.
func checkReplaced(b *bench) {
	ctx := b.Context()
	for name, end := range map[string]func(p *recordtest.Portal, x *record.Record) error{
		"drop": func(p *recordtest.Portal, _ *record.Record) error { return b.m.Drop(ctx, p.ID) },
		"letgo": func(p *recordtest.Portal, _ *record.Record) error {
			_, err := b.m.LetGo(ctx, p.ID, 4)
			return err
		},
		"omit": func(p *recordtest.Portal, x *record.Record) error {
			return b.m.Omit(ctx, p.ID, []record.Hash{keyOf(x)})
		},
		"expire": func(_ *recordtest.Portal, x *record.Record) error { return b.m.Sweep(ctx, time.UnixMilli(x.Expires)) },
		"revoke": func(p *recordtest.Portal, _ *record.Record) error {
			b.admitOf(p, p.Card())
			return nil
		},
		"epoch": func(p *recordtest.Portal, _ *record.Record) error {
			p.Epoch, p.Seq = p.Epoch+1, 0
			b.admitOf(p, p.Head(new(record.Tree)))
			return nil
		},
	} {
		p := recordtest.NewPortal(name)
		was := p.Key()
		b.admitOf(p, p.Card())
		x := b.admitOf(p, p.Agent("x"))
		var tree record.Tree
		tree.Apply(x)
		head := b.admitOf(p, p.Head(&tree))
		if _, ok, err := b.m.Complete(ctx, p.ID, record.Version{}, head.Version(), federation.Whole{Version: head.Version(), Hash: head.Hash}); err != nil || !ok {
			b.Fatal(ok, err)
		}
		p.Now += recordtest.Hour
		p.Op = recordtest.Key(name + " next")
		card := p.Card()
		card.Keys = append(card.Keys, was)
		slices.SortFunc(card.Keys, func(a, b record.Key) int { return strings.Compare(string(a.ID), string(b.ID)) })
		b.admitOf(p, card)
		b.admitOf(p, p.Agent("x"))
		w, err := b.m.CoveredAgent(ctx, p.ID, keyOf(x))
		b.is(name+": before", w, err, x.Wire)
		if err := end(p, x); err != nil {
			b.Fatal(name, err)
		}
		w, err = b.m.CoveredAgent(ctx, p.ID, keyOf(x))
		b.is(name, w, err, nil)
		err = b.m.Covered(ctx, p.ID, 0, func([]byte) bool { b.Errorf("%s: something is covered", name); return true })
		if err != nil {
			b.Fatal(err)
		}
	}
}
