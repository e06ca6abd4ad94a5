package answer_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/index"
	"agentsite/internal/record"
	"agentsite/internal/testing/federationtest"
	"agentsite/internal/testing/recordtest"
	"agentsite/peering/answer"
	"agentsite/peering/catalog"
	"agentsite/peering/search"
)

// net is a directory and what it knows of other portals.
type net struct {
	*testing.T
	*answer.Network
	hub      *hub.Service
	index    *index.Index
	replica  *federationtest.Replica
	registry *federationtest.Registry
	imports  func(*record.Agent) bool
	tier     string // record.TierReplica if empty
}

func newNet(t *testing.T) *net {
	return newNetOn(t, new(federationtest.Replica), new(federationtest.Registry))
}

// newNetOn is newNet that starts with what is kept there.
func newNetOn(t *testing.T, replica *federationtest.Replica, registry *federationtest.Registry) *net {
	n := &net{T: t, replica: replica, registry: registry, index: index.New()}
	catalog := catalog.New(catalog.Config{Self: recordtest.NewPortal("self").ID, Host: "self.example", Tiers: n,
		Network: recordtest.Network, Replica: n.replica, Registry: importing{n.registry, n}, Directory: hub.NewRemoteAgents(n.index, "self.example")})
	n.answer(catalog, nil)
	n.hub = hub.New(hub.Ports{Index: n.index, Network: n.Network}, hub.Config{Portal: "self.example", URL: "https://self.example"})
	return n
}

// Tier implements catalog.Tiers.
func (n *net) Tier() string { return cmp.Or(n.tier, record.TierReplica) }

// importing is a registry with the import policy of a net.
type importing struct {
	*federationtest.Registry
	n *net
}

func (i importing) Imports(a *record.Agent) bool { return i.n.imports == nil || i.n.imports(a) }

// answer has the directory answer from a catalog, and by a searcher if there is one.
func (n *net) answer(catalog *catalog.Catalog, searcher *search.Searcher) {
	n.Network = answer.NewNetwork(answer.NetworkConfig{Self: recordtest.NewPortal("self").ID, Name: recordtest.Network, Replica: n.replica, Registry: n.registry, Catalog: catalog, Searcher: searcher})
}

// portal is one that lists agents.
type portal struct {
	*recordtest.Portal
	tree record.Tree
	net  *net
}

// join makes a portal known, with its domain proved or not.
func (n *net) join(name string, proved bool) *portal {
	p := &portal{Portal: recordtest.NewPortal(name), net: n}
	p.Now = clock.Now().UnixMilli()
	p.Epoch = p.Now - recordtest.Hour
	p.card("https://"+name+".example", proved)
	return p
}

func (p *portal) keep(r *record.Record) {
	p.net.Helper()
	seen, _ := p.net.replica.Seen(p.net.Context(), r.Slot())
	if ok, err := p.net.replica.Keep(p.net.Context(), r, seen, 0); !ok || err != nil {
		p.net.Fatal(ok, err)
	}
}

func (p *portal) card(origin string, proved bool) {
	c := p.Card()
	c.Origin = origin
	r := p.Sign(p.net, c)
	p.keep(r)
	p.net.registry.Learned(c, r != nil && proved)
	p.net.registry.Seen(p.ID, 0)
}

// list puts agents of these names and tells of them.
func (p *portal) list(names ...string) {
	var list []*record.Record
	for _, name := range names {
		a := p.Agent(name)
		a.Name, a.Title, a.Description = name, "Title of "+name, "translates words"
		list = append(list, p.sign(a))
	}
	p.head(recordtest.Day)
	p.net.Put(p.ID, list)
	p.net.Reconcile(p.net.Context())
}

func (p *portal) sign(a *record.Agent) *record.Record {
	r := p.Sign(p.net, a)
	p.keep(r)
	p.tree.Set(record.AgentKey(a.AgentID()), r.Hash)
	return r
}

func (p *portal) head(life int64) {
	h := p.Head(&p.tree)
	h.Expires = h.Issued + life
	r := p.Sign(p.net, h)
	p.keep(r)
	p.whole(r)
	p.net.registry.Synced(p.ID, federation.HeadRow{Portal: p.ID, Version: h.Version(), Issued: h.Issued, Expires: h.Expires, Count: h.Count}, p.tree.Len(), false, time.Time{})
}

// whole notes that all that a head covers is here.
func (p *portal) whole(head *record.Record) {
	p.net.Helper()
	ctx := p.net.Context()
	at, err := p.net.replica.Position(ctx, p.ID)
	if err != nil {
		p.net.Fatal(err)
	}
	if _, ok, err := p.net.replica.Complete(ctx, p.ID, at, head.Version(), federation.Whole{Version: head.Version(), Hash: head.Hash}); err != nil || !ok {
		p.net.Fatal(ok, err)
	}
}

func (n *net) get(handle string) (hub.Agent, error) {
	return n.hub.Get(n.Context(), ident.Actor{Kind: ident.Guest}, handle)
}

// found are the handles of all agents that a search finds.
func (n *net) found(q hub.Query) []string {
	n.Helper()
	q.Limit = 100
	page, err := n.hub.Search(n.Context(), ident.Actor{Kind: ident.Guest}, q)
	if err != nil {
		n.Fatal(err)
	}
	var out []string
	for _, r := range page.Results {
		out = append(out, r.Agent.Handle())
	}
	slices.Sort(out)
	return out
}

func (n *net) expect(q hub.Query, want ...string) {
	n.Helper()
	if got := n.found(q); strings.Join(got, " ") != strings.Join(want, " ") {
		n.Errorf("found %q, want %q", got, want)
	}
}

func TestCatalog_ShowsAgentsBesideOwn(t *testing.T) {
	t.Parallel()
	n := newNet(t)
	n.index.Put(hub.Agent{ID: "01J", Name: "ann", Title: "Ann", Kind: hub.Builtin, Visibility: hub.Public, Status: hub.Status{State: hub.Active}})
	a := n.join("a", true)
	a.list("ann", "bob")
	n.expect(hub.Query{}, "ann", "ann@a.example", "bob@a.example")
	n.expect(hub.Query{Text: "translates"}, "ann@a.example", "bob@a.example")
	n.expect(hub.Query{Scope: hub.ScopePortal}, "ann")
	n.expect(hub.Query{Scope: hub.ScopePortal, Portals: []string{"a.example"}})
	n.expect(hub.Query{Portals: []string{"a.example"}}, "ann@a.example", "bob@a.example")
	n.expect(hub.Query{Signed: []string{"true"}}, "ann", "ann@a.example", "bob@a.example")
	got, err := n.get("bob@A.example")
	if err != nil || got.ID != string(a.ID)+"/bob" || !got.Signed() || got.Record == "" || got.Liveness.State != hub.Unknown {
		t.Errorf("%+v, %v", got, err)
	}
	src := n.hub.Source(got)
	if src.URL != "https://a.example" || !src.Verified || src.ID != string(a.ID) || src.HeadIssued.UnixMilli() != a.Now {
		t.Errorf("%+v", src)
	}
	if _, err := n.get("zoe@a.example"); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	if _, err := n.get("bob@nowhere.example"); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
}

// TestCatalog_HidesBuiltInAgentsOfOldPortals has a portal of an older version list a built-in agent, which is
// held with the rest of its log and shown neither in the directory nor in answers.
func TestCatalog_HidesBuiltInAgentsOfOldPortals(t *testing.T) {
	t.Parallel()
	n := newWide(t)
	held, partial := n.join("held", true), n.beyond("partial", "dan")
	a := held.Agent("calc")
	a.Name, a.Title, a.Kind = "calc", "Calc", "builtin"
	r := held.sign(a)
	held.list("ann")
	n.Put(held.ID, []*record.Record{r})
	b := partial.Agent("calc")
	b.Name, b.Title, b.Description, b.Kind = "calc", "Calc", "translates words", "builtin"
	r = partial.Sign(t, b)
	partial.tree.Set(record.AgentKey(b.AgentID()), r.Hash)
	partial.records = append(partial.records, r)
	partial.renew()
	n.Reconcile(t.Context())
	n.expect(hub.Query{}, "ann@held.example")
	n.expect(hub.Query{Kinds: []string{"builtin"}})
	if got := handlesOf(n.search(hub.Query{Text: "translates", Wide: true})); !slices.Equal(got, []string{"ann@held.example", "dan@partial.example"}) {
		t.Errorf("found %q", got)
	}
	if faults := n.faults(partial); faults != 0 {
		t.Errorf("%d faults are counted against an old portal", faults)
	}
	for _, handle := range []string{"calc@held.example", "calc@partial.example"} {
		if _, err := n.get(handle); !fault.Is(err, fault.NotFound) { // this portal has none of its own
			t.Errorf("%s: %v", handle, err)
		}
	}
	// With one of its own it describes those of other portals, which are called by their address.
	n.index.Put(hub.Agent{ID: "01J", Name: "calc", Title: "Own calc", Kind: hub.Builtin, Visibility: hub.Public, Status: hub.Status{State: hub.Active}, Proof: hub.Proof{State: hub.Hosted}})
	for handle, of := range map[string]record.PortalID{"calc@held.example": held.ID, "calc@partial.example": partial.ID} {
		got, err := n.get(handle)
		if err != nil || got.Handle() != handle || got.Title != "Own calc" || !strings.HasPrefix(got.ID, string(of)+"/") || got.Signed() || got.Proof.State != hub.Unproven {
			t.Errorf("%s: %+v, %v", handle, got, err)
		}
	}
	for _, handle := range []string{"calc@nowhere.example", "sort@held.example"} {
		if _, err := n.get(handle); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v", handle, err)
		}
	}
	n.expect(hub.Query{}, "ann@held.example", "calc")
	n.registry.Say(held.ID, federation.Decision{})
	if _, err := n.get("calc@held.example"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a built-in agent of a denied portal is shown: %v", err)
	}
	n.registry.Say(held.ID, federationtest.In)
	n.index.Remove("01J")
	// Once it is newer it withdraws the agent.
	gone := held.Sign(t, held.Gone("calc"))
	held.keep(gone)
	n.Put(held.ID, []*record.Record{gone})
	n.expect(hub.Query{}, "ann@held.example")
}

func TestCatalog_TombstonesAndRemovalsTakeOut(t *testing.T) {
	t.Parallel()
	n := newNet(t)
	a := n.join("a", true)
	a.list("ann", "bob", "cat")
	gone := a.Sign(t, a.Gone("ann"))
	a.keep(gone)
	n.Put(a.ID, []*record.Record{gone})
	n.expect(hub.Query{}, "bob@a.example", "cat@a.example")
	n.Remove(a.ID, []string{string(a.ID) + "/bob"})
	n.expect(hub.Query{}, "cat@a.example")
	// No portal takes out what is another's.
	b := n.join("b", true)
	b.list("dan")
	n.Remove(b.ID, []string{string(a.ID) + "/cat"})
	n.Put(b.ID, []*record.Record{a.Sign(t, a.Gone("cat"))})
	n.expect(hub.Query{}, "cat@a.example", "dan@b.example")
}

func TestCatalog_FoldsWhatMayNotBeShown(t *testing.T) {
	t.Parallel()
	n := newNet(t)
	a, b := n.join("a", true), n.join("b", true)
	a.list("ann")
	b.list("bob", "cat")
	n.expect(hub.Query{}, "ann@a.example", "bob@b.example", "cat@b.example")
	settle := func() { n.Reconcile(t.Context()) }

	// An operator's word holds before anything was moved.
	n.registry.Say(a.ID, federation.Decision{})
	if _, err := n.get("ann@a.example"); !fault.Is(err, fault.NotFound) {
		t.Error("a denied portal's agent is shown:", err)
	}
	settle()
	n.expect(hub.Query{}, "bob@b.example", "cat@b.example")
	if c := n.hub.Coverage(hub.Query{}); c.Known != 2 || c.Asked != 2 || c.Folded != 0 || len(c.Silent) != 0 {
		t.Errorf("%+v: who is denied is not named", c)
	}
	n.Put(a.ID, []*record.Record{a.sign(func() *record.Agent { x := a.Agent("new"); x.Name = "new"; return x }())})
	n.expect(hub.Query{}, "bob@b.example", "cat@b.example")
	n.registry.Say(a.ID, federationtest.In)
	settle()
	n.expect(hub.Query{}, "ann@a.example", "bob@b.example", "cat@b.example") // no head covers the new one
	a.head(recordtest.Day)
	n.Clear(a.ID)
	settle()
	n.expect(hub.Query{}, "ann@a.example", "bob@b.example", "cat@b.example", "new@a.example")

	// A head that ended folds its agents, and they are counted.
	b.Now -= recordtest.Hour / 2
	b.head(recordtest.Hour / 4)
	b.Now += recordtest.Hour / 2
	settle()
	n.expect(hub.Query{}, "ann@a.example", "new@a.example")
	c := n.hub.Coverage(hub.Query{})
	if c.Known != 3 || c.Asked != 3 || c.Answered != 2 || c.Folded != 2 || strings.Join(c.Silent, " ") != "b.example" {
		t.Errorf("%+v", c)
	}
	if _, err := n.get("bob@b.example"); !fault.Is(err, fault.NotFound) || !strings.Contains(fault.As(err).Safe, "renewed") {
		t.Error(err)
	}
	b.head(recordtest.Day)
	settle()
	n.expect(hub.Query{}, "ann@a.example", "bob@b.example", "cat@b.example", "new@a.example")

	// One that does not answer is shown while its head holds, and named.
	n.registry.Failed(b.ID, fmt.Errorf("no route"))
	settle()
	n.expect(hub.Query{}, "ann@a.example", "bob@b.example", "cat@b.example", "new@a.example")
	if c := n.hub.Coverage(hub.Query{}); c.Answered != 2 || strings.Join(c.Silent, " ") != "b.example" || c.Folded != 0 {
		t.Errorf("%+v", c)
	}
	if c := n.hub.Coverage(hub.Query{Scope: hub.ScopePortal}); c.Asked != 1 || c.Answered != 1 || len(c.Silent) != 0 || c.Known != 3 {
		t.Errorf("%+v", c)
	}
	if c := n.hub.Coverage(hub.Query{Portals: []string{"a.example"}}); c.Asked != 1 || c.Answered != 1 {
		t.Errorf("%+v", c)
	}
	if err := n.replica.Drop(t.Context(), b.ID); err != nil {
		t.Fatal(err)
	}
	n.registry.Say(b.ID, federation.Decision{})
	settle()
	n.expect(hub.Query{}, "ann@a.example", "new@a.example")
}

func TestCatalog_HostIsWhoWasSeenThere(t *testing.T) {
	t.Parallel()
	n := newNet(t)
	evil := n.join("evil", false)
	evil.card("https://bank.example", false)
	evil.list("teller")
	n.expect(hub.Query{Signed: []string{"true"}})
	if a, err := n.get("teller@bank.example"); err != nil || a.Signed() || n.hub.Source(a).Verified {
		t.Errorf("%+v, %v: not proved, and it looks so", a, err)
	}
	bank := n.join("bank", true)
	bank.list("teller", "vault")
	n.expect(hub.Query{}, "teller@bank.example", "vault@bank.example")
	if a, err := n.get("teller@bank.example"); err != nil || a.ID != string(bank.ID)+"/teller" || !a.Signed() {
		t.Errorf("%+v, %v", a, err)
	}
	// Nobody is shown under this portal's own name.
	evil.card("https://self.example", true)
	n.Reconcile(t.Context())
	n.expect(hub.Query{}, "teller@bank.example", "vault@bank.example")
	// A portal that moves takes its agents along.
	bank.card("https://new.example", true)
	n.Reconcile(t.Context())
	n.expect(hub.Query{}, "teller@new.example", "vault@new.example")
	if _, err := n.get("vault@bank.example"); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
}

func TestCatalog_PortableAgentShowsOnce(t *testing.T) {
	t.Parallel()
	n := newNet(t)
	a, b := n.join("a", false), n.join("b", true)
	key := recordtest.Key("portable")
	id := record.PortableID(record.PublicOf(key))
	listed := func(p *portal, name string) *record.Record {
		r := p.Agent(id)
		r.Name, r.Title, r.AgentPub = name, "Portable", record.PublicOf(key)
		if err := r.Cosign(recordtest.Network, key); err != nil {
			t.Fatal(err)
		}
		wire := p.sign(r)
		p.head(recordtest.Day)
		return wire
	}
	a.list("ann")
	b.list("bob")
	n.Put(a.ID, []*record.Record{listed(a, "rover")})
	n.expect(hub.Query{Text: "portable"}, "rover@a.example")
	n.Put(b.ID, []*record.Record{listed(b, "roamer")})
	n.expect(hub.Query{Text: "portable"}, "roamer@b.example")
	n.expect(hub.Query{Text: "portable", Portals: []string{"a.example"}}, "roamer@b.example")
	for _, handle := range []string{"roamer@b.example", "rover@a.example"} {
		if got, err := n.get(handle); err != nil || got.ID != id || strings.Join(got.Also, " ") != "a.example" {
			t.Errorf("%s: %+v, %v", handle, got, err)
		}
	}
	n.registry.Say(b.ID, federation.Decision{})
	n.Reconcile(t.Context())
	n.expect(hub.Query{Text: "portable"}, "rover@a.example")
	n.registry.Say(b.ID, federationtest.In)
	n.Reconcile(t.Context())
	n.expect(hub.Query{Text: "portable"}, "roamer@b.example")
	n.Remove(a.ID, []string{id})
	if _, err := n.get("rover@a.example"); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	n.Remove(b.ID, []string{id})
	n.expect(hub.Query{Text: "portable"})
}

func TestCatalog_RecordCanBeVerifiedByAnybody(t *testing.T) {
	t.Parallel()
	n := newNet(t)
	a := n.join("a", true)
	a.list("ann", "bob", "cat")
	bob, err := n.get("bob@a.example")
	if err != nil {
		t.Fatal(err)
	}
	e, err := n.hub.Evidence(t.Context(), bob, true)
	if err != nil {
		t.Fatal(err)
	}
	gate, err := record.NewGate(recordtest.Network, new(recordtest.Memory))
	if err != nil {
		t.Fatal(err)
	}
	admit := func(wire []byte) *record.Record {
		t.Helper()
		r, _, err := gate.Admit(context.Background(), wire, clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	admit(e.Card)
	head, r := admit(e.Head).Body.(*record.Head), admit(e.Record)
	proof, err := record.ParseProof(e.Proof)
	if err != nil || !head.Covers(r, proof) {
		t.Error("the head does not cover it", err)
	}
	if e.Hash != bob.Record || e.Hash != r.Hash.String() || e.HeadSeq != head.Seq || e.Expires.UnixMilli() != r.Expires {
		t.Errorf("%+v", e)
	}
	n.registry.Say(a.ID, federation.Decision{})
	if _, err := n.hub.Evidence(t.Context(), bob, true); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
}

func TestCatalog_ImportsOnlyWhatThePolicyWants(t *testing.T) {
	t.Parallel()
	n := newNet(t)
	n.imports = func(a *record.Agent) bool { return a.Name != "bob" }
	n.join("a", true).list("ann", "bob")
	n.expect(hub.Query{}, "ann@a.example")
	n.imports = func(a *record.Agent) bool { return a.Name != "ann" }
	n.Reread()
	n.Reconcile(t.Context())
	n.expect(hub.Query{}, "bob@a.example")
}

// An agent is there as a head covered it while newer records of it wait for
// theirs: for those that look at it, and after a restart.
func TestCatalog_AnAgentStaysWhileANewerOneIsOnItsWay(t *testing.T) {
	n := newNet(t)
	p := n.join("one", true)
	p.list("clerk")
	for range 2 {
		a := p.Agent("clerk")
		a.Name, a.Title = "clerk", "Changed"
		p.sign(a)
		again := newNetOn(t, n.replica, n.registry)
		again.Reconcile(t.Context())
		for _, n := range []*net{n, again} {
			a, err := n.get("clerk@one.example")
			if err != nil || a.Title != "Title of clerk" {
				t.Fatal(a.Title, err)
			}
			if e, err := n.Record(t.Context(), a, true); err != nil || e.Hash != a.Record {
				t.Error(e.Hash, err)
			}
		}
	}
	p.head(recordtest.Day)
	n.Clear(p.ID)
	n.Reconcile(t.Context())
	if a, err := n.get("clerk@one.example"); err != nil || a.Title != "Changed" {
		t.Error(a.Title, err)
	}
}

// Two portals say to be at one host: what is said of one is not done to the
// agents of the other, and what shows an agent is of who lists it.
func TestCatalog_EachAgentIsOfWhoListsIt(t *testing.T) {
	n := newNet(t)
	one, two := n.join("one", false), n.join("two", false)
	for _, p := range []*portal{one, two} {
		p.card("https://shop.example", false)
		p.list("clerk-" + p.Name)
	}
	for _, p := range []*portal{one, two} {
		a, err := n.get("clerk-" + p.Name + "@shop.example")
		if err != nil {
			t.Fatal(err)
		}
		e, err := n.Record(t.Context(), a, false)
		if err != nil {
			t.Fatalf("%s: %v", p.Name, err)
		}
		if r, err := record.Open(recordtest.Network, e.Card); err != nil || r.Portal != p.ID {
			t.Errorf("what shows the agent of %s is another's", p.Name)
		}
	}
	for _, p := range []*portal{one, two} { // before anything is settled
		n.registry.Say(p.ID, federation.Decision{State: federation.Denied})
		for _, q := range []*portal{one, two} {
			if _, err := n.get("clerk-" + q.Name + "@shop.example"); (err == nil) != (p != q) {
				t.Errorf("%s is denied; the agent of %s: %v", p.Name, q.Name, err)
			}
		}
		n.registry.Say(p.ID, federationtest.In)
	}
}
