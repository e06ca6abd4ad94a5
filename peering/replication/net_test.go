package replication_test

import (
	"compress/gzip"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/peer"
	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/federation/archive"
	"agentsite/internal/federation/guard"
	"agentsite/internal/record"
	"agentsite/internal/testing/federationtest"
	"agentsite/internal/testing/recordtest"
	"agentsite/peering/catalog"
	"agentsite/peering/replication"
)

// world is a network of portals in memory, inside a synctest bubble.
type world struct {
	t       testing.TB
	latency time.Duration
	log     *slog.Logger
	nodes   []*node

	mu    sync.Mutex // guards the rest
	at    map[string]*node
	cut   func(from, to *node) bool
	bytes map[*node]int // that were answered to it and asked of it
	asked map[string]int
}

func newWorld(t testing.TB) *world {
	return &world{t: t, latency: 20 * time.Millisecond, log: slog.New(slog.DiscardHandler), at: make(map[string]*node), bytes: make(map[*node]int), asked: make(map[string]int)}
}

// node is a portal of a world.
type node struct {
	*recordtest.Portal
	w         *world
	replica   *federationtest.Replica
	registry  *federationtest.Registry
	gate      *record.Gate
	syncer    *replication.Syncer
	directory *directory
	tree      record.Tree
	card      []byte
	origin    string
	door      http.Handler
	tiers     *federation.Tiers
	summaries *catalog.Summaries
	changes   replication.Changes
	ownCard   func(wire []byte)
	stop      context.CancelFunc
	done      chan struct{}
	// lie changes what the door answers.
	lie func(w http.ResponseWriter, r *http.Request, next http.Handler)
}

type askedBy struct{}

func (w *world) add(join ...*node) *node {
	w.t.Helper()
	n := &node{w: w, Portal: recordtest.NewPortal(fmt.Sprintf("portal%d", len(w.nodes)))}
	n.Now = clock.Now().UnixMilli()
	n.Portal.Epoch = n.Now - recordtest.Hour
	n.replica, n.registry = new(federationtest.Replica), new(federationtest.Registry)
	n.origin = "https://" + n.Name + ".example"
	w.nodes = append(w.nodes, n)
	w.mu.Lock()
	w.at[n.origin] = n
	w.mu.Unlock()
	var err error
	if n.gate, err = record.NewGate(recordtest.Network, n.replica); err != nil {
		w.t.Fatal(err)
	}
	n.admit(n.Sign(w.t, n.Card()))
	n.card, _ = n.replica.Card(context.Background(), n.ID)
	n.publish()
	n.start(join...)
	return n
}

// start runs the portal, anew with what it holds after stop.
func (n *node) start(join ...*node) {
	w := n.w
	n.directory = &directory{ids: make(map[string]record.Hash), replica: n.replica}
	rows, err := n.replica.Heads(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, row := range rows {
		n.directory.Clear(row.Portal)
	}
	trees := archive.NewTrees(n.replica)
	c := replication.Config{Self: signer{n}, Caller: caller{n}, Replica: n.replica, Registry: n.registry, Trees: trees,
		Directory: n.directory, Tiers: n.tiers, Summaries: n.summaries, Rand: rand.New(rand.NewPCG(1, uint64(len(w.nodes)))), Log: w.log,
		Changes: n.changes, Own: ownRecords{n}}
	for _, o := range join {
		n.registry.Heard(o.origin, "")
	}
	if n.syncer, err = replication.New(c); err != nil {
		w.t.Fatal(err)
	}
	door := n.routes(trees)
	w.mu.Lock() // others may ask while it starts anew
	n.door = door
	w.mu.Unlock()
	var ctx context.Context
	ctx, n.stop = context.WithCancel(context.Background())
	n.done = make(chan struct{})
	go func() {
		defer close(n.done)
		var all sync.WaitGroup
		defer all.Wait()
		all.Go(func() { n.greet(ctx) })
		if err := n.syncer.Run(ctx); err != nil && ctx.Err() == nil {
			w.t.Errorf("Run of %s: %v", n.Name, err)
		}
	}()
}

// ownRecords implements replication.OwnRecords.
type ownRecords struct{ n *node }

func (ownRecords) SeeHead(record.Version) {}

func (o ownRecords) SeeCard(wire []byte) {
	o.n.w.mu.Lock()
	f := o.n.ownCard
	o.n.w.mu.Unlock()
	if f != nil {
		f(wire)
	}
}

// greet says hello to whom the registry was told of, as a greeter does.
func (n *node) greet(ctx context.Context) {
	met := make(map[string]bool)
	for ctx.Err() == nil {
		for _, origin := range n.registry.Origins() {
			if origin != n.origin && !met[origin] {
				met[origin] = caller{n}.hello(ctx, origin) == nil
			}
		}
		n.w.pause(ctx, 500*time.Millisecond)
	}
}

// times is how often the last part of a path was asked for.
func (w *world) times(what string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked[what]
}

// hello introduces n to who is at an origin.
func (c caller) hello(ctx context.Context, origin string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	b, err := json.Marshal(map[string]json.RawMessage{"card": c.n.card})
	if err != nil {
		return err
	}
	a, err := c.once(ctx, origin, "POST", "/peering/v1/hello", b, 1<<20)
	if err != nil {
		return err
	}
	var v struct{ Card json.RawMessage }
	if err := json.Unmarshal(a.Body, &v); err != nil {
		return err
	}
	r, _, err := c.n.gate.Admit(ctx, v.Card, clock.Now())
	if err != nil {
		return err
	}
	if r.Body.(*record.Card).Origin != origin {
		return errors.New("it is somewhere else")
	}
	c.n.registry.Learned(r.Body.(*record.Card), true)
	return nil
}

func (n *node) halt() {
	n.stop()
	<-n.done
}

func (w *world) end() {
	for _, n := range w.nodes {
		n.stop()
	}
	for _, n := range w.nodes {
		<-n.done
	}
}

// routes is the door, with a door base that believes who asks.
func (n *node) routes(trees *archive.Trees) http.Handler {
	r := chi.NewRouter()
	who := func(w http.ResponseWriter, _ *http.Request) {
		head, _ := n.replica.Head(context.Background(), n.ID)
		json.NewEncoder(w).Encode(map[string]any{"network": recordtest.Network, "portal": n.ID, "origin": n.origin, "card": json.RawMessage(n.card), "head": json.RawMessage(head)})
	}
	records := peer.NewRecords(archive.New(recordtest.Network, n.ID, n.replica, n.registry, trees), n.syncer)
	r.Route("/peering/v1", func(r chi.Router) {
		r.Use(func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				from := r.Context().Value(askedBy{}).(*node)
				if d := n.registry.Decide(r.Context(), from.ID, ""); !d.In {
					refuse(w, 403, "denied")
					return
				}
				if s, _ := n.replica.Standing(r.Context(), from.ID); s.Ring == nil && r.URL.Path != "/peering/v1/hello" {
					refuse(w, 401, "unknown_portal")
					return
				}
				n.registry.Seen(from.ID, 0)
				next.ServeHTTP(w, r)
			})
		})
		r.Post("/hello", func(w http.ResponseWriter, r *http.Request) {
			var v struct{ Card json.RawMessage }
			if err := json.NewDecoder(r.Body).Decode(&v); err != nil {
				refuse(w, 400, "malformed")
				return
			}
			c, _, err := n.gate.Admit(r.Context(), v.Card, clock.Now())
			if err != nil {
				refuse(w, 400, string(record.ReasonOf(err)))
				return
			}
			n.registry.Learned(c.Body.(*record.Card), true)
			who(w, r)
		})
		records.Routes(handles{r})
	})
	return r
}

// handles is a door that believes who asks.
type handles struct{ chi.Router }

func (h handles) Handle(method, pattern string, f peer.Handler, _ peer.Limits) {
	h.MethodFunc(method, pattern, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var out any
		if err == nil {
			out, err = f(r.Context(), guard.Asker{Portal: r.Context().Value(askedBy{}).(*node).ID}, r, body)
		}
		if err != nil {
			e := federation.RefusalOf(err)
			refuse(w, e.Status(), string(e.Reason))
			return
		}
		lines, ok := out.(peer.Lines)
		if !ok {
			json.NewEncoder(w).Encode(out)
			return
		}
		if lines.More {
			w.Header().Set("Agentsite-More", "true")
		}
		var to io.Writer = w
		if r.Header.Get("Accept-Encoding") != "" {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			defer z.Close()
			to = z
		}
		for _, line := range lines.List {
			to.Write(append(slices.Clip(line), '\n'))
		}
	})
}

func refuse(w http.ResponseWriter, status int, reason string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error":{"kind":"x","reason":"%s","message":"x"}}`, reason)
}

// caller calls the other side's door directly.
type caller struct{ n *node }

func (c caller) Do(ctx context.Context, origin string, portal record.PortalID, method, path string, body []byte, limit int64) (*federation.Answer, error) {
	c.n.w.mu.Lock()
	to := c.n.w.at[origin]
	c.n.w.mu.Unlock()
	if to == nil || to.ID != portal {
		err := errors.New("it is not there")
		c.n.registry.Failed(portal, err)
		return nil, err
	}
	a, err := c.once(ctx, origin, method, path, body, limit)
	if err == nil && a.Status == 401 {
		if err := c.hello(ctx, origin); err != nil {
			return nil, err
		}
		a, err = c.once(ctx, origin, method, path, body, limit)
	}
	if err != nil {
		c.n.registry.Failed(portal, err)
		return nil, err
	}
	c.n.registry.Seen(portal, max(a.Took, 1))
	return a, nil
}

func (c caller) once(ctx context.Context, origin, method, path string, body []byte, limit int64) (*federation.Answer, error) {
	w := c.n.w
	w.mu.Lock()
	to, cut := w.at[origin], w.cut
	kind := path[strings.LastIndexByte(strings.SplitN(path, "?", 2)[0], '/')+1:]
	w.asked[strings.SplitN(kind, "?", 2)[0]]++
	w.mu.Unlock()
	if to == nil {
		return nil, errors.New("no such host")
	}
	if cut != nil && (cut(c.n, to) || cut(to, c.n)) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	began := time.Now()
	if err := w.pause(ctx, w.latency); err != nil {
		return nil, err
	}
	r := httptest.NewRequestWithContext(context.WithValue(ctx, askedBy{}, c.n), method, origin+path, strings.NewReader(string(body)))
	r.Header.Set("Accept-Encoding", "gzip")
	rec := httptest.NewRecorder()
	w.mu.Lock()
	door, lie := to.door, to.lie
	w.mu.Unlock()
	if lie != nil {
		lie(rec, r, door)
	} else {
		door.ServeHTTP(rec, r)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err := w.pause(ctx, w.latency); err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.bytes[c.n] += len(body) + rec.Body.Len()
	w.mu.Unlock()
	var in io.Reader = rec.Body
	if rec.Header().Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, err
		}
		in = z
	}
	b, err := io.ReadAll(io.LimitReader(in, limit))
	if err != nil {
		return nil, err
	}
	rec.Header().Set("Date", clock.Now().Format(http.TimeFormat))
	return &federation.Answer{Status: rec.Code, Header: rec.Header(), Body: b, Took: time.Since(began)}, nil
}

func (w *world) pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

type signer struct{ n *node }

func (s signer) ID() record.PortalID { return s.n.ID }
func (s signer) Network() string     { return recordtest.Network }
func (s signer) Origin() string      { return s.n.origin }
func (s signer) Card() []byte        { return s.n.card }
func (s signer) Key(now time.Time) (record.KeyID, ed25519.PrivateKey, time.Time, error) {
	return record.KeyIDOf(record.PublicOf(s.n.Op)), s.n.Op, now.Add(time.Hour), nil
}

// directory is a replication.Directory that remembers.
type directory struct {
	mu      sync.Mutex // guards the rest
	ids     map[string]record.Hash
	put     int // records
	replica *federationtest.Replica
}

// read is what a directory does at its start.
func (d *directory) read(wire []byte) bool {
	if r, err := record.Open(recordtest.Network, wire); err == nil {
		d.ids[r.Body.(*record.Agent).AgentID()] = r.Hash
	}
	return true
}

func (d *directory) Put(_ record.PortalID, list []*record.Record) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.put += len(list)
	for _, r := range list {
		a := r.Body.(*record.Agent)
		if a.Deleted {
			delete(d.ids, a.AgentID())
		} else {
			d.ids[a.AgentID()] = r.Hash
		}
	}
}

func (d *directory) Remove(_ record.PortalID, ids []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range ids {
		delete(d.ids, id)
	}
}

func (d *directory) Changed(record.PortalID) {}

func (d *directory) Clear(portal record.PortalID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.ids, func(id string, _ record.Hash) bool { return strings.HasPrefix(id, string(portal)+"/") })
	if err := d.replica.Covered(context.Background(), portal, 0, d.read); err != nil {
		panic(err) // it is in memory
	}
}

func (d *directory) has(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.ids[id]
	return ok
}

func (d *directory) size() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.ids)
}

func (n *node) admit(r *record.Record) {
	n.w.t.Helper()
	if _, _, err := n.gate.Admit(context.Background(), r.Wire, clock.Now()); err != nil {
		n.w.t.Fatalf("%s: %v", n.Name, err)
	}
}

// register lists agents, without a head.
func (n *node) register(ids ...string) {
	n.w.t.Helper()
	n.Now = clock.Now().UnixMilli()
	for _, id := range ids {
		r := n.Sign(n.w.t, n.Agent(id))
		n.admit(r)
		n.tree.Apply(r)
	}
}

func (n *node) unregister(id string) {
	n.Now = clock.Now().UnixMilli()
	r := n.Sign(n.w.t, n.Gone(id))
	n.admit(r)
	n.tree.Apply(r)
}

// publish makes a head and tells of it.
func (n *node) publish() {
	n.w.t.Helper()
	n.Now = clock.Now().UnixMilli()
	n.admit(n.Sign(n.w.t, n.Head(&n.tree)))
	if n.syncer != nil {
		n.syncer.Published()
	}
}

func (n *node) id(local string) string { return record.AgentID(n.ID, local) }

// holds reports whether what n holds of o is what o lists.
func (n *node) holds(o *node) bool {
	mine, _ := n.replica.Standing(context.Background(), o.ID)
	theirs, _ := o.replica.Standing(context.Background(), o.ID)
	if mine.Head != theirs.Head { // is cheap to know
		return false
	}
	var tree record.Tree
	n.replica.Leaves(context.Background(), o.ID, func(key, hash record.Hash) bool {
		tree.Set(key, hash)
		return true
	})
	return tree.Len() == o.tree.Len() && tree.Root() == o.tree.Root()
}

// current reports whether n says of all that it holds what they list.
func (n *node) current() bool {
	for _, o := range n.w.nodes {
		theirs, _ := o.replica.Standing(context.Background(), o.ID)
		at, _ := n.replica.Position(context.Background(), o.ID)
		if o != n && at != theirs.Head {
			return false
		}
	}
	return true
}

// settled reports whether all hold what all list.
func (w *world) settled() bool {
	for _, n := range w.nodes {
		if !n.current() {
			return false
		}
	}
	for _, n := range w.nodes {
		for _, o := range w.nodes {
			if !n.holds(o) {
				return false
			}
		}
	}
	return true
}

// until waits in virtual time until ok, and fails the test after limit.
func (w *world) until(limit time.Duration, what string, ok func() bool) time.Duration {
	w.t.Helper()
	began := time.Now()
	for {
		synctest.Wait()
		if ok() {
			return time.Since(began)
		}
		if time.Since(began) > limit {
			w.t.Fatalf("after %v: not %s", limit, what)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (n *node) faults(of *node) map[string]int {
	for _, p := range n.registry.Portals(context.Background()) {
		if p.ID == of.ID {
			return p.Faults
		}
	}
	return nil
}

func names(prefix string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%s%d", prefix, i)
	}
	return list
}

func percentile(list []time.Duration, p float64) time.Duration {
	slices.Sort(list)
	return list[int(p*float64(len(list)-1))]
}
