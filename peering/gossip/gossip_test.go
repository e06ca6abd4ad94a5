package gossip_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/record"
	"agentsite/peering/gossip"
)

// world is a network in memory.
type world struct {
	t     *testing.T
	mu    sync.Mutex // guards the rest
	nodes map[record.PortalID]*node
	order []*node
	size  int
	posts int
	// states are the sizes of what was exchanged on streams, question and answer.
	states []int
}

// node is a portal that gossips.
type node struct {
	w       *world
	id      record.PortalID
	key     ed25519.PrivateKey
	contact []byte
	g       *gossip.Gossip
	stop    context.CancelFunc
	ended   chan struct{}

	mu      sync.Mutex // guards the rest
	mute    bool
	absent  bool // has no such route
	old     bool // knows of no states that are written briefly
	shunned map[record.PortalID]bool
	heads   []gossip.Hint
	lost    []record.PortalID
	seen    map[record.PortalID]string
	at      map[uint64]time.Time // when a head was heard of
}

func key(seed uint64) ed25519.PrivateKey {
	var b [ed25519.SeedSize]byte
	r := rand.New(rand.NewPCG(seed, 7))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return ed25519.NewKeyFromSeed(b[:])
}

func newWorld(t *testing.T) *world {
	return &world{t: t, nodes: make(map[record.PortalID]*node)}
}

// add makes a portal; start has it gossip.
func (w *world) add() *node {
	w.t.Helper()
	n := &node{w: w, key: key(uint64(len(w.order) + 1)), shunned: make(map[record.PortalID]bool), seen: make(map[record.PortalID]string), at: make(map[uint64]time.Time)}
	n.id = record.PortalOf(record.PublicOf(n.key))
	n.contact = n.sign(n.key, fmt.Sprintf("p%d.example", len(w.order)))
	w.mu.Lock()
	w.nodes[n.id] = n
	w.order = append(w.order, n)
	w.mu.Unlock()
	var err error
	n.g, err = gossip.New(gossip.Config{Network: "test", Self: n.id, Contact: func() []byte { return n.contact }, Check: n.check, Post: n.post, Known: n.known,
		Size: func() int { w.mu.Lock(); defer w.mu.Unlock(); return w.size },
		Head: n.head, Seen: func(p record.PortalID, origin string) { n.mu.Lock(); n.seen[p] = origin; n.mu.Unlock() },
		Lost: func(p record.PortalID) { n.mu.Lock(); n.lost = append(n.lost, p); n.mu.Unlock() }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

func (n *node) sign(k ed25519.PrivateKey, host string) []byte {
	now := clock.Now()
	r, err := record.Sign("test", &record.Contact{Header: record.Header{Portal: n.id, Epoch: 1, Seq: 1, Issued: now.UnixMilli(), Expires: now.Add(48 * time.Hour).UnixMilli()}, CardSeq: 1, Host: host, Port: 443}, k)
	if err != nil {
		n.w.t.Fatal(err)
	}
	return r.Wire
}

func (n *node) start() *node {
	ctx, stop := context.WithCancel(context.Background())
	n.stop, n.ended = stop, make(chan struct{})
	go func() {
		defer close(n.ended)
		if err := n.g.Run(ctx); err != nil {
			n.w.t.Error(err)
		}
	}()
	return n
}

func (n *node) end() {
	n.stop()
	<-n.ended
}

func (n *node) head(h gossip.Hint) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.heads = append(n.heads, h)
	if _, ok := n.at[h.Mark]; !ok {
		n.at[h.Mark] = time.Now()
	}
}

var errForged = errors.New("forged")

// check is what a portal does with the cards that it holds.
func (n *node) check(_ context.Context, _ record.PortalID, wire []byte) (*record.Contact, error) {
	r, err := record.Open("test", wire)
	if err != nil {
		return nil, err
	}
	c, ok := r.Body.(*record.Contact)
	if !ok {
		return nil, errForged
	}
	n.w.mu.Lock()
	of := n.w.nodes[c.Portal]
	n.w.mu.Unlock()
	n.mu.Lock()
	out := n.shunned[c.Portal]
	n.mu.Unlock()
	if of == nil || out || !signed(wire, of.key) {
		return nil, errForged
	}
	return c, nil
}

func (n *node) known(context.Context) (out []record.PortalID) {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	for id := range n.w.nodes {
		if id != n.id {
			out = append(out, id)
		}
	}
	return out
}

func signed(wire []byte, k ed25519.PrivateKey) bool {
	body, sig := wire[:len(wire)-ed25519.SignatureSize], wire[len(wire)-ed25519.SignatureSize:]
	return ed25519.Verify(k.Public().(ed25519.PublicKey), record.PAE("test", record.TypeContact, body), sig)
}

// rtt is how long a request takes.
const rtt = 40 * time.Millisecond

func (n *node) post(ctx context.Context, to record.PortalID, route string, body []byte, limit int64) ([]byte, error) {
	n.w.mu.Lock()
	far := n.w.nodes[to]
	n.w.posts++
	n.w.mu.Unlock()
	if far == nil {
		return nil, fault.New(fault.NotFound, "nobody")
	}
	far.mu.Lock()
	mute, absent, old, shunned := far.mute, far.absent, far.old, far.shunned[n.id]
	far.mu.Unlock()
	n.mu.Lock()
	mute, shunned = mute || n.mute, shunned || n.shunned[to]
	n.mu.Unlock()
	switch {
	case mute:
		<-ctx.Done()
		return nil, ctx.Err()
	case absent:
		return nil, fault.New(fault.NotFound, "no such route")
	case shunned:
		return nil, fault.New(fault.Forbidden, "kept out")
	case old && gossip.IsBrief(body):
		return nil, fault.New(fault.Invalid, "no state of a pool")
	}
	if !clock.Sleep(ctx, rtt) {
		return nil, ctx.Err()
	}
	out, err := far.g.Serve(ctx, n.id, route, body)
	if route == "pushpull" && err == nil {
		n.w.mu.Lock()
		n.w.states = append(n.w.states, len(body), len(out))
		n.w.mu.Unlock()
	}
	if int64(len(out)) > limit {
		return nil, errors.New("too long")
	}
	return out, err
}

// pool is a world of n portals that have met.
func pool(t *testing.T, n int) *world {
	t.Helper()
	w := newWorld(t)
	for range n {
		w.add()
	}
	for _, p := range w.order {
		p.start()
	}
	// What chance kept from one comes with an exchange of everything, of which each
	// begins one in two minutes: some came after 140 seconds.
	w.until(4*time.Minute, "all see all", w.allSee)
	return w
}

// allSee reports whether each sees all others.
func (w *world) allSee() bool {
	for _, p := range w.order {
		if up, _ := p.g.Members(); up != len(w.order)-1 {
			return false
		}
	}
	return true
}

func (w *world) end() {
	for _, n := range w.order {
		if n.stop != nil {
			n.stop()
		}
	}
	for _, n := range w.order {
		if n.stop != nil {
			<-n.ended
		}
	}
	time.Sleep(time.Minute) // a look at somebody that is under way ends
}

// until waits until something is so.
func (w *world) until(most time.Duration, what string, is func() bool) {
	w.t.Helper()
	if !w.soon(most, is) {
		w.t.Fatalf("not within %v: %s", most, what)
	}
}

// soon reports whether something is so within some time.
func (w *world) soon(most time.Duration, is func() bool) bool {
	for end := time.Now().Add(most); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

func TestGossip_TellsWhoIsThereAndWhoseHeadIsNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := pool(t, 12)
		defer w.end()
		for _, n := range w.order {
			for _, other := range w.order {
				w.until(time.Second, "all were told where members are", func() bool {
					n.mu.Lock()
					defer n.mu.Unlock()
					return n == other || n.seen[other.id] != ""
				})
			}
		}
		// A head of one is heard of by all others, within seconds.
		w.order[0].g.AdvertiseHead(record.Version{Epoch: 3, Seq: 99})
		heard := func(n *node, seq int64) bool {
			n.mu.Lock()
			defer n.mu.Unlock()
			for _, h := range n.heads {
				if h.Seq == seq && h.Epoch == 3 {
					return true
				}
			}
			return false
		}
		// Chance has a part in whom a member tells: one may hear nothing.
		w.until(5*time.Second, "all but one heard of the head", func() bool {
			n := 0
			for _, o := range w.order[1:] {
				if heard(o, 99) {
					n++
				}
			}
			return n >= 10
		})
		// The next is told a minute later, and the newest of those meanwhile.
		w.order[0].g.AdvertiseHead(record.Version{Epoch: 3, Seq: 100})
		w.order[0].g.AdvertiseHead(record.Version{Epoch: 3, Seq: 101})
		time.Sleep(30 * time.Second)
		if heard(w.order[1], 100) || heard(w.order[1], 101) {
			t.Error("a portal told of two heads within a minute")
		}
		w.until(time.Minute, "the newest was told", func() bool { return heard(w.order[5], 101) || heard(w.order[6], 101) })
		for _, n := range w.order {
			if heard(n, 100) {
				t.Error("an older head was told")
			}
		}
		// Who falls silent is missed; who goes says so.
		w.order[3].mu.Lock()
		w.order[3].mute = true
		w.order[3].mu.Unlock()
		lost := func(n *node, who *node) bool {
			n.mu.Lock()
			defer n.mu.Unlock()
			for _, id := range n.lost {
				if id == who.id {
					return true
				}
			}
			return false
		}
		w.until(5*time.Minute, "the silent one is missed", func() bool {
			for i, n := range w.order {
				if i != 3 && !lost(n, w.order[3]) {
					return false
				}
			}
			return true
		})
		w.order[4].end()
		miss := func() (n int) {
			for i, o := range w.order {
				if i != 3 && i != 4 && lost(o, w.order[4]) {
					n++
				}
			}
			return n
		}
		// Again chance may keep it from one, which then looks for itself.
		w.until(5*time.Second, "the one that left is missed", func() bool { return miss() >= 8 })
		w.until(5*time.Minute, "all miss the one that left", func() bool { return miss() == 10 })
		w.order[4].stop = nil
		// Both come back.
		w.order[3].mu.Lock()
		w.order[3].mute = false
		w.order[3].mu.Unlock()
		w.order[4].start()
		w.until(10*time.Minute, "both are back", func() bool {
			for _, n := range w.order {
				if up, _ := n.g.Members(); up != 11 {
					return false
				}
			}
			return true
		})
		s := w.order[0].g.Standing()
		if !s.Running || s.By != "https" || s.Members != 11 || s.Told != 2 || s.Sent == 0 || s.In == 0 || s.Zone != "" {
			t.Errorf("%+v", s)
		}
	})
}

// States that members exchange are short where nothing is new, and whole with
// who knows no others.
func TestGossip_ExchangesStatesBriefly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 16
		w := pool(t, n)
		defer w.end()
		time.Sleep(5 * time.Minute) // all have all contacts
		most := func() (most, count int) {
			w.mu.Lock()
			w.states = nil
			w.mu.Unlock()
			time.Sleep(10 * time.Minute)
			w.mu.Lock()
			defer w.mu.Unlock()
			return slices.Max(w.states), len(w.states) / 2
		}
		if most, count := most(); most > n*70+300 || count < 4*n {
			t.Errorf("%d exchanges, of up to %d bytes", count, most)
		}
		w.order[0].mu.Lock()
		w.order[0].old = true
		w.order[0].mu.Unlock()
		// Portals choose their partners at random, so the old one may wait some rounds for an exchange.
		full := 0
		for range 12 {
			if full, _ = most(); full >= n*300 {
				break
			}
		}
		if full < n*300 {
			t.Errorf("a portal that knows no brief states is sent %d bytes", full)
		}
	})
}

func TestGossip_KeepsOutWhoIsShutOutOrDoesNotGossip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for range 6 {
			w.add()
		}
		defer w.end()
		out, old := w.order[4], w.order[5]
		for _, n := range w.order[:4] {
			n.shunned[out.id] = true
		}
		old.absent = true // of an older version
		for _, n := range w.order[:5] {
			n.start()
		}
		time.Sleep(10 * time.Minute)
		for _, n := range w.order[:4] {
			if up, _ := n.g.Members(); up != 3 {
				t.Errorf("%d members, want 3", up)
			}
		}
		if up, _ := out.g.Members(); up != 0 {
			t.Errorf("who is shut out has %d members", up)
		}
		// It is not asked over and over.
		w.mu.Lock()
		w.posts = 0
		w.mu.Unlock()
		if s := w.order[0].g.Standing(); s.Failed > 12 {
			t.Errorf("%d requests failed", s.Failed)
		}
	})
}

// A network larger than a pool is parted: each meets those of its zone.
func TestGossip_PartsLargeNetworksIntoZones(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := pool(t, 16)
		defer w.end()
		w.mu.Lock()
		w.size = 2000
		w.mu.Unlock()
		zones := make(map[string]int)
		w.until(10*time.Minute, "each is with those of its zone", func() bool {
			clear(zones)
			for _, n := range w.order {
				zones[n.g.Standing().Zone]++
			}
			for _, n := range w.order {
				if up, _ := n.g.Members(); up != zones[n.g.Standing().Zone]-1 {
					return false
				}
			}
			return len(zones) == 2 && zones["0"] > 0 && zones["1"] > 0
		})
		w.mu.Lock()
		w.size = 16
		w.mu.Unlock()
		w.until(10*time.Minute, "all see all again", func() bool {
			for _, n := range w.order {
				if up, _ := n.g.Members(); up != 15 {
					return false
				}
			}
			return true
		})
	})
}

// Members that lie about another, and who has no part in the pool, put it out
// of nobody's sight: it denies what they say.
func TestGossip_OutlivesLies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := pool(t, 8)
		defer w.end()
		victim, liar := w.order[0], w.order[7]
		// lied reports whether all see the victim ten seconds after the last lie.
		lied := func() bool {
			for range 10 {
				for _, n := range w.order[:7] {
					for _, body := range gossip.Lies(victim.id, liar.id) {
						if _, err := n.g.Serve(t.Context(), liar.id, "gossip", body); err != nil {
							t.Fatal(err)
						}
					}
				}
				time.Sleep(5 * time.Second)
			}
			return w.soon(10*time.Second, w.allSee)
		}
		// Once in some 150 times chance keeps from one of them what the victim says,
		// until that one exchanges everything with somebody.
		if !lied() {
			w.until(4*time.Minute, "all see the one that was lied about in the end", w.allSee)
			if !lied() {
				t.Error("the one that was lied about is out of sight of somebody, twice")
			}
		}
		if s := w.order[3].g.Standing(); s.Refused == 0 {
			t.Error("no lie was refused")
		}
		// What it tells is heard as before.
		victim.g.AdvertiseHead(record.Version{Epoch: 9, Seq: 9})
		w.until(time.Minute, "its head is heard of", func() bool {
			heard := 0
			for _, n := range w.order[1:] {
				n.mu.Lock()
				heard += min(len(n.heads), 1)
				n.mu.Unlock()
			}
			return heard >= 5
		})
	})
}
