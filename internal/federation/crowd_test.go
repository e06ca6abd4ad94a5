package federation_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/federation"
	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
)

// sybil is the facts of one of many portals.
func sybil(n int, origin string, proved, seen time.Time) federation.Facts {
	return federation.Facts{ID: record.PortalOf(record.Public{1, byte(n), byte(n >> 8), byte(n >> 16)}), URL: origin, Proved: proved, Seen: seen, Known: seen,
		Head: record.Version{Epoch: 1, Seq: 1}, HeadExpires: seen.Add(48 * time.Hour)}
}

func (w *world) known() int { return len(w.peers.Portals(w.t.Context())) }

func TestPeers_AFullListHasRoomForAnHonestPortal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		for name, c := range map[string]struct {
			origin func(i int) string
			proved time.Time
		}{
			"of names that nobody has":   {func(i int) string { return fmt.Sprintf("https://s%d.x%d.example", i, i) }, time.Time{}},
			"all there, of some domains": {func(i int) string { return fmt.Sprintf("https://s%d.farm%d.com", i, i/100) }, now},
			"all there, of some networks": {func(i int) string {
				return fmt.Sprintf("https://20.%d.%d.%d:%d", i/100/250, i/100%250, i%100, 1000+i)
			}, now},
		} {
			w := &world{t: t, store: new(memory), replica: nil}
			honest := sybil(1<<20, "https://honest.org", now, now.Add(-time.Hour))
			honest.Agents = 3
			pinned := sybil(1<<20+1, "https://pinned.net", time.Time{}, now.Add(-100*time.Hour))
			pinned.Rule.Stand = federation.Pin
			w.store.put(honest)
			w.store.put(pinned)
			for i := range 19_998 {
				w.store.put(sybil(i, c.origin(i), c.proved, now))
			}
			var err error
			if w.peers, err = federation.NewPeers(t.Context(), w.store, federation.PeersConfig{Signer: me{portalAt("home")}}); err != nil {
				t.Fatal(err)
			}
			if w.known() != 20_000 {
				t.Fatal(name, w.known())
			}
			for i := range 5 {
				p := recordtest.NewPortal(fmt.Sprint("new", i))
				card := p.Card()
				card.Origin = fmt.Sprintf("https://new%d.net", i)
				w.peers.Learned(card, i%2 == 0)
				if _, ok := w.peers.Portal(t.Context(), string(p.ID)); !ok {
					t.Errorf("%s: a newcomer does not get in", name)
				}
			}
			w.peers.Heard("https://heard.net", honest.ID)
			if _, ok := w.peers.Portal(t.Context(), "heard.net"); !ok {
				t.Errorf("%s: nobody can be told of", name)
			}
			for _, f := range []federation.Facts{honest, pinned} {
				if _, ok := w.peers.Portal(t.Context(), string(f.ID)); !ok {
					t.Errorf("%s: %s had to go", name, f.URL)
				}
			}
			if n := w.known(); n > 20_000 {
				t.Errorf("%s: %d are known", name, n)
			}
		}
	})
}

func TestPeers_OneDomainIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		real := portalAt("real")
		card := real.Card()
		card.Origin = "https://real.farm.com"
		w.peers.Learned(card, true)
		var last *recordtest.Portal
		add := func(n int, domain string) {
			for i := range n {
				last = portalAt(fmt.Sprint(domain, i))
				c := last.Card()
				c.Origin = fmt.Sprintf("https://s%d.%s", i, domain)
				w.peers.Learned(c, false)
				time.Sleep(time.Second)
			}
		}
		add(300, "farm.com")
		if n := w.known(); n != 100 {
			t.Errorf("%d portals of one domain are known", n)
		}
		for _, p := range []*recordtest.Portal{real, last} {
			if _, ok := w.peers.Portal(t.Context(), string(p.ID)); !ok {
				t.Errorf("%s had to go", p.Name)
			}
		}
		// Whoever moves there is one more.
		for i := range 50 {
			p := portalAt(fmt.Sprint("mover", i))
			c := p.Card()
			w.peers.Learned(c, false)
			c.Origin = fmt.Sprintf("https://m%d.farm.com", i)
			w.peers.Learned(c, false)
		}
		if n := w.known(); n != 100 {
			t.Errorf("%d portals after some moved there", n)
		}
		stop := w.runs()
		time.Sleep(61 * time.Minute)
		w.mu.Lock()
		if len(w.told) != 2 || !strings.Contains(w.told[0], "farm.com") || !strings.Contains(w.told[1], "249 more") && !strings.Contains(w.told[1], "248 more") {
			t.Errorf("operators were told %q", w.told)
		}
		w.mu.Unlock()
		stop()
		// An operator may mean them to be there.
		w.set(func(p *federation.Policy) { p.AllowDomains = []string{"farm.com"} })
		before := w.known()
		add(150, "b.farm.com")
		if n := w.known(); n != before+150 {
			t.Errorf("%d portals of an allowed domain", n)
		}
	})
}

func TestPeers_ManyLiarsAreToldTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		gate, err := record.NewGate(recordtest.Network, w.replica)
		if err != nil {
			t.Fatal(err)
		}
		w.runs()
		time.Sleep(2 * time.Second) // it has looked at all there are: from now on it goes by what it is told
		var liars []*recordtest.Portal
		for i := range 40 {
			p := portalAt(fmt.Sprint("liar", i))
			c := p.Card()
			c.Origin = fmt.Sprintf("https://l%d.farm%d.com", i, i/10)
			h1 := p.Head(new(record.Tree))
			h2 := *h1
			h2.Expires -= 1000
			for _, b := range []record.Body{c, h1, &h2} {
				gate.Admit(t.Context(), p.Sign(t, b).Wire, time.Now())
			}
			w.peers.Learned(c, true)
			liars = append(liars, p)
		}
		for _, p := range liars {
			w.peers.Fault(p.ID, string(record.Equivocation))
			synctest.Wait()
		}
		time.Sleep(10 * time.Minute)
		w.mu.Lock()
		if n := len(w.told); n != 12 { // 3 of each domain
			t.Errorf("operators were told %d times", n)
		}
		w.mu.Unlock()
		time.Sleep(time.Hour)
		w.mu.Lock()
		if last := w.told[len(w.told)-1]; len(w.told) != 13 || !strings.Contains(last, "28 more portals were proved to lie") || !strings.Contains(last, "farm3.com the last") {
			t.Errorf("operators were told %d times, at last %q", len(w.told), last)
		}
		w.mu.Unlock()
		for _, p := range liars {
			if d := w.decide(p); d.State != federation.Quarantined {
				t.Errorf("%s is %s", p.Name, d.State)
			}
		}
	})
}

// TestPeers_WhoIsLookedForFindsRoom has a full list of portals that are all there,
// of which none would make place for a newcomer.
func TestPeers_WhoIsLookedForFindsRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, store: new(memory)}
		for i := range 3 {
			f := sybil(i, fmt.Sprintf("https://p%d.net", i), time.Now(), time.Now())
			if f.Agents = 5; i == 0 {
				f.Rule.Stand = federation.Pin
			}
			w.store.put(f)
		}
		var err error
		if w.peers, err = federation.NewPeers(t.Context(), w.store, federation.PeersConfig{Signer: me{portalAt("home")}, Most: 3}); err != nil {
			t.Fatal(err)
		}
		comes := func(name string, wanted bool) bool {
			p := recordtest.NewPortal(name)
			card := p.Card()
			card.Origin = "https://" + name + ".net"
			if wanted {
				w.peers.Wanted(p.ID)
			}
			w.peers.Learned(card, true)
			_, ok := w.peers.Portal(t.Context(), string(p.ID))
			return ok
		}
		if comes("newcomer", false) {
			t.Error("a newcomer drove others out")
		}
		for _, name := range []string{"one", "two", "three"} {
			time.Sleep(time.Second)
			if !comes(name, true) {
				t.Errorf("%s was looked for and found no room", name)
			}
		}
		// The last two have driven out the first; who was pinned stays.
		if _, ok := w.peers.Portal(t.Context(), "one.net"); ok {
			t.Error("who was looked for first is still there")
		}
		if _, ok := w.peers.Portal(t.Context(), "p0.net"); !ok || w.known() != 3 {
			t.Error("known are", w.known())
		}
		if comes("another", false) {
			t.Error("a newcomer drove out who was looked for")
		}
	})
}
