package answer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/federation/archive"
	"agentsite/internal/hub"
	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
)

func (f *far) cardWire(t testing.TB) []byte {
	t.Helper()
	wire, err := f.net.replica.Card(t.Context(), f.ID)
	if err != nil {
		t.Fatal(err)
	}
	return wire
}

// indexing makes a portal known that says it is an index, and holds some others.
func (w *wide) indexing(name string, proved bool, holds ...*far) *far {
	f := w.beyondAs(name, proved, "own-of-"+strings.ReplaceAll(name, ".", "-"))
	c := f.Card()
	c.Tier = record.TierIndex
	f.keep(f.Sign(w, c))
	w.registry.Learned(c, proved)
	w.registry.Seen(f.ID, 0)
	f.holds = holds
	w.Reconcile(w.Context())
	return f
}

// newSummary is a directory that keeps only summaries of others.
func newSummary(t testing.TB) *wide {
	w := newWide(t)
	w.tier = record.TierSummary
	return w
}

// TestSearcher_FindsThroughAnIndexWhatIsSilent finds agents of a portal that does
// not answer, with what shows them to be listed.
func TestSearcher_FindsThroughAnIndexWhatIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSummary(t)
		down, up := w.beyond("down", "one"), w.beyond("up", "two")
		down.mute = true
		index := w.indexing("index", true, down, up)
		page := w.search(hub.Query{Text: "translates"})
		want := []string{"one@down.example", "own-of-index@index.example", "two@up.example"}
		if got := handlesOf(page); !slices.Equal(got, want) || page.Total != 3 {
			t.Errorf("found %v of %d, want %v", got, page.Total, want)
		}
		// The index does not answer in the place of the one that is down.
		if c := page.Coverage; c.Asked != 4 || c.Answered != 3 || !slices.Equal(c.Silent, []string{"down.example"}) || c.Indexes != 1 || c.Tier != record.TierSummary {
			t.Errorf("%+v", c)
		}
		// Asked about one portal alone.
		page = w.search(hub.Query{Text: "translates", Portals: []string{"down.example"}})
		if got := handlesOf(page); !slices.Equal(got, want[:1]) || page.Coverage.Asked != 1 || page.Coverage.Answered != 0 || page.Coverage.Indexes != 1 || !slices.Equal(index.question.Portals, []string{"down.example"}) {
			t.Errorf("%v, %+v, asked %+v", got, page.Coverage, index.question)
		}
		// What is said holds whatever was answered some seconds ago.
		w.registry.Say(down.ID, federation.Decision{State: federation.Denied})
		w.search(hub.Query{Text: "translates"})
		if got := handlesOf(w.search(hub.Query{Text: "translates"})); !slices.Equal(got, want[1:]) {
			t.Errorf("of a portal that is denied: %v", got)
		}
		w.registry.SayKey(record.KeyIDOf(record.PublicOf(up.Op)), "denied")
		if got := handlesOf(w.search(hub.Query{Text: "translates"})); slices.Contains(got, "two@up.example") {
			t.Errorf("of a key that is denied: %v", got)
		}
	})
}

func TestSearcher_LeavesLiesOfAnIndexOut(t *testing.T) {
	for name, c := range map[string]struct {
		// bend changes an answer whose first result is of the index, the second
		// and third are of the portal f.
		bend   func(w *wide, f *far, a *federation.SearchAnswer)
		gone   []string // what is not shown for it
		faults int
	}{
		"honest": {},
		"altered": {func(w *wide, f *far, a *federation.SearchAnswer) {
			a.Results[1].Record = recordtest.Bent(a.Results[1].Record)
		}, []string{"one"}, 1},
		"invented": {func(w *wide, f *far, a *federation.SearchAnswer) {
			x := f.Agent("invented")
			r, err := record.Sign(recordtest.Network, x, recordtest.Key("index op"))
			if err != nil {
				w.Fatal(err)
			}
			a.Results[1].Record = r.Wire
		}, []string{"one"}, 1},
		"signed and not covered": {func(w *wide, f *far, a *federation.SearchAnswer) {
			r := f.Sign(w, f.Agent("withdrawn"))
			var t record.Tree
			t.Set(record.AgentKey(r.Body.(*record.Agent).AgentID()), r.Hash)
			p, _ := t.Prove(record.AgentKey(r.Body.(*record.Agent).AgentID())).Encode()
			a.Results[1] = federation.Hit{Record: r.Wire, Proof: p}
		}, []string{"one"}, 1},
		"another one's proof": {func(w *wide, f *far, a *federation.SearchAnswer) {
			a.Results[1].Proof = a.Results[2].Proof
		}, []string{"one"}, 1},
		"no proof":       {func(w *wide, f *far, a *federation.SearchAnswer) { a.Results[1].Proof = nil }, []string{"one"}, 1},
		"without a head": {func(w *wide, f *far, a *federation.SearchAnswer) { a.Heads = nil }, []string{"one", "two"}, 2},
		"a head of its own making": {func(w *wide, f *far, a *federation.SearchAnswer) {
			var t record.Tree
			r, err := record.Sign(recordtest.Network, f.Portal.Head(&t), recordtest.Key("index op"))
			if err != nil {
				w.Fatal(err)
			}
			a.Heads[0].Head = r.Wire
		}, []string{"one", "two"}, 1},
		"a head that is none": {func(w *wide, f *far, a *federation.SearchAnswer) { a.Heads[0].Head = a.Results[1].Record }, []string{"one", "two"}, 1},
		"a newer head that its portal did not sign": {func(w *wide, f *far, a *federation.SearchAnswer) {
			a.Heads[0].Head = recordtest.Bent(f.Sign(w, f.Portal.Head(&f.tree)).Wire)
		}, []string{"one", "two"}, 1},
		"the newest head with another signature": {func(w *wide, f *far, a *federation.SearchAnswer) {
			a.Heads[0].Head = recordtest.Bent(a.Heads[0].Head)
		}, []string{"one", "two"}, 0}, // it says nothing that is not so
		"a head without its card": {func(w *wide, f *far, a *federation.SearchAnswer) { a.Heads[0].Card = nil }, []string{"one", "two"}, 1},
		"a head with a card that only lists its key": {func(w *wide, f *far, a *federation.SearchAnswer) {
			like := recordtest.NewPortal("like")
			like.Now, like.Epoch, like.Op = f.Now, f.Epoch, f.Op
			a.Heads[0].Card = like.Sign(w, like.Card()).Wire
		}, []string{"one", "two"}, 1},
		"a head with the card of another": {func(w *wide, f *far, a *federation.SearchAnswer) {
			a.Heads[0].Card = w.at["https://index.example"].cardWire(w)
		}, []string{"one", "two"}, 1},
		"a head that cannot be read": {func(w *wide, f *far, a *federation.SearchAnswer) {
			a.Heads[0].Head = []byte(`{}`)
		}, []string{"one", "two"}, 3}, // and both results are without one
		"an old head": {func(w *wide, f *far, a *federation.SearchAnswer) {
			old := f.wire
			f.renew()
			a.Heads[0].Head, f.wire = old, old
		}, []string{"one", "two"}, 0}, // it need not be as quick as this portal
		"a portal that is denied here": {func(w *wide, f *far, a *federation.SearchAnswer) {
			w.registry.Say(f.ID, federation.Decision{State: federation.Denied})
		}, []string{"one", "two"}, 0}, // others have other rules
		"a portal that nobody knows": {func(w *wide, f *far, a *federation.SearchAnswer) {
			other := recordtest.NewPortal("elsewhere")
			other.Now = clock.Now().UnixMilli()
			other.Epoch = other.Now - recordtest.Hour
			x := other.Agent("x")
			r := other.Sign(w, x)
			var t record.Tree
			t.Set(record.AgentKey(x.AgentID()), r.Hash)
			p, _ := t.Prove(record.AgentKey(x.AgentID())).Encode()
			a.Results[1] = federation.Hit{Record: r.Wire, Proof: p}
			a.Heads = append(a.Heads, federation.Told{Card: other.Sign(w, other.Card()).Wire, Head: other.Sign(w, other.Head(&t)).Wire})
		}, []string{"one"}, 0},
		"agents of who asks": {func(w *wide, f *far, a *federation.SearchAnswer) {
			self := recordtest.NewPortal("self")
			self.Now, self.Epoch = clock.Now().UnixMilli(), clock.Now().UnixMilli()-recordtest.Hour
			x := self.Agent("x")
			a.Results[1].Record = self.Sign(w, x).Wire
		}, []string{"one"}, 0},
		"twice": {func(w *wide, f *far, a *federation.SearchAnswer) { a.Results[1] = a.Results[2] }, []string{"one"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newSummary(t)
				f := w.beyond("down", "one", "two")
				index := w.indexing("index", true, f)
				f.mute = true
				want := []string{"one@down.example", "own-of-index@index.example", "two@down.example"}
				if c.bend != nil {
					index.bend = func(a *federation.SearchAnswer) { c.bend(w, f, a) }
				}
				for _, name := range c.gone {
					want = slices.DeleteFunc(want, func(h string) bool { return h == name+"@down.example" })
				}
				page := w.search(hub.Query{Text: "translates words"})
				if got := handlesOf(page); !slices.Equal(got, want) {
					t.Errorf("found %v, want %v", got, want)
				}
				if got := w.faults(index); got != c.faults {
					t.Errorf("%d faults of the index, want %d", got, c.faults)
				}
				if got := w.faults(f); got != 0 {
					t.Errorf("%d faults of the portal that it lies about", got)
				}
			})
		})
	}
}

// TestSearcher_ChoosesIndexes asks two that are someone else's each, seen at their
// address, and there.
func TestSearcher_ChoosesIndexes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSummary(t)
		w.beyond("far", "one")
		all := make(map[string]*far)
		for name, rtt := range map[string]time.Duration{"x.op": 10 * time.Millisecond, "y.op": 20 * time.Millisecond, "second": 400 * time.Millisecond, "third": 700 * time.Millisecond} {
			all[name] = w.indexing(name, true, w.at["https://far.example"])
			w.registry.Seen(all[name].ID, rtt)
		}
		all["unproved"] = w.indexing("unproved", false, w.at["https://far.example"])
		w.registry.Seen(all["unproved"].ID, time.Millisecond)
		n := 0
		search := func(want ...string) federation.Coverage {
			t.Helper()
			before := make(map[string]int)
			for name, f := range all {
				before[name] = f.askedAll
			}
			n++
			c := w.search(hub.Query{Text: fmt.Sprint("translates words ", n)}).Coverage
			time.Sleep(3 * time.Second)
			var got []string
			for name, f := range all {
				if f.askedAll > before[name] {
					got = append(got, name)
				}
			}
			slices.Sort(got)
			for i, name := range got { // either of the two of one operator
				if name == "y.op" {
					got[i] = "x.op"
				}
			}
			if slices.Sort(want); !slices.Equal(got, want) || c.Indexes != len(want) {
				t.Errorf("asked %v, want %v; %+v", got, want, c)
			}
			return c
		}
		w.Reconcile(t.Context())
		search("x.op", "second")
		w.registry.Rule(all["third"].ID, federation.Rule{Stand: federation.Pin})
		w.Reconcile(t.Context())
		search("x.op", "third")
		w.registry.Failed(all["third"].ID, fmt.Errorf("down"))
		w.Reconcile(t.Context())
		search("x.op", "second")
		w.registry.Say(all["second"].ID, federation.Decision{State: federation.Denied})
		search("x.op") // at once
		w.Reconcile(t.Context())
		// One whose own agents are all here counts for nothing else.
		before := search("x.op")
		for _, name := range []string{"x.op", "y.op"} {
			f := all[name]
			w.registry.Synced(f.ID, federation.HeadRow{Portal: f.ID, Version: record.Version{Epoch: f.Epoch, Seq: f.Seq}, Issued: f.Now, Expires: f.Now + recordtest.Day, Count: 1}, 1, false, time.Time{})
		}
		w.Reconcile(t.Context())
		if after := search("x.op"); after.Asked != before.Asked || after.Answered != before.Answered || after.Known != before.Known {
			t.Errorf("%+v, then %+v", before, after)
		}
		// Who holds all needs none.
		w.tier = record.TierReplica
		w.Reconcile(t.Context())
		search()
	})
}

// TestSearcher_OpensThroughAnIndexWhatIsSilent opens agents of a portal that does
// not answer, and nothing that the index made of them.
func TestSearcher_OpensThroughAnIndexWhatIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSummary(t)
		down := w.beyond("down", "one", "two")
		index := w.indexing("index", true, down)
		down.mute = true
		opens := func(handle string) bool {
			t.Helper()
			time.Sleep(2 * time.Minute) // nothing is remembered
			a, err := w.get(handle)
			if err != nil {
				return false
			}
			e, err := w.Record(t.Context(), a, true)
			if err != nil || len(e.Proof) == 0 || e.Hash != a.Record || !a.Verified {
				t.Errorf("%+v, %v", e, err)
			}
			return true
		}
		if !opens("two@down.example") {
			t.Error("it is not opened by its name")
		}
		if opens("three@down.example") {
			t.Error("an agent that is not there")
		}
		w.search(hub.Query{Text: "translates"})
		if !opens("one@down.example") {
			t.Error("it is not opened once it is found")
		}
		w.registry.Failed(down.ID, fmt.Errorf("down"))
		w.Reconcile(t.Context())
		began := time.Now()
		if !opens("one@down.example") || time.Since(began) > 2*time.Minute+100*time.Millisecond {
			t.Error("who is known not to answer is waited for:", time.Since(began)-2*time.Minute)
		}
		for name, bend := range map[string]func(p *archive.Proven){
			"altered":  func(p *archive.Proven) { p.Record = recordtest.Bent(p.Record) },
			"no proof": func(p *archive.Proven) { p.Proof = nil },
			"the index's own instead": func(p *archive.Proven) {
				h := index.hit(w, index.records[0])
				*p = archive.Proven{Card: index.cardWire(w), Head: index.wire, Record: h.Record, Proof: h.Proof}
			},
			"another of its agents": func(p *archive.Proven) {
				h := down.hit(w, down.records[1])
				p.Record, p.Proof = h.Record, h.Proof
			},
			"signed by a key of its own": func(p *archive.Proven) {
				r, err := record.Sign(recordtest.Network, down.Agent("one"), index.Op)
				if err != nil {
					t.Fatal(err)
				}
				p.Record = r.Wire
			},
			"another card": func(p *archive.Proven) { p.Card = index.cardWire(w) },
		} {
			synctest.Wait() // nobody who was asked before is at it any more
			index.bendOne = bend
			before := w.faults(index)
			if opens("one@down.example") {
				t.Errorf("%s: it is opened", name)
			}
			if got := w.faults(index) - before; got != 1 && name != "another of its agents" {
				t.Errorf("%s: %d faults", name, got)
			}
		}
		time.Sleep(time.Minute) // who is mute is waited for no more
		synctest.Wait()
		index.bendOne = nil
		// Who answers is believed that it has no such agent.
		held := &far{portal: down.portal, wire: down.wire, records: down.records}
		down.mute, down.records = false, down.records[1:]
		w.registry.Seen(down.ID, time.Millisecond)
		w.Reconcile(t.Context())
		index.holds = []*far{held}
		if opens("one@down.example") {
			t.Error("an index is asked though its portal answers")
		}
	})
}

// TestSearcher_ShowsTheNewestOfSeveral has an index answer with what its portal
// changes before it answers itself.
func TestSearcher_ShowsTheNewestOfSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSummary(t)
		f := w.beyond("far", "one")
		w.indexing("index", true, f)
		f.after = 100 * time.Millisecond
		f.bend = func(a *federation.SearchAnswer) {
			x := f.Agent("one")
			x.Name, x.Title, x.Description = "one", "Renewed", "translates words"
			r := f.Sign(w, x)
			f.tree.Set(record.AgentKey(x.AgentID()), r.Hash)
			f.renew()
			f.records, f.bend = []*record.Record{r}, nil
			a.Head, a.Results = f.wire, []federation.Hit{f.hit(w, r)}
		}
		page := w.search(hub.Query{Text: "translates", Portals: []string{"far.example"}})
		if len(page.Results) != 1 || page.Results[0].Agent.Title != "Renewed" {
			t.Errorf("%+v", page.Results)
		}
		if a, err := w.get("one@far.example"); err != nil || a.Title != "Renewed" {
			t.Errorf("%+v, %v", a, err)
		}
	})
}
