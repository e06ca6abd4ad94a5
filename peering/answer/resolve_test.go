package answer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/federation/guard"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/record"
	"agentsite/internal/testing/federationtest"
	"agentsite/internal/testing/recordtest"
	"agentsite/peering/client"
	"agentsite/peering/overlay"
	"agentsite/peering/search"
)

// book is a DHT that says what a test wants.
type book struct {
	hosts, agents, caps map[string][]overlay.Found
	portals             map[record.PortalID]overlay.Found

	mu    sync.Mutex // guards the rest
	asked int
	after time.Duration
	err   error
}

// be sets how long an answer takes, and what is wrong with it.
func (b *book) be(after time.Duration, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.after, b.err = after, err
}

func (b *book) say(ctx context.Context, list []overlay.Found) ([]overlay.Found, overlay.Looked, error) {
	b.mu.Lock()
	b.asked++
	after, err := b.after, b.err
	b.mu.Unlock()
	select {
	case <-time.After(after):
	case <-ctx.Done():
		return nil, overlay.Looked{}, ctx.Err()
	}
	return list, overlay.Looked{}, err
}

func (b *book) Host(ctx context.Context, host string) ([]overlay.Found, overlay.Looked, error) {
	return b.say(ctx, b.hosts[host])
}

func (b *book) Agent(ctx context.Context, id string) ([]overlay.Found, overlay.Looked, error) {
	return b.say(ctx, b.agents[id])
}

func (b *book) Capability(ctx context.Context, tag string) ([]overlay.Found, overlay.Looked, error) {
	return b.say(ctx, b.caps[tag])
}

func (b *book) Portal(ctx context.Context, p record.PortalID) (overlay.Found, overlay.Looked, error) {
	f, ok := b.portals[p]
	_, how, err := b.say(ctx, nil)
	if err == nil && !ok {
		err = fault.New(fault.NotFound, "nobody knows it")
	}
	return f, how, err
}

// unknown is a directory with a DHT in which there are portals that it does not
// know.
type unknown struct {
	*wide
	book   *book
	seeker *search.Resolver
	greets []string // origins, in the order in which they were said hello to
	wanted map[record.PortalID]bool
}

var guest = ident.Actor{Kind: ident.Guest, ID: "g", Addr: "192.0.2.1"}

func newUnknown(t *testing.T) *unknown {
	u := &unknown{wide: newWide(t), wanted: make(map[record.PortalID]bool),
		book: &book{hosts: make(map[string][]overlay.Found), agents: make(map[string][]overlay.Found), caps: make(map[string][]overlay.Found), portals: make(map[record.PortalID]overlay.Found)}}
	u.seeker = search.NewResolver(search.ResolverConfig{Host: "self.example", DHT: u.book, Searcher: u.searcher, Bootstrapper: u.stranger(), Log: slog.New(slog.DiscardHandler)})
	u.hub = hub.New(hub.Ports{Index: u.index, Network: u.Network, Wider: u.searcher, Seeker: u.seeker}, hub.Config{Portal: "self.example", URL: "https://self.example"})
	return u
}

func (u *unknown) stranger() *search.Bootstrapper {
	return &search.Bootstrapper{Client: u, Registry: wanting{u.registry, u}, Syncer: u, Catalog: u.Catalog}
}

// wanting is a registry that notes the portals which callers look for.
type wanting struct {
	*federationtest.Registry
	u *unknown
}

func (w wanting) Wanted(p record.PortalID) { w.u.wanted[p] = true }

// Take implements search.Syncer.
func (u *unknown) Take(context.Context, record.PortalID, []federation.Told) ([]federation.Unfit, error) {
	return nil, nil
}

// Report implements search.Syncer.
func (u *unknown) Report(ctx context.Context, portal record.PortalID) {
	for _, f := range u.at {
		if wire, _ := u.replica.Head(ctx, portal); f.ID == portal && wire != nil {
			r, _ := record.Open(recordtest.Network, wire)
			h := r.Body.(*record.Head)
			u.registry.Synced(portal, federation.HeadRow{Portal: portal, Version: h.Version(), Issued: h.Issued, Expires: h.Expires, Count: h.Count}, 0, true, time.Time{})
		}
	}
}

// Handshake takes in card and head of the portal at an origin, as a Client does.
func (u *unknown) Handshake(_ context.Context, origin string, portal record.PortalID) (*client.Handshake, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.greets = append(u.greets, origin)
	f := u.at[origin]
	switch {
	case f == nil || f.mute:
		return nil, errors.New("nobody answers there")
	case portal != "" && portal != f.ID:
		return nil, guard.ErrImpostor
	}
	card := f.Card()
	card.Origin = origin
	f.keep(f.Sign(u, card))
	head, err := record.Open(recordtest.Network, f.wire)
	if err != nil {
		return nil, err
	}
	f.keep(head)
	return &client.Handshake{Card: card, Head: f.wire, State: federation.Active}, nil
}

// strange makes a portal that is in the DHT alone.
func (u *unknown) strange(name string, agents ...string) *far {
	f := &far{portal: &portal{Portal: recordtest.NewPortal(name), net: u.net}}
	f.Now = clock.Now().UnixMilli()
	f.Epoch = f.Now - recordtest.Hour
	for _, n := range agents {
		a := f.Agent(n)
		a.Name, a.Title, a.Description, a.Caps = n, "Title of "+n, "translates words", []string{"ferries"}
		a.Skills = []record.Skill{{ID: "sail", Name: "Sail", Description: "Says when they sail.", Tags: a.Caps}}
		r := f.Sign(u, a)
		f.tree.Set(record.AgentKey(a.AgentID()), r.Hash)
		f.records = append(f.records, r)
	}
	f.wire = f.Sign(u, f.Head(&f.tree)).Wire
	host := name + ".example"
	u.at["https://"+host] = f
	u.book.hosts[host] = []overlay.Found{u.cardAt(f, host)}
	return f
}

// cardAt is what a portal says in the DHT of where it is.
func (u *unknown) cardAt(f *far, host string) overlay.Found {
	c := f.Card()
	c.Origin = "https://" + host
	return overlay.Found{Card: c, Count: int64(len(f.records))}
}

func (u *unknown) anywhere(name string) (hub.Agent, error) {
	return u.hub.Anywhere(u.Context(), guest, name)
}

func TestSeeker_MeetsThePortalOfAHandle(t *testing.T) {
	u := newUnknown(t)
	f := u.strange("far", "one", "two")
	a, err := u.anywhere("two@far.example")
	if err != nil || a.Handle() != "two@far.example" || !a.Verified || a.Title != "Title of two" {
		t.Fatalf("%+v, %v", a, err)
	}
	if s := u.hub.Source(a); s.ID != string(f.ID) || s.Sought.IsZero() || !s.Verified {
		t.Errorf("%+v", s)
	}
	if e, err := u.Record(t.Context(), a, true); err != nil || len(e.Proof) == 0 || e.Hash != a.Record {
		t.Errorf("%+v, %v", e, err)
	}
	if !u.wanted[f.ID] {
		t.Error("that it was looked for was not told")
	}
	// It is known from then on: nobody looks for it again.
	asked := u.book.asked
	if _, err := u.anywhere("one@far.example"); err != nil {
		t.Error(err)
	}
	if _, err := u.anywhere("three@far.example"); !fault.Is(err, fault.NotFound) {
		t.Error("an agent that is not there:", err)
	}
	if u.book.asked != asked {
		t.Error("the DHT was asked for a portal that is known")
	}
	if got := outcomes(t, u.seeker); got["found"] != 1 || got["absent"]+got["failed"]+got["limited"] != 0 {
		t.Error(got)
	}
	// A search for the whole handle finds it, and only where others are asked too.
	u.strange("other", "one")
	q := hub.Query{Text: "one@other.example"}
	page, err := u.hub.Search(t.Context(), guest, q)
	if err != nil || len(page.Results) != 0 {
		t.Error(handlesOf(page), err)
	}
	if n := u.hub.Asks(q); n != 1 {
		t.Error("it would ask", n)
	}
	if page := u.search(q); len(page.Results) == 0 || page.Results[0].Agent.Handle() != q.Text || page.Results[0].Score != 0 {
		t.Error(handlesOf(page), page.Total)
	}
}

func TestSeeker_FindsByIDWhoListsIt(t *testing.T) {
	u := newUnknown(t)
	f := u.strange("far", "one")
	id := f.records[0].Body.(*record.Agent).AgentID()
	// Somebody else signs to list it, which no other than its portal can.
	liar := u.strange("liar", "one")
	u.book.agents[id] = []overlay.Found{u.cardAt(liar, "liar.example"), u.cardAt(f, "far.example")}
	a, err := u.anywhere(id)
	if err != nil || a.Handle() != "one@far.example" || a.ID != id {
		t.Fatalf("%+v, %v", a, err)
	}
	if len(u.greets) != 1 || u.greets[0] != "https://far.example" {
		t.Errorf("met were %q", u.greets)
	}
	// Where nobody signed to list it, its portal is looked for.
	g := u.strange("near", "one")
	u.book.portals[g.ID] = u.cardAt(g, "near.example")
	id = g.records[0].Body.(*record.Agent).AgentID()
	if a, err := u.anywhere(id); err != nil || a.Handle() != "one@near.example" {
		t.Errorf("%+v, %v", a, err)
	}
	h := u.strange("third")
	u.book.portals[h.ID] = u.cardAt(h, "third.example")
	for _, none := range []string{string(g.ID) + "/none", string(h.ID) + "/none", string(recordtest.NewPortal("nobody").ID) + "/x", "p1" + strings.Repeat("0", 52) + "/x", string(g.ID) + "/../x"} {
		if _, err := u.anywhere(none); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v", none, err)
		}
	}
}

// TestSeeker_AsksWhoeverIsThere has somebody else claim the host of a portal: who
// answers there is who is meant.
func TestSeeker_AsksWhoeverIsThere(t *testing.T) {
	u := newUnknown(t)
	f, liar := u.strange("far", "one"), u.strange("liar", "one")
	u.book.hosts["far.example"] = []overlay.Found{u.cardAt(liar, "far.example")}
	a, err := u.anywhere("one@far.example")
	if err != nil || a.PortalID != "" && a.PortalID != string(f.ID) || u.hub.Source(a).ID != string(f.ID) {
		t.Fatalf("%+v, %v", a, err)
	}
	// Nobody is asked where no portal signed to be.
	if _, err := u.anywhere("one@victim.example"); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	if len(u.greets) != 1 {
		t.Errorf("met were %q", u.greets)
	}
}

func TestSeeker_MeetsNobodyWhoIsShutOut(t *testing.T) {
	u := newUnknown(t)
	f := u.strange("far", "one")
	u.registry.Say(f.ID, federation.Decision{State: federation.Pending})
	if _, err := u.anywhere("one@far.example"); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	if _, ok := u.hub.Learned(f.records[0].Body.(*record.Agent).AgentID()); ok || u.wanted[f.ID] {
		t.Error("it is known")
	}
	// With everybody shut out, or nothing new taken in, the DHT is not asked.
	asked := u.book.asked
	for i, d := range []federation.Decision{{State: federation.Denied}, {State: federation.Active, In: true, Show: true}} {
		u.registry.Say("", d)
		if _, err := u.anywhere(fmt.Sprintf("one@other%d.example", i)); !fault.Is(err, fault.NotFound) {
			t.Error(err)
		}
	}
	if u.book.asked != asked {
		t.Errorf("the DHT was asked %d times", u.book.asked-asked)
	}
	// Nor when the portal that was seen there is shut out; when it only says to be
	// there, others may be.
	u.registry.Say("", federation.Decision{State: federation.Active, In: true, Show: true, Take: true})
	for i, proved := range []bool{true, false} {
		g := u.strange(fmt.Sprintf("gone%d", i), "one")
		card := g.Card()
		card.Origin = fmt.Sprintf("https://gone%d.example", i)
		u.registry.Learned(card, proved)
		u.registry.Say(g.ID, federation.Decision{State: federation.Denied, Reason: "Spam."})
		before := u.book.asked
		_, err := u.hub.Anywhere(t.Context(), ident.Actor{Kind: ident.Operator, ID: "olga"}, "one@"+federation.HostOf(card.Origin))
		if told := strings.Contains(fault.As(err).Safe, "is not let in here: Spam."); told != proved || (u.book.asked > before) == proved {
			t.Errorf("proved %v: %v, asked %d times", proved, err, u.book.asked-before)
		}
	}
	asked = u.book.asked
	// Nor for who comes from another portal, nor for what cannot be.
	u.registry.Say("", federation.Decision{State: federation.Active, In: true, Show: true, Take: true})
	if _, err := u.hub.Anywhere(t.Context(), ident.Actor{Kind: ident.Portal, ID: "x"}, "one@third.example"); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	for _, name := range []string{"one@far.example/x", "one@far.example:99999", "o@far.example", "one@user@far.example", "one@[::1"} {
		if _, err := u.anywhere(name); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if u.book.asked != asked {
		t.Errorf("the DHT was asked %d times", u.book.asked-asked)
	}
	// An operator shut out an address, whoever is there.
	u.strange("shut", "one")
	u.registry.Deny("https://shut.example")
	if _, err := u.anywhere("one@shut.example"); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	for _, origin := range u.greets {
		if origin == "https://shut.example" {
			t.Error("it was met")
		}
	}
}

// TestSeeker_LooksOnceForAll has many ask for one agent while it is looked for,
// and again when it was not there.
func TestSeeker_LooksOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUnknown(t)
		u.strange("far", "one")
		u.book.be(time.Second, nil)
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if _, err := u.anywhere("one@far.example"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if u.book.asked != 1 {
			t.Errorf("the DHT was asked %d times", u.book.asked)
		}
		for range 50 {
			if _, err := u.anywhere("one@none.example"); !fault.Is(err, fault.NotFound) {
				t.Error(err)
			}
		}
		if u.book.asked != 2 {
			t.Errorf("for what is not there the DHT was asked %d times", u.book.asked-1)
		}
		// After a minute it may be there.
		u.strange("none", "one")
		time.Sleep(time.Minute)
		if _, err := u.anywhere("one@none.example"); err != nil {
			t.Error(err)
		}
	})
}

func TestSeeker_WaitsTwoSecondsAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUnknown(t)
		u.strange("far", "one")
		u.book.be(5*time.Second, nil)
		began := time.Now()
		_, err := u.anywhere("one@far.example")
		if took := time.Since(began); !fault.Is(err, fault.Unavailable) || fault.As(err).RetryAfter == 0 || took > 2100*time.Millisecond {
			t.Error(err, "after", took)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		began = time.Now()
		if _, err := u.anywhere("one@far.example"); err != nil || time.Since(began) > 0 {
			t.Error(err, "after", time.Since(began))
		}
		// What cannot be said is asked again soon, not at once.
		u.book.be(0, errors.New("nobody answers"))
		for range 3 {
			if _, err := u.anywhere("one@other.example"); !fault.Is(err, fault.Unavailable) {
				t.Error(err)
			}
		}
		if u.book.asked != 2 {
			t.Errorf("asked %d times", u.book.asked)
		}
		u.book.be(0, nil)
		u.strange("other", "one").mute = true
		time.Sleep(5 * time.Second)
		if _, err := u.anywhere("one@other.example"); !fault.Is(err, fault.Unavailable) {
			t.Error("a portal that does not answer:", err)
		}
	})
}

func TestSeeker_BoundsWhatOneAndAllMayAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUnknown(t)
		began := func(actor ident.Actor, n int) (begun int, last error) {
			for i := range n {
				before := u.book.asked
				_, err := u.hub.Anywhere(t.Context(), actor, fmt.Sprintf("one@%s%d-%d.example", actor.Addr[len(actor.Addr)-1:], i, time.Now().Unix()))
				if begun += u.book.asked - before; u.book.asked == before {
					last = err
				}
			}
			return begun, last
		}
		n, err := began(guest, 30)
		if n != 6 || !fault.Is(err, fault.RateLimited) || fault.As(err).RetryAfter == 0 {
			t.Errorf("a visitor began %d searches, %v", n, err)
		}
		ada := ident.Actor{Kind: ident.Person, ID: "ada", Addr: "192.0.2.2"}
		if n, err := began(ada, 30); n != 20 || !fault.Is(err, fault.RateLimited) {
			t.Errorf("a person began %d searches, %v", n, err)
		}
		all := 26
		for i := range 9 {
			n, err = began(ident.Actor{Kind: ident.Guest, Addr: fmt.Sprintf("192.0.2.%d", 30+i)}, 6)
			all += n
		}
		if all != 40 || !fault.Is(err, fault.Unavailable) {
			t.Errorf("all together began %d, %v", all, err)
		}
		time.Sleep(10 * time.Second)
		if n, _ := began(guest, 5); n != 1 {
			t.Errorf("after ten seconds a visitor began %d", n)
		}
		if got := outcomes(t, u.seeker); got["absent"] != 41 || got["limited"] == 0 {
			t.Error(got)
		}
	})
}

// searching has the searches of a directory ask the DHT too.
func (u *unknown) searching() {
	gate, err := record.NewGate(recordtest.Network, u.replica)
	if err != nil {
		u.Fatal(err)
	}
	u.wide.searcher = search.New(search.Config{Network: recordtest.Network, Caller: u.wide, Gate: gate, Replica: u.replica, Registry: u.registry, Catalog: u.Catalog, Summaries: u.summaries,
		Syncer: u, DHT: u.book, Bootstrapper: u.stranger(), Log: slog.New(slog.DiscardHandler)})
	go u.searcher.Run(u.Context())
	u.answer(u.Catalog, u.searcher)
	u.hub = hub.New(hub.Ports{Index: u.index, Network: u.Network, Wider: u.searcher}, hub.Config{Portal: "self.example", URL: "https://self.example"})
}

// ferries are agents that have the capability, as the DHT names their portals.
func (u *unknown) ferries(list ...*far) {
	for _, f := range list {
		u.book.caps["ferries"] = append(u.book.caps["ferries"], u.cardAt(f, f.Name+".example"))
	}
}

func TestSearcher_AsksWhomTheDHTNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUnknown(t)
		u.searching()
		q := hub.Query{Tags: []string{"Ferries"}}
		// All that is known is held here: nobody names anybody.
		held := u.join("held", true)
		held.list("five")
		u.ferries(u.strange("far", "one"), &far{portal: held})
		if page := u.search(q); len(page.Results) != 0 || u.book.asked != 0 || u.hub.Asks(q) != 0 {
			t.Error(handlesOf(page), u.book.asked)
		}
		// Twenty are known and not held, all slower than one that nobody knows.
		for i := range 20 {
			u.beyond(fmt.Sprintf("p%02d", i), fmt.Sprintf("a%02d", i)).after = 300 * time.Millisecond
		}
		u.Reconcile(t.Context())
		u.book.be(50*time.Millisecond, nil)
		u.ferries(u.strange("near", "two"), u.strange("mute", "three"))
		u.at["https://mute.example"].mute = true
		shut := u.strange("shut", "four")
		u.ferries(shut)
		u.registry.Say(shut.ID, federation.Decision{State: federation.Denied})
		began := time.Now()
		var got []string
		err := u.hub.SearchEach(t.Context(), guest, q, func(page hub.Page) error {
			for _, r := range page.Results {
				got = append(got, fmt.Sprint(r.Agent.Handle(), time.Since(began).Milliseconds()))
			}
			if c := page.Coverage; len(page.Results) == 0 && time.Since(began) > 0 && (c.Asked != 1+1+20 || c.Named != 2 || !c.Limited) {
				t.Errorf("%+v", c)
			}
			return nil
		})
		if err != nil || len(got) < 2 || got[0] != "one@far.example50" && got[0] != "two@near.example50" {
			t.Errorf("%q, %v", got, err)
		}
		if n := len(u.greets); n != 3 {
			t.Errorf("met were %q", u.greets)
		}
		if u.wanted[shut.ID] || len(u.wanted) != 0 {
			t.Error("a search drives others out")
		}
		// The lookup and what was met stand for the next search; who did not answer
		// is left alone.
		asked := u.book.asked
		page := u.search(hub.Query{Tags: []string{"ferries"}, Text: "title"})
		if u.book.asked != asked || len(u.greets) != 3 || page.Coverage.Named != 2 || page.Coverage.Asked != 22 {
			t.Errorf("%d lookups, met were %q, %+v", u.book.asked-asked, u.greets, page.Coverage)
		}
	})
}

// TestSearcher_WaitsForTheDHTNoLongerThanForPortals has a lookup that does not end.
func TestSearcher_WaitsForTheDHTNoLongerThanForPortals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUnknown(t)
		u.searching()
		for i := range 20 {
			u.beyond(fmt.Sprintf("p%02d", i), fmt.Sprintf("a%02d", i))
		}
		u.Reconcile(t.Context())
		u.book.be(time.Hour, nil)
		began := time.Now()
		page := u.search(hub.Query{Tags: []string{"ferries"}})
		if took := time.Since(began); took > 805*time.Millisecond || page.Coverage.Asked != 1+20 || page.Coverage.Named != 0 {
			t.Errorf("after %s: %+v", took, page.Coverage)
		}
		// When it ends in vain, the others are asked instead.
		u.book.be(10*time.Millisecond, nil)
		time.Sleep(10 * time.Second)
		if page := u.search(hub.Query{Tags: []string{"trains"}}); page.Coverage.Asked != 1+20 {
			t.Errorf("%+v", page.Coverage)
		}
	})
}

// outcomes returns the metric of a Resolver, by outcome.
func outcomes(t *testing.T, k *search.Resolver) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(k.ListCollectors()...)
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatal(len(families), err)
	}
	out := make(map[string]float64)
	for _, m := range families[0].GetMetric() {
		out[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
	}
	return out
}
