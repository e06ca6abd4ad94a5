// Package dht runs a kademlia.Node, which is a state machine without I/O: it provides the clock and the
// lock, sends the node's requests through a Transport, and saves the node's contacts and records across
// restarts. It does not interpret the records.
package dht

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"agentsite/peering/kademlia"
)

// Transport sends requests to other nodes. It must be safe for concurrent use.
type Transport interface {
	// Call sends a request and returns the answer, and the groups of the other node that the connection
	// showed but its contact may not list. It must return when ctx ends. An error means that there was no
	// answer, or an invalid one.
	Call(ctx context.Context, to *kademlia.Contact, r *kademlia.Request) (*kademlia.Response, []kademlia.Group, error)
}

// Memory stores the contacts and records of a node across restarts. It must be safe for concurrent use.
type Memory interface {
	// Contacts returns the stored contacts, best first; KeepContacts replaces all of them.
	Contacts(ctx context.Context) ([]*kademlia.Contact, error)
	KeepContacts(ctx context.Context, all []*kademlia.Contact) error
	// Records calls yield with the stored records until it returns false. KeepRecords adds records,
	// replaces those of the same key and publisher, and removes expired ones.
	Records(ctx context.Context, yield func(kademlia.Record) bool) error
	KeepRecords(ctx context.Context, more []kademlia.Kept) error
	// Forget removes the records of a publisher, and its contact.
	Forget(ctx context.Context, publisher kademlia.ID) error
}

// Config is the configuration of a Runner. Memory and Seeds are optional.
type Config struct {
	Node      *kademlia.Node
	Transport Transport
	Memory    Memory // nil to store nothing
	// Seeds returns contacts to start from, in addition to the stored ones. It is called every seedEvery
	// while the node has no contacts, and may take long. nil for none.
	Seeds func(ctx context.Context) []*kademlia.Contact
	Log   *slog.Logger
	// KeepEvery is the interval of writes to Memory; 0 for 5 min. Memory is also written when Run ends.
	KeepEvery time.Duration
}

const (
	// maxCalls bounds the requests in flight; further ones wait in a queue.
	maxCalls = 128
	// callTimeout ends a request that hangs. It is longer than kademlia's hard limit, after which the node
	// ignores the answer.
	callTimeout = 5 * time.Second
	// seedEvery is the interval of calls of Config.Seeds.
	seedEvery = 15 * time.Second
)

// Runner drives one node while Run runs. It is safe for concurrent use.
type Runner struct {
	cfg  Config
	poke chan struct{} // wakes Run; capacity 1

	mu      sync.Mutex // guards the fields below and the node
	node    *kademlia.Node
	waiting []waiting
	queue   []kademlia.Call // requests that wait because maxCalls are in flight
	calls   int             // number of requests in flight
	next    time.Time       // time of the node's next step
	running context.Context // context of Run; nil before and after
	senders sync.WaitGroup
}

// waiting is a caller of waitUntil and the condition for which it waits.
type waiting struct {
	so   func() bool
	done chan struct{}
}

// ErrStopped is returned by methods that need Run while it does not run.
var ErrStopped = errors.New("the DHT is not running")

// New returns a Runner. The caller must not use cfg.Node any more, because the Runner's lock guards it.
func New(cfg Config) *Runner {
	if cfg.KeepEvery == 0 {
		cfg.KeepEvery = 5 * time.Minute
	}
	return &Runner{cfg: cfg, node: cfg.Node, poke: make(chan struct{}, 1)}
}

// Run drives the node until ctx ends. It returns after the last request has ended and Memory was written. A
// failure to read Memory is only logged.
func (r *Runner) Run(ctx context.Context) error {
	if err := r.loadContacts(ctx); err != nil {
		r.cfg.Log.Warn("load the stored contacts of the DHT", "error", err)
	}
	r.mu.Lock()
	r.running = ctx
	r.mu.Unlock()
	var others sync.WaitGroup
	others.Go(func() { r.seedNode(ctx) })
	if r.cfg.Memory != nil {
		others.Go(func() { r.saveRegularly(ctx) })
	}

	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			continue
		case <-timer.C:
		case <-r.poke:
		}
		r.mu.Lock()
		now := time.Now()
		r.next = r.stepNode(now)
		wait := r.next.Sub(now)
		r.mu.Unlock()
		timer.Reset(max(wait, time.Millisecond))
	}

	r.mu.Lock()
	r.running, r.queue = nil, nil
	for _, w := range r.waiting {
		close(w.done)
	}
	r.waiting = nil
	r.mu.Unlock()
	r.senders.Wait()
	others.Wait()
	return nil
}

// updateNode calls do with the node while it holds mu, and then steps the node. It returns false, without
// calling do, if Run does not run.
func (r *Runner) updateNode(do func(n *kademlia.Node, now time.Time)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running == nil {
		return false
	}
	now := time.Now()
	do(r.node, now)
	if r.stepNode(now).Before(r.next) {
		select {
		case r.poke <- struct{}{}:
		default:
		}
	}
	return true
}

// stepNode polls the node, starts its requests, and returns the time of the next step. The caller holds mu.
func (r *Runner) stepNode(now time.Time) time.Time {
	r.queue = append(r.queue, r.node.Poll(now)...)
	for len(r.queue) > 0 && r.calls < maxCalls {
		c := r.queue[0]
		r.queue[0] = kademlia.Call{}
		r.queue = r.queue[1:]
		r.calls++
		ctx := r.running
		r.senders.Go(func() { r.sendCall(ctx, c) })
	}
	still := r.waiting[:0]
	for _, w := range r.waiting {
		if w.so() {
			close(w.done)
		} else {
			still = append(still, w)
		}
	}
	clear(r.waiting[len(still):])
	r.waiting = still
	return r.node.Wake(now)
}

// sendCall sends one request and passes the result to the node. The node ends slow requests by its own
// clock; the timeout here only ends those that hang.
func (r *Runner) sendCall(ctx context.Context, c kademlia.Call) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, near, err := r.cfg.Transport.Call(ctx, c.To, &c.Request)
	if !r.updateNode(func(n *kademlia.Node, now time.Time) {
		r.calls--
		if err != nil {
			n.Fail(c.ID, now)
		} else {
			n.Answer(c.ID, resp, near, now)
		}
	}) {
		r.mu.Lock()
		r.calls--
		r.mu.Unlock()
	}
}

// waitUntil starts an operation and waits until it is done, ctx ends or the Runner stops. begin starts the
// operation and returns the condition, which is checked after each step. Both are called with mu held and
// must not block.
func (r *Runner) waitUntil(ctx context.Context, begin func(n *kademlia.Node, now time.Time) func() bool) error {
	done := make(chan struct{})
	if !r.updateNode(func(n *kademlia.Node, now time.Time) {
		r.waiting = append(r.waiting, waiting{begin(n, now), done})
	}) {
		return ErrStopped
	}
	select {
	case <-done:
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.running == nil {
			return ErrStopped
		}
		return nil
	case <-ctx.Done():
		r.mu.Lock()
		defer r.mu.Unlock()
		for i, w := range r.waiting {
			if w.done == done {
				r.waiting = append(r.waiting[:i], r.waiting[i+1:]...)
				break
			}
		}
		return context.Cause(ctx)
	}
}

// Trace describes how a lookup went, for display to operators and for measurements.
type Trace struct {
	Took              time.Duration
	RPCs, Hops, Paths int
	// Holders is the number of other nodes that returned a value.
	Holders int
	// Nearest are the nodes nearest to the target that answered, nearest first.
	Nearest []*kademlia.Contact
}

// Get returns the values under a key. With holders > 0 the lookup ends when that many nodes returned
// values; with 0 all nodes that should have one are asked. No value is not an error. An error means that
// the lookup did not end; values may then hold those found so far.
func (r *Runner) Get(ctx context.Context, key kademlia.ID, holders int) (values []kademlia.Value, t Trace, err error) {
	return r.runLookup(ctx, func(n *kademlia.Node, now time.Time) *kademlia.Lookup { return n.Get(key, holders, now) })
}

// FindNodes returns the nodes nearest to a target in Trace.Nearest, nearest first.
func (r *Runner) FindNodes(ctx context.Context, target kademlia.ID) (Trace, error) {
	_, t, err := r.runLookup(ctx, func(n *kademlia.Node, now time.Time) *kademlia.Lookup { return n.Find(target, now) })
	return t, err
}

func (r *Runner) runLookup(ctx context.Context,
	begin func(*kademlia.Node, time.Time) *kademlia.Lookup) (values []kademlia.Value, t Trace, err error) {
	var l *kademlia.Lookup
	began := time.Now()
	err = r.waitUntil(ctx, func(n *kademlia.Node, now time.Time) func() bool {
		l = begin(n, now)
		return l.Over
	})
	if l == nil {
		return nil, t, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		l.Cancel()
	}
	return l.Values(), Trace{Took: time.Since(began), RPCs: l.RPCs(), Hops: l.Hops(), Paths: l.Paths(),
		Holders: l.Holders(), Nearest: l.Nearest()}, err
}

// Put stores a record at the nodes nearest to its key. It returns as soon as enough nodes have stored it,
// with their number; the rest continues in the background.
func (r *Runner) Put(ctx context.Context, rec kademlia.Record) (stored int, err error) {
	var p *kademlia.Put
	err = r.waitUntil(ctx, func(n *kademlia.Node, now time.Time) func() bool {
		p = n.Put(rec, now)
		return p.Enough
	})
	if p == nil {
		return 0, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return p.Stored(), err
}

// Publish stores all records of the node's Source again, from now on or from the start of Run. It does not
// wait.
func (r *Runner) Publish() {
	if !r.updateNode(func(n *kademlia.Node, _ time.Time) { n.Publish() }) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.node.Publish()
	}
}

// Serve answers a request of another node; from is nil if the sender's contact is unknown. It returns
// ErrStopped while Run does not run.
func (r *Runner) Serve(from *kademlia.Contact, req *kademlia.Request) (resp *kademlia.Response, err error) {
	if !r.updateNode(func(n *kademlia.Node, now time.Time) { resp = n.Serve(from, req, now) }) {
		return nil, ErrStopped
	}
	return resp, nil
}

// NoteNode reports a node that may exist, see kademlia.Node.Hear.
func (r *Runner) NoteNode(c *kademlia.Contact) {
	r.updateNode(func(n *kademlia.Node, now time.Time) { n.Hear(c, now) })
}

// Forget removes a node from the table, and the records that it published from the node's store and from
// Memory.
func (r *Runner) Forget(ctx context.Context, id kademlia.ID) error {
	r.updateNode(func(n *kademlia.Node, _ time.Time) { n.Forget(id) })
	if r.cfg.Memory == nil {
		return nil
	}
	return r.cfg.Memory.Forget(ctx, id)
}

// SetContact replaces the node's own contact by a newer version.
func (r *Runner) SetContact(self *kademlia.Contact) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.node.Renew(self)
}

// ViewNode calls see with the node while it holds the lock. see must neither change nor keep the node.
func (r *Runner) ViewNode(see func(*kademlia.Node)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	see(r.node)
}
