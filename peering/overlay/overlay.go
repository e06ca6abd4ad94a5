// Package overlay connects this portal to the DHT of its network: it signs the contact of its node, sends
// requests to other nodes, validates values, publishes the keys of this portal, and looks up portals and
// agents. Packages kademlia and dht know only ids and bytes; federation decides which portals take part.
//
// Every value is signed by the portal that it describes, and a lookup leads to at most one call to the
// origin of a card: a node can withhold values, but cannot forge them.
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

// Config is the configuration of an Overlay. Every field is required.
type Config struct {
	Self     federation.Signer
	Gate     *record.Gate
	Caller   federation.Caller
	Registry federation.Registry
	// Where returns the origin at which a portal was last reached, "" if none is known.
	Where func(ctx context.Context, portal record.PortalID) string
	// Records reads this portal's own head and log.
	Records Records
	Store   federation.DHTStore
	// IDOf returns the network id of the agent with a handle. It may send requests to other portals.
	IDOf func(ctx context.Context, handle string) (string, error)
	// Uncounted reports whether nodes at a host (a name or an IP address) are exempt from the limits for
	// one operator: loopback, and networks that the operator allowed.
	Uncounted func(host string) bool
	Log       *slog.Logger
}

// Records is the part of federation.Replica that reads heads and logs.
type Records interface {
	// Head returns the newest head of a portal, nil if none is held.
	Head(ctx context.Context, portal record.PortalID) ([]byte, error)
	// Log returns the entries of a portal's log with a seq above after, in order: at most limit, and about
	// maxBytes. An empty result means the end of the log.
	Log(ctx context.Context, portal record.PortalID, after int64, limit, maxBytes int) ([][]byte, error)
}

// ownLogPage and ownLogBytes bound how much of the own log is read at once, in entries and bytes.
const (
	ownLogPage  = 1024
	ownLogBytes = 4 << 20
)

// Overlay is the membership of this portal in the DHT. Create it with New and keep Run running. It is safe
// for concurrent use.
type Overlay struct {
	cfg      Config
	id       kademlia.ID
	values   values
	mine     mine
	run      *dht.Runner
	contacts contactCache
	// stores limits the rate of records that one portal may store here.
	stores *limit.Keyed

	mu  sync.Mutex // guards me and met
	me  signedContact
	met map[record.PortalID]*kademlia.Contact // contact of each portal that sent a request, verified

	changed chan struct{} // signals publishKeys that the log may have changed; capacity 1
	refused atomic.Int64  // invalid contacts and answers received
}

const (
	// One portal may store a record in each storeEvery on average, and storeBurst at once, because it
	// publishes all keys of a region together. maxMet bounds the portals tracked for this, and met.
	storeEvery = time.Minute / 200
	storeBurst = 2000
	maxMet     = 16 << 10
)

// New returns an Overlay. It sends nothing until Run. It fails if the portal has no valid id.
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

// Run takes part in the DHT until ctx ends. It returns after all its goroutines have ended and the state
// was saved.
func (o *Overlay) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { o.publishKeys(ctx) })
	wg.Go(func() { o.renewContact(ctx) })
	err := o.run.Run(ctx)
	wg.Wait()
	return err
}

// Runner returns the runner of the node, for measurements and tests.
func (o *Overlay) Runner() *dht.Runner { return o.run }

// Changed must be called when the published agents may have changed. It does not block.
func (o *Overlay) Changed() {
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// admitsNode implements kademlia.Config.Admits by the policy on the node's portal.
func (o *Overlay) admitsNode(c *kademlia.Contact) bool {
	return o.cfg.Registry.Decide(context.Background(), portalOf(c.ID), c.Address).In
}

// loadSeeds implements dht.Config.Seeds: it returns the known portals with a verified address.
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

// Hear reports a portal that may take part in the DHT. The node pings it when there is room in its table.
func (o *Overlay) Hear(portal record.PortalID) {
	if d, ok := portal.Digest(); ok {
		o.run.NoteNode(&kademlia.Contact{ID: kademlia.ID(d)})
	}
}

// Forget removes a portal's contact and the records that it published, because the policy denies it now.
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
