package answer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/federation/archive"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
	"agentsite/peering/catalog"
	"agentsite/peering/search"
)

// far is a portal of which nothing but card and head is held here.
type far struct {
	*portal
	records []*record.Record
	wire    []byte // of the head
	// mute: it never answers. bend changes what it answers.
	mute bool
	bend func(a *federation.SearchAnswer)
	// bendOne changes what it answers for one agent.
	bendOne func(p *archive.Proven)
	after   time.Duration
	asked   int
	// holds is what it holds of others as an index portal, askedAll how often it
	// was asked for all.
	holds    []*far
	askedAll int
	question federation.SearchQuestion // the last one for all
}

// wide is a directory that asks portals by a caller.
type wide struct {
	*net
	searcher  *search.Searcher
	summaries *catalog.Summaries
	answering sync.Mutex // held while an answer is made
	mu        sync.Mutex // guards asked of the portals
	at        map[string]*far
}

func newWide(t testing.TB) *wide {
	tt := t.(*testing.T)
	w := &wide{net: newNet(tt), at: make(map[string]*far)}
	gate, err := record.NewGate(recordtest.Network, w.replica)
	if err != nil {
		t.Fatal(err)
	}
	w.summaries = catalog.NewSummaries(recordtest.Network, w.replica, slog.New(slog.DiscardHandler))
	w.searcher = search.New(search.Config{Network: recordtest.Network, Caller: w, Gate: gate, Replica: w.replica, Registry: w.registry, Catalog: w.Catalog, Summaries: w.summaries,
		Syncer: syncer{w.net, gate}, Log: slog.New(slog.DiscardHandler)})
	go w.searcher.Run(t.Context())
	w.answer(w.Catalog, w.searcher)
	w.hub = hub.New(hub.Ports{Index: w.index, Network: w.Network, Wider: w.searcher}, hub.Config{Portal: "self.example", URL: "https://self.example"})
	return w
}

// syncer takes in heads as a replication.Syncer does.
type syncer struct {
	*net
	gate *record.Gate
}

func (s syncer) Take(ctx context.Context, from record.PortalID, told []federation.Told) ([]federation.Unfit, error) {
	for _, h := range told {
		_, _, err := s.gate.Admit(ctx, h.Head, clock.Now())
		switch why := record.ReasonOf(err); why {
		case "":
			if err != nil {
				return nil, err
			}
		case record.Stale, record.NoPortal, record.NoKey:
		default:
			s.registry.Fault(from, string(why))
		}
	}
	return nil, nil
}

func (s syncer) Report(context.Context, record.PortalID) {}

// beyond makes a portal known whose agents are over the quota.
func (w *wide) beyond(name string, agents ...string) *far {
	return w.beyondAs(name, true, agents...)
}

func (w *wide) beyondAs(name string, proved bool, agents ...string) *far {
	f := &far{portal: w.join(name, proved)}
	for _, n := range agents {
		a := f.Agent(n)
		a.Name, a.Title, a.Description = n, "Title of "+n, "translates words"
		r := f.Sign(w, a)
		f.tree.Set(record.AgentKey(a.AgentID()), r.Hash)
		f.records = append(f.records, r)
	}
	f.renew()
	w.at["https://"+name+".example"] = f
	w.Reconcile(w.Context())
	return f
}

// renew signs another head, which is known here.
func (f *far) renew() {
	h := f.Head(&f.tree)
	r := f.Sign(f.net, h)
	f.keep(r)
	f.wire = r.Wire
	f.net.registry.Synced(f.ID, federation.HeadRow{Portal: f.ID, Version: h.Version(), Issued: h.Issued, Expires: h.Expires, Count: h.Count}, 0, true, time.Time{})
}

func (f *far) hit(t testing.TB, r *record.Record) federation.Hit {
	t.Helper()
	p, err := f.tree.Prove(record.AgentKey(r.Body.(*record.Agent).AgentID())).Encode()
	if err != nil {
		t.Fatal(err)
	}
	return federation.Hit{Record: r.Wire, Proof: p, Score: 1e9}
}

// Do implements federation.Caller.
func (w *wide) Do(ctx context.Context, origin string, _ record.PortalID, method, path string, body []byte, _ int64) (*federation.Answer, error) {
	f := w.at[origin]
	w.mu.Lock()
	f.asked++
	w.mu.Unlock()
	if f.mute {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if f.after > 0 {
		select {
		case <-time.After(f.after):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	w.answering.Lock() // a bend changes what others answer with
	defer w.answering.Unlock()
	var out any
	switch {
	case method == http.MethodPost && path == "/peering/v1/search":
		var q federation.SearchQuestion
		if err := json.Unmarshal(body, &q); err != nil {
			return nil, err
		}
		if q.Of == federation.OfAll {
			w.mu.Lock()
			f.askedAll++
			f.question = q
			w.mu.Unlock()
		}
		a := &federation.SearchAnswer{Head: f.wire, Total: len(f.records)}
		for _, r := range f.records {
			a.Results = append(a.Results, f.hit(w, r))
		}
		for _, o := range f.holds {
			if q.Of != federation.OfAll || len(q.Portals) > 0 && !slices.Contains(q.Portals, o.Name+".example") {
				continue
			}
			a.Heads = append(a.Heads, federation.Told{Card: o.cardWire(w), Head: o.wire})
			for _, r := range o.records {
				a.Results = append(a.Results, o.hit(w, r))
			}
		}
		if f.bend != nil {
			f.bend(a)
		}
		out = a
	case strings.HasPrefix(path, "/peering/v1/agents/"):
		for _, of := range append([]*far{f}, f.holds...) {
			for _, r := range of.records {
				if path == "/peering/v1/agents/"+string(of.ID)+"/"+r.Body.(*record.Agent).ID {
					h := of.hit(w, r)
					p := archive.Proven{Card: of.cardWire(w), Head: of.wire, Record: h.Record, Proof: h.Proof}
					if f.bendOne != nil {
						f.bendOne(&p)
					}
					out = p
				}
			}
		}
	}
	if out == nil {
		return &federation.Answer{Status: http.StatusNotFound}, nil
	}
	b, err := json.Marshal(out)
	return &federation.Answer{Status: http.StatusOK, Body: b}, err
}

func (w *wide) search(q hub.Query) hub.Page {
	w.Helper()
	q.Wide = true
	page, err := w.hub.Search(w.Context(), ident.Actor{Kind: ident.Guest}, q)
	if err != nil {
		w.Fatal(err)
	}
	return page
}

func handlesOf(page hub.Page) []string {
	var out []string
	for _, r := range page.Results {
		out = append(out, r.Agent.Handle())
	}
	slices.Sort(out)
	return out
}

func (w *wide) faults(f *far) (n int) {
	for _, p := range w.registry.Portals(w.Context()) {
		if p.ID == f.ID {
			for _, c := range p.Faults {
				n += c
			}
		}
	}
	return n
}

// TestSearcher_TellsOfEachAnswerAsItComes has a search that does not wait for
// the slow, nor shows what does not hold.
func TestSearcher_TellsOfEachAnswerAsItComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWide(t)
		for i, after := range []time.Duration{300 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond} {
			w.beyond(fmt.Sprintf("p%d", i), fmt.Sprintf("agent-p%d", i)).after = after
		}
		w.beyond("mute", "agent-mute").mute = true
		w.at["https://p2.example"].bend = func(a *federation.SearchAnswer) { a.Results[0].Proof = nil }
		w.Reconcile(t.Context())
		q := hub.Query{Text: "translates"}
		if n := w.hub.Asks(q); n != 4 {
			t.Error("it would ask", n)
		}
		began := time.Now()
		var got []string
		err := w.hub.SearchEach(t.Context(), ident.Actor{Kind: ident.Guest}, q, func(page hub.Page) error {
			c := page.Coverage
			got = append(got, fmt.Sprint(time.Since(began).Milliseconds(), handlesOf(page), c.Asked, c.Answered, c.Silent))
			for _, r := range page.Results { // what is told of can be opened
				if _, err := w.Find(t.Context(), r.Agent.Name, r.Agent.Portal); err != nil {
					t.Error(err)
				}
			}
			return nil
		})
		want := []string{"0 [] 1 1 []", "100 [agent-p1@p1.example] 5 2 []", "300 [agent-p0@p0.example] 5 4 []", "800 [] 5 4 [mute.example]"}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("got %q, want %q, %v", got, want, err)
		}
		// Who goes away is not searched for any more.
		began, gone := time.Now(), errors.New("gone")
		err = w.hub.SearchEach(t.Context(), ident.Actor{Kind: ident.Guest}, q, func(page hub.Page) error {
			if len(page.Results) > 0 {
				return gone
			}
			return nil
		})
		if err != gone || time.Since(began) > 200*time.Millisecond {
			t.Error(err, "after", time.Since(began))
		}
	})
}

func TestSearcher_NamesTheSilentAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWide(t)
		const portals = 10
		var silent []string
		for i := range portals {
			f := w.beyond(fmt.Sprintf("p%d", i), fmt.Sprintf("agent-p%d", i))
			if f.after = 100 * time.Millisecond; i < 3 {
				f.mute = true
				silent = append(silent, fmt.Sprintf("p%d.example", i))
			}
		}
		w.Reconcile(t.Context())
		began := time.Now()
		page := w.search(hub.Query{Text: "translates"})
		if took := time.Since(began); took > 805*time.Millisecond {
			t.Error("it took", took)
		}
		c := page.Coverage
		if len(page.Results) != portals-3 || page.Total != portals-3 || c.Asked != portals+1 || c.Answered != portals-2 || !slices.Equal(c.Silent, silent) || c.Known != portals+1 {
			t.Errorf("%v, %+v", handlesOf(page), c)
		}
		for _, p := range w.registry.Portals(t.Context()) {
			if p.State != federation.Active {
				t.Errorf("%s is thought to be %s", p.Host(), p.State)
			}
		}
		// Whoever asks and leaves is not waited for.
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		began = time.Now()
		if _, err := w.hub.Search(ctx, ident.Actor{Kind: ident.Guest}, hub.Query{Text: "translates", Wide: true}); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if took := time.Since(began); took > 60*time.Millisecond {
			t.Error("who left was waited for:", took)
		}
		// Of whom answers are known to come soon, less is waited for.
		for _, f := range w.at {
			w.registry.Seen(f.ID, 10*time.Millisecond)
		}
		w.Reconcile(t.Context())
		began = time.Now()
		w.search(hub.Query{Text: "translates"})
		if took := time.Since(began); took > 405*time.Millisecond {
			t.Error("with known answer times it took", took)
		}
		synctest.Wait()
	})
}

func TestSearcher_LeavesLiesOut(t *testing.T) {
	other := recordtest.NewPortal("elsewhere")
	for name, c := range map[string]struct {
		bend   func(w *wide, f *far, a *federation.SearchAnswer)
		faults int
	}{
		"honest": {},
		"altered": {func(w *wide, f *far, a *federation.SearchAnswer) {
			a.Results[0].Record = recordtest.Bent(a.Results[0].Record)
		}, 1},
		"invented": {func(w *wide, f *far, a *federation.SearchAnswer) {
			r := f.Sign(w, f.Agent("invented"))
			a.Results[0].Record = r.Wire
		}, 1},
		"uncovered with a proof of its own": {func(w *wide, f *far, a *federation.SearchAnswer) {
			r := f.Sign(w, f.Agent("invented"))
			var t record.Tree
			t.Set(record.AgentKey(r.Body.(*record.Agent).AgentID()), r.Hash)
			p, _ := t.Prove(record.AgentKey(r.Body.(*record.Agent).AgentID())).Encode()
			a.Results[0] = federation.Hit{Record: r.Wire, Proof: p}
		}, 1},
		"another one's proof": {func(w *wide, f *far, a *federation.SearchAnswer) {
			a.Results[0].Proof = a.Results[1].Proof
		}, 1},
		"expired": {func(w *wide, f *far, a *federation.SearchAnswer) {
			x := f.Agent("old")
			x.Issued, x.Expires = x.Issued-2*recordtest.Hour, x.Issued-recordtest.Hour
			x.Epoch = min(x.Epoch, x.Issued)
			a.Results[0].Record = f.Sign(w, x).Wire
		}, 1},
		"another portal's": {func(w *wide, f *far, a *federation.SearchAnswer) {
			a.Results[0] = w.at["https://second.example"].hit(w, w.at["https://second.example"].records[0])
		}, 1},
		"an unknown portal's": {func(w *wide, f *far, a *federation.SearchAnswer) {
			other.Now = clock.Now().UnixMilli()
			other.Epoch = other.Now - recordtest.Hour
			a.Results[0].Record = other.Sign(w, other.Agent("x")).Wire
		}, 0}, // it may know one that this portal does not
		"no proof": {func(w *wide, f *far, a *federation.SearchAnswer) { a.Results[0].Proof = nil }, 1},
		"twice":    {func(w *wide, f *far, a *federation.SearchAnswer) { a.Results[0] = a.Results[1] }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWide(t)
			w.beyond("second", "beside")
			f := w.beyond("liar", "one", "two")
			want := []string{"beside@second.example", "one@liar.example", "two@liar.example"}
			if c.bend != nil {
				f.bend = func(a *federation.SearchAnswer) { c.bend(w, f, a) }
				want = slices.Delete(want, 1, 2)
			}
			page := w.search(hub.Query{Text: "translates words"})
			if got := handlesOf(page); !slices.Equal(got, want) {
				t.Errorf("found %v, want %v", got, want)
			}
			if got := w.faults(f); got != c.faults {
				t.Errorf("%d faults, want %d", got, c.faults)
			}
			for _, r := range f.records {
				if wire, _ := w.replica.Agent(t.Context(), f.ID, record.AgentKey(r.Body.(*record.Agent).AgentID())); wire != nil {
					t.Error("it was kept")
				}
			}
		})
	}
}

func TestSearcher_WantsTheNewestHead(t *testing.T) {
	w := newWide(t)
	f := w.beyond("far", "one")
	old := f.wire
	f.renew()
	f.wire = old
	if page := w.search(hub.Query{Text: "translates"}); len(page.Results) != 0 || !slices.Contains(page.Coverage.Silent, "far.example") {
		t.Errorf("%v, %+v", handlesOf(page), page.Coverage)
	}
}

func TestSearcher_MixesWithWhatIsHeld(t *testing.T) {
	w := newWide(t)
	held := w.join("held", true)
	held.list("h-one", "h-two", "h-three")
	f := w.beyond("far", "f-one", "f-two")
	if got := handlesOf(w.search(hub.Query{Text: "translates"})); len(got) != 5 {
		t.Error(got)
	}
	// Pages hold no more than was asked for, and what is held comes once.
	seen := make(map[string]int)
	q := hub.Query{Text: "translates", Limit: 3}
	for {
		page := w.search(q)
		if len(page.Results) > 3 {
			t.Error("a page of", len(page.Results))
		}
		for _, r := range page.Results {
			seen[r.Agent.Handle()]++
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			break
		}
	}
	for _, name := range []string{"h-one", "h-two", "h-three"} {
		if seen[name+"@held.example"] != 1 {
			t.Errorf("%s comes %d times: %v", name, seen[name+"@held.example"], seen)
		}
	}
	// Filters hold here whatever is answered.
	if got := handlesOf(w.search(hub.Query{Text: "translates", Tags: []string{"nothing"}})); len(got) != 0 {
		t.Error(got)
	}
	if got := handlesOf(w.search(hub.Query{Text: "zebra"})); len(got) != 0 {
		t.Error("an answer that has nothing to do with the question:", got)
	}
	before := f.asked
	for _, q := range []hub.Query{{Text: "translates", Scope: hub.ScopePortal}, {Text: "translates", Portals: []string{"held.example"}}, {}} {
		w.search(q)
	}
	if f.asked != before {
		t.Error("it was asked without need")
	}
	w.registry.Say(f.ID, federation.Decision{State: federation.Denied})
	if got := handlesOf(w.search(hub.Query{Text: "translates"})); len(got) != 3 || f.asked != before {
		t.Error("denied:", got)
	}
}

func TestSearcher_OpensWhatIsNotHeld(t *testing.T) {
	w := newWide(t)
	f := w.beyond("far", "one", "two")
	for _, searched := range []bool{false, true} {
		if searched {
			w.search(hub.Query{Text: "translates"})
		}
		a, err := w.get("two@far.example")
		if err != nil || a.Name != "two" || !a.Verified {
			t.Fatalf("%+v, %v", a, err)
		}
		e, err := w.Record(t.Context(), a, true)
		if err != nil || len(e.Proof) == 0 || e.Hash != a.Record {
			t.Errorf("%+v, %v", e, err)
		}
	}
	if _, err := w.get("three@far.example"); err == nil {
		t.Error("an agent that is not there")
	}
	w.registry.Say(f.ID, federation.Decision{State: federation.Denied})
	if _, err := w.get("two@far.example"); err == nil {
		t.Error("of a portal that is denied")
	}
}

func TestSearcher_AsksAtMostTwenty(t *testing.T) {
	w := newWide(t)
	for i := range 25 {
		w.beyond(fmt.Sprintf("p%02d", i), fmt.Sprintf("a%02d", i))
	}
	// The last of them says that it has the word, all others that they have not.
	for i := range 25 {
		f := w.at[fmt.Sprintf("https://p%02d.example", i)]
		s := &record.Summary{Header: f.Header(48 * recordtest.Hour), Terms: record.NewBloom(4)}
		if i == 24 {
			s.Terms.Add("translat")
			s.Terms.Add("translates")
		}
		f.keep(f.Sign(w, s))
	}
	if err := w.summaries.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	page := w.search(hub.Query{Text: "translates", Limit: 100})
	if c := page.Coverage; c.Asked != 21 || !c.Limited || len(page.Results) != 20 || !slices.Contains(handlesOf(page), "a24@p24.example") {
		t.Errorf("%+v, %v", c, handlesOf(page))
	}
}

func TestSearcher_AsksEqualQuestionsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWide(t)
		f, slow := w.beyond("far", "one"), w.beyond("slow", "late")
		slow.after = 1200 * time.Millisecond
		search := func(text string, want ...string) federation.Coverage {
			t.Helper()
			page := w.search(hub.Query{Text: text})
			if got := handlesOf(page); !slices.Equal(got, want) {
				t.Errorf("%s: found %v, want %v", text, got, want)
			}
			return page.Coverage
		}
		asked := func(want int) {
			t.Helper()
			w.mu.Lock()
			defer w.mu.Unlock()
			if f.asked != want || slow.asked != want {
				t.Errorf("asked %d and %d times, want %d", f.asked, slow.asked, want)
			}
		}
		if c := search("translates", "one@far.example"); !slices.Equal(c.Silent, []string{"slow.example"}) {
			t.Errorf("%+v", c)
		}
		// What came too late is there for the next, which asks nobody.
		time.Sleep(time.Second)
		if c := search(" translates  ", "late@slow.example", "one@far.example"); len(c.Silent) != 0 || c.Answered != 3 {
			t.Errorf("%+v", c)
		}
		asked(1)
		search("translates words", "one@far.example")
		asked(2)
		time.Sleep(12 * time.Second) // until it is too old
		search("translates", "one@far.example")
		asked(3)
		time.Sleep(3 * time.Second)
		// Another head may cover something else.
		f.renew()
		slow.renew()
		w.Reconcile(t.Context())
		search("translates", "one@far.example")
		asked(4)
		// Rules hold whatever is remembered.
		time.Sleep(3 * time.Second)
		w.registry.Say(slow.ID, federation.Decision{State: federation.Denied})
		search("translates", "one@far.example")
		w.imports = func(*record.Agent) bool { return false }
		w.Reread()
		w.Reconcile(t.Context())
		search("translates")
	})
}
