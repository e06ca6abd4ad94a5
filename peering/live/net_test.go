package live_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/internal/federation"
	"agentsite/internal/federation/livereport"
	"agentsite/internal/record"
	"agentsite/internal/testing/federationtest"
	"agentsite/internal/testing/recordtest"
	"agentsite/peering/live"
)

// net is portals that reach each other by function calls.
type net struct {
	t  *testing.T
	mu sync.Mutex // guards the rest
	at map[string]*node
	// posted counts the requests that brought records, by origin.
	posted, asked map[string]int
	// tamper changes what an origin answers.
	tamper map[string]func(a *federation.Answer)
	deaf   bool // nobody takes what is sent unasked
}

func newNet(t *testing.T) *net {
	return &net{t: t, at: map[string]*node{}, posted: map[string]int{}, asked: map[string]int{}, tamper: map[string]func(*federation.Answer){}}
}

// node is one portal: its service over a replica in memory.
type node struct {
	*recordtest.Portal
	*live.Service
	net      *net
	replica  *federationtest.Replica
	registry *registry
	gate     *record.Gate
	card     []byte

	mu      sync.Mutex // guards the rest
	own     []live.Seen
	changed map[record.PortalID][]map[record.AgentTag]bool
}

// registry knows who is quarantined, and counts what is told of faults.
type registry struct {
	*federationtest.Registry
	replica *federationtest.Replica
}

func (g *registry) Decide(ctx context.Context, id record.PortalID, origin string) federation.Decision {
	if c, _ := g.replica.Quarantined(ctx, id); c != nil {
		return federation.Decision{State: federation.Quarantined}
	}
	return g.Registry.Decide(ctx, id, origin)
}

func (g *registry) Portals(ctx context.Context) []federation.Peer {
	list := g.Registry.Portals(ctx)
	for i, p := range list {
		if c, _ := g.replica.Quarantined(ctx, p.ID); c != nil {
			list[i].State = federation.Quarantined
		}
	}
	return list
}

// faults returns what was told of a portal.
func (g *registry) faults(t *testing.T, id record.PortalID) map[string]int {
	for _, p := range g.Registry.Portals(t.Context()) {
		if p.ID == id {
			return p.Faults
		}
	}
	return nil
}

// signer makes a portal a federation.Signer.
type signer struct{ n *node }

func (s signer) ID() record.PortalID { return s.n.ID }
func (s signer) Network() string     { return recordtest.Network }
func (s signer) Origin() string      { return "https://" + s.n.Name + ".example" }
func (s signer) Card() []byte        { return s.n.card }
func (s signer) Key(now time.Time) (record.KeyID, ed25519.PrivateKey, time.Time, error) {
	return record.KeyIDOf(record.PublicOf(s.n.Op)), s.n.Op, now.Add(80 * 24 * time.Hour), nil
}

// start makes a portal that knows those which are there already, and they it.
func (w *net) start(name string) *node {
	w.t.Helper()
	n := &node{Portal: recordtest.NewPortal(name), net: w, replica: new(federationtest.Replica),
		changed: map[record.PortalID][]map[record.AgentTag]bool{}}
	n.registry = &registry{new(federationtest.Registry), n.replica}
	n.Portal.Now = time.Now().UnixMilli()
	n.Portal.Epoch = n.Portal.Now - 1000
	n.card = n.Sign(w.t, n.Card()).Wire
	n.open()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.at {
		o.meet(n)
		n.meet(o)
	}
	n.admit(n.card)
	w.at["https://"+name+".example"] = n
	return n
}

// open makes the node's service, anew after a restart.
func (n *node) open() {
	var err error
	if n.gate, err = record.NewGate(recordtest.Network, n.replica); err != nil {
		n.net.t.Fatal(err)
	}
	n.Service = live.New(live.Config{Signer: signer{n}, Gate: n.gate, Replica: n.replica, Registry: n.registry, Caller: caller{n}, Directory: n})
}

// OwnLiveness implements live.Directory.
func (n *node) OwnLiveness(_ context.Context, yield func(live.Seen) bool) error {
	n.mu.Lock()
	list := slices.Clone(n.own)
	n.mu.Unlock()
	for _, s := range list {
		if !yield(s) {
			break
		}
	}
	return nil
}

// LivenessChanged implements live.Directory.
func (n *node) LivenessChanged(_ context.Context, id record.PortalID, tags map[record.AgentTag]bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changed[id] = append(n.changed[id], tags)
}

func (n *node) admit(wire []byte) {
	n.net.t.Helper()
	if _, _, err := n.gate.Admit(n.net.t.Context(), wire, time.Now()); err != nil {
		n.net.t.Fatal(err)
	}
}

// meet has a node know another, whose domain is proved.
func (n *node) meet(o *node) {
	r, err := record.Open(recordtest.Network, o.card)
	if err != nil {
		n.net.t.Fatal(err)
	}
	n.admit(o.card)
	n.registry.Learned(r.Body.(*record.Card), true)
}

// lists makes agents with these ids the node's own, alive now.
func (n *node) lists(ids ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.own = nil
	for _, id := range ids {
		n.own = append(n.own, live.Seen{Agent: record.AgentID(n.ID, id), Reach: record.Alive, At: time.Now(), Took: 30 * time.Millisecond})
	}
}

// sees has a node see an agent of another, or an own one, in a state.
func (n *node) sees(o *node, id string, r record.Reach) {
	n.mu.Lock()
	for i := range n.own {
		if o == n && n.own[i].Agent == record.AgentID(o.ID, id) {
			n.own[i].Reach, n.own[i].At = r, time.Now()
		}
	}
	n.mu.Unlock()
	n.Observe(live.Seen{Subject: o.ID, Agent: record.AgentID(o.ID, id), Reach: r, At: time.Now(), Called: o != n})
}

// believes is what a node believes of an agent of another.
func (n *node) believes(o *node, id string) livereport.Verdict {
	return n.Verdict(o.ID, record.AgentID(o.ID, id))
}

// spoken returns the records of live/1 that a portal signed, as a node holds
// them.
func (n *node) spoken(by record.PortalID) (out []*record.Record) {
	list, err := n.replica.Others(n.net.t.Context(), []record.Type{record.TypeLive}, 0, 100_000)
	if err != nil {
		n.net.t.Fatal(err)
	}
	for _, x := range list {
		r, err := record.Open(recordtest.Network, x.Wire)
		if err != nil {
			n.net.t.Fatal(err)
		}
		if r.Portal == by {
			out = append(out, r)
		}
	}
	return out
}

// caller is how a node reaches others: as their doors do it.
type caller struct{ n *node }

var errAway = errors.New("nobody there")

func (c caller) Do(ctx context.Context, origin string, portal record.PortalID, method, path string, body []byte, limit int64) (*federation.Answer, error) {
	w := c.n.net
	w.mu.Lock()
	to := w.at[origin]
	tamper := w.tamper[origin]
	deaf := w.deaf && method == http.MethodPost
	if method == http.MethodPost {
		w.posted[origin]++
	} else {
		w.asked[origin]++
	}
	w.mu.Unlock()
	if to == nil || to.ID != portal || deaf {
		return nil, errAway
	}
	a := &federation.Answer{Status: 200, Header: http.Header{}, Took: time.Millisecond}
	u, err := url.Parse(path)
	if err != nil {
		return nil, err
	}
	switch u.Path {
	case "/peering/v1/attest":
		var in struct{ Records []json.RawMessage }
		if err := json.Unmarshal(body, &in); err != nil || len(in.Records) > live.MaxRecords || len(body) > 256<<10 {
			return nil, fmt.Errorf("a request of %d bytes with %d records: %v", len(body), len(in.Records), err)
		}
		wires := make([][]byte, len(in.Records))
		for i, r := range in.Records {
			wires[i] = r
		}
		refused, err := to.Take(ctx, c.n.ID, wires)
		if err != nil {
			return nil, err
		}
		a.Body, _ = json.Marshal(map[string]any{"refused": refused})
	case "/peering/v1/attests":
		after, _ := strconv.ParseInt(u.Query().Get("after"), 10, 64)
		n, _ := strconv.Atoi(u.Query().Get("limit"))
		out, more, err := to.After(ctx, after, n)
		if err != nil {
			return nil, err
		}
		a.Body = out
		a.Header.Set("Agentsite-More", strconv.FormatBool(more))
	default:
		return nil, fmt.Errorf("no such path: %s", path)
	}
	if tamper != nil {
		tamper(a)
	}
	if int64(len(a.Body)) > limit {
		return nil, errors.New("too long")
	}
	return a, nil
}

// away takes a node off the net, or puts it back.
func (w *net) away(n *node, away bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if away {
		delete(w.at, "https://"+n.Name+".example")
	} else {
		w.at["https://"+n.Name+".example"] = n
	}
}

func (w *net) posts() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.posted {
		n += c
	}
	return n
}

// run runs nodes until the test ends.
func run(t *testing.T, nodes ...*node) {
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, n := range nodes {
		wg.Go(func() {
			if err := n.Run(ctx, nil); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() {
		stop()
		wg.Wait()
	})
}

func has(s, sub string) bool { return strings.Contains(s, sub) }

// admit2 lets in what may be known already.
func (n *node) admit2(wire []byte) {
	n.net.t.Helper()
	if _, _, err := n.gate2().Admit(n.net.t.Context(), wire, time.Now()); err != nil {
		n.net.t.Fatal(err)
	}
}

// gate2 is a gate over the replica that the node has now.
func (n *node) gate2() *record.Gate {
	g, err := record.NewGate(recordtest.Network, n.replica)
	if err != nil {
		n.net.t.Fatal(err)
	}
	return g
}

func newReplica() *federationtest.Replica { return new(federationtest.Replica) }

func within(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithCancel(t.Context())
}

func headRow(r *record.Record) federation.HeadRow {
	return federation.HeadRow{Portal: r.Portal, Version: r.Version(), Issued: r.Issued, Expires: r.Expires}
}

// unlearned is a registry that knows these portals, and no others.
func unlearned(t *testing.T, nodes ...*node) *federationtest.Registry {
	g := new(federationtest.Registry)
	for _, n := range nodes {
		r, err := record.Open(recordtest.Network, n.card)
		if err != nil {
			t.Fatal(err)
		}
		g.Learned(r.Body.(*record.Card), true)
	}
	return g
}
