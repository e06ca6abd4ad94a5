// Package overlay connects this portal to the DHT of its network: it signs the contact of the node,
// sends requests to other nodes, checks values, publishes the keys of this portal and finds portals
// and agents. The packages below know only ids and bytes, and federation decides which portals take
// part.
//
// Every value is signed by the portal that it describes, and a lookup leads to at most one call to
// the origin of a card: a node can withhold values, but cannot forge them.
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

// Config holds the parts that an Overlay needs.
type Config struct {
	Self     federation.Signer
	Gate     *record.Gate
	Caller   federation.Caller
	Registry federation.Registry
	// Where returns the origin at which a portal was last reached, empty for none.
	Where func(ctx context.Context, portal record.PortalID) string
	// Records has this portal's head and log.
	Records Records
	Store   federation.DHTStore
	// IDOf returns the network id of an agent that is known here by its handle.
	IDOf func(ctx context.Context, handle string) (string, error)
	// Uncounted reports whether nodes at an address (a name or an IP) are exempt from the group
	// limits: loopback, and networks that the operator allowed.
	Uncounted func(host string) bool
	Log       *slog.Logger
}

// Records is the part of federation.Replica with the heads and logs of portals.
type Records interface {
	// Head returns the newest head of a portal, nil before the first.
	Head(ctx context.Context, portal record.PortalID) ([]byte, error)
	// Log returns signed entries of a portal's log after a number, in order; none at the end.
	Log(ctx context.Context, portal record.PortalID, after int64, limit, maxBytes int) ([][]byte, error)
}

// ownLogPage and ownLogBytes bound how much of the own log is read at once.
const (
	ownLogPage  = 1024
	ownLogBytes = 4 << 20
)

// Overlay is this portal in the DHT. It is safe for concurrent use. Create it with New, then call
// Run.
type Overlay struct {
	cfg      Config
	id       kademlia.ID
	values   values
	mine     mine
	run      *dht.Runner
	contacts contactCache
	// stores bounds the rate of records that one portal may store.
	stores *limit.Keyed

	mu  sync.Mutex // guards the rest
	me  signedContact
	met map[record.PortalID]*kademlia.Contact // the last verified contact that each portal sent

	changed chan struct{} // an entry was published or withdrawn
	refused atomic.Int64  // invalid contacts and values
}

const (
	// storeEvery is the average interval at which one portal may store a record, and storeBurst the
	// number allowed at once: a sweep brings many.
	storeEvery = time.Minute / 200
	storeBurst = 2000
	maxMet     = 16 << 10
)

// New returns an Overlay.
func New(cfg Config) (*Overlay, error) {
	d, ok := cfg.Self.ID().Digest()
	if !ok {
		return nil, fault.New(fault.Internal, "The portal has no id.")
	}
	o := &Overlay{cfg: cfg, id: kademlia.ID(d), stores: limit.New(storeEvery, storeBurst, maxMet),
		met: make(map[record.PortalID]*kademlia.Contact), changed: make(chan struct{}, 1)}
	o.values = values{cfg.Gate, cfg.Registry}
	o.mine = mine{o: o}
	o.run = dht.New(dht.Config{
		Node: kademlia.New(&kademlia.Contact{ID: o.id}, kademlia.Config{
			Rand: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), Values: o.values, Mine: &o.mine,
			Admits: o.admitsNode,
		}),
		Transport: transport{o}, Memory: memory{o}, Seeds: o.loadSeeds, Log: cfg.Log,
	})
	return o, nil
}

// Run takes part in the DHT until ctx ends.
func (o *Overlay) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { o.publishKeys(ctx) })
	wg.Go(func() { o.renewContact(ctx) })
	err := o.run.Run(ctx)
	wg.Wait()
	return err
}

// Runner returns the runner of the node, for measurements.
func (o *Overlay) Runner() *dht.Runner { return o.run }

// Changed notes that the published agents may have changed. It does not block.
func (o *Overlay) Changed() {
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// admitsNode reports whether the policy allows a node: only then it is asked, kept and named to others.
func (o *Overlay) admitsNode(c *kademlia.Contact) bool {
	return o.cfg.Registry.Decide(context.Background(), portalOf(c.ID), c.Address).In
}

// loadSeeds returns verified portals from which the DHT starts.
func (o *Overlay) loadSeeds(ctx context.Context) []*kademlia.Contact {
	now := clock.Now()
	var out []*kademlia.Contact
	for _, p := range o.cfg.Registry.Portals(ctx) {
		if d, ok := p.ID.Digest(); ok && p.Proven(now) {
			out = append(out, &kademlia.Contact{ID: kademlia.ID(d)})
		}
	}
	return out
}

// Hear notes a portal that may take part.
func (o *Overlay) Hear(portal record.PortalID) {
	if d, ok := portal.Digest(); ok {
		o.run.NoteNode(&kademlia.Contact{ID: kademlia.ID(d)})
	}
}

// Forget removes the records and the contact of a portal.
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
