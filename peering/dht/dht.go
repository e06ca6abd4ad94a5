// Package dht runs a kademlia.Node: it owns its time, its lock and its
// requests, which it sends through a Transport, and keeps over a restart what
// the node knew. What stands in records it does not know either.
package dht

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"agentsite/peering/kademlia"
)

// Transport asks other nodes. It is safe for concurrent use.
type Transport interface {
	// Call sends a request and returns the answer, and near whom the other one
	// was seen to be: groups that its contact does not tell of. It ends with ctx.
	// An error means that nobody answered, or something else than was asked.
	Call(ctx context.Context, to *kademlia.Contact, r *kademlia.Request) (*kademlia.Response, []kademlia.Group, error)
}

// Memory keeps what a node should know after a restart. It is safe for
// concurrent use.
type Memory interface {
	// Contacts returns those that were kept, the best first; KeepContacts
	// replaces them.
	Contacts(ctx context.Context) ([]*kademlia.Contact, error)
	KeepContacts(ctx context.Context, all []*kademlia.Contact) error
	// Records calls yield with the records that were kept, until it returns
	// false. KeepRecords adds some, in place of those of the same key and
	// publisher, and lets go of those that are over.
	Records(ctx context.Context, yield func(kademlia.Record) bool) error
	KeepRecords(ctx context.Context, more []kademlia.Kept) error
	// Forget lets go of what a publisher said, and of its contact.
	Forget(ctx context.Context, publisher kademlia.ID) error
}

// Config is what a Runner needs.
type Config struct {
	Node      *kademlia.Node
	Transport Transport
	Memory    Memory // nil to begin anew with each start
	// Seeds are asked for nodes to begin with whenever the node knows nobody,
	// beside those that were kept. It may take its time.
	Seeds func(ctx context.Context) []*kademlia.Contact
	Log   *slog.Logger
	// KeepEvery is how often Memory is written: 5 min. It is at the end, too.
	KeepEvery time.Duration
}

const (
	// maxCalls bounds the requests that are sent at the same time; others wait.
	maxCalls = 128
	// callTimeout is longer than a node waits for any.
	callTimeout = 5 * time.Second
	// seedEvery is how often Seeds is asked while nobody is known.
	seedEvery = 15 * time.Second
)

// Runner drives one node. It is safe for concurrent use.
type Runner struct {
	cfg  Config
	poke chan struct{} // the loop is to look at the node again

	mu      sync.Mutex // guards the rest, the node included
	node    *kademlia.Node
	waiting []waiting
	queue   []kademlia.Call // that wait for others to end
	calls   int             // that are being sent
	next    time.Time       // when the loop looks at the node
	running context.Context // of Run, nil before and after
	senders sync.WaitGroup
}

// waiting is somebody who waits for the node to get somewhere.
type waiting struct {
	so   func() bool
	done chan struct{}
}

// ErrStopped is of what is asked of a Runner that does not run.
var ErrStopped = errors.New("the DHT does not run")

// New returns a Runner; the node is its own from now on.
func New(cfg Config) *Runner {
	if cfg.KeepEvery == 0 {
		cfg.KeepEvery = 5 * time.Minute
	}
	return &Runner{cfg: cfg, node: cfg.Node, poke: make(chan struct{}, 1)}
}

// Run drives the node until ctx ends, and returns when all of its requests
// have. What the node knows is kept then.
func (r *Runner) Run(ctx context.Context) error {
	if err := r.recall(ctx); err != nil {
		r.cfg.Log.Warn("whom the DHT knew is lost", "error", err)
	}
	r.mu.Lock()
	r.running = ctx
	r.mu.Unlock()
	var others sync.WaitGroup
	others.Go(func() { r.seed(ctx) })
	if r.cfg.Memory != nil {
		others.Go(func() { r.keepOften(ctx) })
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
		r.next = r.turn(now)
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

// with does something to the node and lets it go on. It reports false if the
// Runner does not run, and nothing was done.
func (r *Runner) with(do func(n *kademlia.Node, now time.Time)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running == nil {
		return false
	}
	now := time.Now()
	do(r.node, now)
	if r.turn(now).Before(r.next) {
		select {
		case r.poke <- struct{}{}:
		default:
		}
	}
	return true
}

// turn lets the node do what it can, and returns when it wants to be asked
// again. The caller holds mu.
func (r *Runner) turn(now time.Time) time.Time {
	r.queue = append(r.queue, r.node.Poll(now)...)
	for len(r.queue) > 0 && r.calls < maxCalls {
		c := r.queue[0]
		r.queue[0] = kademlia.Call{}
		r.queue = r.queue[1:]
		r.calls++
		ctx := r.running
		r.senders.Go(func() { r.send(ctx, c) })
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

// send makes one call. The node gives it up by its own clock; this one only
// keeps what hangs from staying for ever.
func (r *Runner) send(ctx context.Context, c kademlia.Call) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, near, err := r.cfg.Transport.Call(ctx, c.To, &c.Request)
	if !r.with(func(n *kademlia.Node, now time.Time) {
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

// until waits for the node to get somewhere. Begin starts it and returns what
// is asked after each turn; it is called under the lock, as is what it returns.
func (r *Runner) until(ctx context.Context, begin func(n *kademlia.Node, now time.Time) func() bool) error {
	done := make(chan struct{})
	if !r.with(func(n *kademlia.Node, now time.Time) {
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

// Trace is how a lookup went.
type Trace struct {
	Took              time.Duration
	RPCs, Hops, Paths int
	// Holders is how many other nodes gave something.
	Holders int
	// Nearest are the nodes nearest to what was looked for that answered.
	Nearest []*kademlia.Contact
}

// Get returns the values under a key: what the first of holders nodes gave that
// have any, or what all gave that should, for 0. None is no error; one means
// that the lookup did not come to its end.
func (r *Runner) Get(ctx context.Context, key kademlia.ID, holders int) (values []kademlia.Value, t Trace, err error) {
	return r.look(ctx, func(n *kademlia.Node, now time.Time) *kademlia.Lookup { return n.Get(key, holders, now) })
}

// Find returns the nodes nearest to a target, nearest first.
func (r *Runner) Find(ctx context.Context, target kademlia.ID) (Trace, error) {
	_, t, err := r.look(ctx, func(n *kademlia.Node, now time.Time) *kademlia.Lookup { return n.Find(target, now) })
	return t, err
}

func (r *Runner) look(ctx context.Context, begin func(*kademlia.Node, time.Time) *kademlia.Lookup) (values []kademlia.Value, t Trace, err error) {
	var l *kademlia.Lookup
	began := time.Now()
	err = r.until(ctx, func(n *kademlia.Node, now time.Time) func() bool {
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
	return l.Values(), Trace{Took: time.Since(began), RPCs: l.RPCs(), Hops: l.Hops(), Paths: l.Paths(), Holders: l.Holders(), Nearest: l.Nearest()}, err
}

// Put stores a record, and returns at how many nodes once it is at enough of
// them; it goes on to those that are left.
func (r *Runner) Put(ctx context.Context, rec kademlia.Record) (stored int, err error) {
	var p *kademlia.Put
	err = r.until(ctx, func(n *kademlia.Node, now time.Time) func() bool {
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

// Publish stores all records of the node's Source anew, beginning now, or with
// Run.
func (r *Runner) Publish() {
	if !r.with(func(n *kademlia.Node, _ time.Time) { n.Publish() }) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.node.Publish()
	}
}

// Serve answers a request of another node, nil if it is not known who that is.
func (r *Runner) Serve(from *kademlia.Contact, req *kademlia.Request) (resp *kademlia.Response, err error) {
	if !r.with(func(n *kademlia.Node, now time.Time) { resp = n.Serve(from, req, now) }) {
		return nil, ErrStopped
	}
	return resp, nil
}

// Hear tells of a node that may be there.
func (r *Runner) Hear(c *kademlia.Contact) {
	r.with(func(n *kademlia.Node, now time.Time) { n.Hear(c, now) })
}

// Forget takes a node out of the table, and what it published off the shelf.
func (r *Runner) Forget(ctx context.Context, id kademlia.ID) error {
	r.with(func(n *kademlia.Node, _ time.Time) { n.Forget(id) })
	if r.cfg.Memory == nil {
		return nil
	}
	return r.cfg.Memory.Forget(ctx, id)
}

// Renew replaces what the node says of itself.
func (r *Runner) Renew(self *kademlia.Contact) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.node.Renew(self)
}

// Look calls see with the node, which must not be changed or kept.
func (r *Runner) Look(see func(*kademlia.Node)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	see(r.node)
}
