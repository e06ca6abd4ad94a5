package dht_test

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentsite/peering/dht"
	"agentsite/peering/kademlia"
)

// memnet is a network in memory: requests take their time, of the clock that
// the test owns, and nodes can be dead or mute.
type memnet struct {
	t     testing.TB
	rand  *rand.Rand
	rtt   time.Duration
	mu    sync.Mutex // guards the rest
	nodes map[kademlia.ID]*memnode
	order []*memnode
	rpcs  atomic.Int64
}

type memnode struct {
	*dht.Runner
	self   *kademlia.Contact
	memory *memory
	stop   context.CancelFunc
	ended  chan struct{}
	state  atomic.Int32
}

const (
	up int32 = iota
	refuses
	silent
)

var errRefused = errors.New("connection refused")

func newNet(t testing.TB, seed uint64, rtt time.Duration) *memnet {
	return &memnet{t: t, rand: rand.New(rand.NewPCG(seed, 0)), rtt: rtt, nodes: make(map[kademlia.ID]*memnode)}
}

func (m *memnet) id() (id kademlia.ID) {
	for i := 0; i < len(id); i += 8 {
		binary.BigEndian.PutUint64(id[i:], m.rand.Uint64())
	}
	return id
}

// add starts a node that knows another one.
func (m *memnet) add(through *memnode) *memnode {
	n := &memnode{self: &kademlia.Contact{ID: m.id()}, memory: new(memory)}
	var known []*kademlia.Contact
	if through != nil {
		known = append(known, through.self)
	}
	m.start(n, known)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.nodes[n.self.ID] = n
	m.order = append(m.order, n)
	return n
}

func (m *memnet) start(n *memnode, seeds []*kademlia.Contact) {
	ctx, cancel := context.WithCancel(context.Background())
	n.stop, n.ended = cancel, make(chan struct{})
	n.Runner = dht.New(dht.Config{
		Node:      kademlia.New(n.self, kademlia.Config{Rand: rand.New(rand.NewPCG(m.rand.Uint64(), 1)), Values: anything{}}),
		Transport: carrier{m, n},
		Memory:    n.memory,
		Seeds:     func(context.Context) []*kademlia.Contact { return seeds },
		Log:       slog.New(slog.DiscardHandler),
	})
	n.state.Store(up)
	ended := n.ended
	run := n.Runner
	go func() {
		defer close(ended)
		run.Run(ctx)
	}()
}

// end stops a node and waits for it.
func (n *memnode) end() {
	n.state.Store(refuses)
	n.stop()
	<-n.ended
}

func (m *memnet) close() {
	for _, n := range m.order {
		n.stop()
	}
	for _, n := range m.order {
		<-n.ended
	}
}

func (m *memnet) any() *memnode {
	for {
		if n := m.order[m.rand.IntN(len(m.order))]; n.state.Load() == up {
			return n
		}
	}
}

// carrier is the Transport of one node.
type carrier struct {
	m    *memnet
	from *memnode
}

func (c carrier) Call(ctx context.Context, to *kademlia.Contact, r *kademlia.Request) (*kademlia.Response, []kademlia.Group, error) {
	c.m.rpcs.Add(1)
	c.m.mu.Lock()
	n := c.m.nodes[to.ID]
	c.m.mu.Unlock()
	if err := pass(ctx, c.m.rtt/2); err != nil {
		return nil, nil, err
	}
	if n == nil || n.state.Load() == refuses {
		return nil, nil, errRefused
	}
	if n.state.Load() == silent {
		<-ctx.Done()
		return nil, nil, context.Cause(ctx)
	}
	resp, err := n.Serve(c.from.self, r)
	if err != nil {
		return nil, nil, err
	}
	return resp, nil, pass(ctx, c.m.rtt/2)
}

func pass(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// anything is a Validator that believes all: 32 bytes of publisher come first.
type anything struct{}

func (anything) Validate(_ kademlia.ID, b []byte) (kademlia.Entry, error) {
	if len(b) < 32 {
		return kademlia.Entry{}, errors.New("it is cut short")
	}
	return kademlia.Entry{Publisher: kademlia.ID(b[:32]), Expires: time.Now().Add(24 * time.Hour)}, nil
}

// memory is a Memory that works.
type memory struct {
	mu       sync.Mutex
	contacts []*kademlia.Contact
	records  []kademlia.Kept
}

func (m *memory) Contacts(context.Context) ([]*kademlia.Contact, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.contacts), nil
}

func (m *memory) KeepContacts(_ context.Context, all []*kademlia.Contact) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.contacts = all
	return nil
}

func (m *memory) Records(_ context.Context, yield func(kademlia.Record) bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.records {
		if !yield(r.Record) {
			break
		}
	}
	return nil
}

func (m *memory) KeepRecords(_ context.Context, more []kademlia.Kept) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range more {
		m.records = slices.DeleteFunc(m.records, func(h kademlia.Kept) bool { return h.Key == k.Key && h.Publisher == k.Publisher })
		m.records = append(m.records, k)
	}
	return nil
}

func (m *memory) Forget(_ context.Context, publisher kademlia.ID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records = slices.DeleteFunc(m.records, func(h kademlia.Kept) bool { return h.Publisher == publisher })
	m.contacts = slices.DeleteFunc(m.contacts, func(c *kademlia.Contact) bool { return c.ID == publisher })
	return nil
}

// remembers counts what is kept.
func (m *memory) remembers() (contacts, records int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.contacts), len(m.records)
}
