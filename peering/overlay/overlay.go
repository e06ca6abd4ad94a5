// Package overlay is this portal's place in the DHT of its network: what a node
// says of where it is reached, how others are asked, what values are and which
// this portal sees to, and what is looked for. The DHT itself knows ids and
// bytes only, and federation who may take part.
//
// All that comes is signed by who it is about, and what is found leads to at
// most one call at the origin that a card names: a node can withhold, but not
// invent.
package overlay

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/limit"
	"agentsite/internal/record"
	"agentsite/peering/dht"
	"agentsite/peering/kademlia"
)

// Config is what an Overlay needs.
type Config struct {
	Self     federation.Signer
	Gate     *record.Gate
	Caller   federation.Caller
	Registry federation.Registry
	// Known are portals to begin with, beside those remembered; Where is the
	// origin at which one was last seen, empty for none.
	Known func(ctx context.Context) []federation.Peer
	Where func(ctx context.Context, portal record.PortalID) string
	// Entries returns entries of this portal's log behind the number after, in order,
	// as they are signed; none at the end. Head is its newest head, nil before
	// the first.
	Entries func(ctx context.Context, after int64) ([][]byte, error)
	Head    func(ctx context.Context) ([]byte, error)
	Store   federation.DHTStore
	// IDOf returns the id in the network of an agent that is known here by its
	// handle.
	IDOf func(ctx context.Context, handle string) (string, error)
	// Uncounted says of an address, a name or an IP, that nodes there are not
	// counted together: loopback, and networks that the operator allowed.
	Uncounted func(host string) bool
	Log       *slog.Logger
}

// Overlay is this portal in the DHT. It is safe for concurrent use. Create it
// with New, and Run it.
type Overlay struct {
	cfg    Config
	id     kademlia.ID
	values values
	mine   mine
	run    *dht.Runner
	named  named
	// stores bounds the records that one portal brings.
	stores *limit.Keyed

	mu  sync.Mutex // guards the rest
	me  signedContact
	met map[record.PortalID]*kademlia.Contact // that each last sent, which was verified

	changed chan struct{} // something is published or withdrawn
	refused atomic.Int64  // contacts and values that did not hold
}

const (
	// storeEvery is how often one portal may bring a record, on average, and
	// storeBurst how many at once: a sweep brings many.
	storeEvery = time.Minute / 200
	storeBurst = 2000
	maxMet     = 16 << 10
)

// New returns the portal's place in the DHT.
func New(cfg Config) (*Overlay, error) {
	d, ok := cfg.Self.ID().Digest()
	if !ok {
		return nil, fault.New(fault.Internal, "The portal has no id.")
	}
	o := &Overlay{cfg: cfg, id: kademlia.ID(d), stores: limit.New(storeEvery, storeBurst, maxMet), met: make(map[record.PortalID]*kademlia.Contact), changed: make(chan struct{}, 1)}
	o.values = values{cfg.Gate, cfg.Registry}
	o.mine = mine{o: o}
	o.run = dht.New(dht.Config{
		Node: kademlia.New(&kademlia.Contact{ID: o.id}, kademlia.Config{
			Rand: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), Values: o.values, Mine: &o.mine, Admits: o.admits,
		}),
		Transport: transport{o}, Memory: memory{o}, Seeds: o.seeds, Log: cfg.Log,
	})
	return o, nil
}

// Run takes part until ctx ends.
func (o *Overlay) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { o.publish(ctx) })
	wg.Go(func() { o.sayWhere(ctx) })
	err := o.run.Run(ctx)
	wg.Wait()
	return err
}

// Runner is what finds and keeps for the portal, for who measures it.
func (o *Overlay) Runner() *dht.Runner { return o.run }

// Changed tells that what this portal publishes may have changed. It does not
// block.
func (o *Overlay) Changed() {
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// admits says whether a node is dealt with: asked, kept, named to others.
func (o *Overlay) admits(c *kademlia.Contact) bool {
	return o.cfg.Registry.Decide(context.Background(), portalOf(c.ID), c.Address).In
}

// seeds are portals that answered here, with which the DHT begins.
func (o *Overlay) seeds(ctx context.Context) []*kademlia.Contact {
	now := clock.Now()
	var out []*kademlia.Contact
	for _, p := range o.cfg.Known(ctx) {
		if d, ok := p.ID.Digest(); ok && p.Proven(now) {
			out = append(out, &kademlia.Contact{ID: kademlia.ID(d)})
		}
	}
	return out
}

// Hear tells of a portal that may take part.
func (o *Overlay) Hear(portal record.PortalID) {
	if d, ok := portal.Digest(); ok {
		o.run.Hear(&kademlia.Contact{ID: kademlia.ID(d)})
	}
}

// Forget lets go of all that a portal said, and of where it is.
func (o *Overlay) Forget(ctx context.Context, portal record.PortalID) error {
	d, ok := portal.Digest()
	if !ok {
		return nil
	}
	o.mu.Lock()
	delete(o.met, portal)
	o.mu.Unlock()
	return o.run.Forget(ctx, kademlia.ID(d))
}
