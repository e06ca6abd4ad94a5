package hub

import (
	"log/slog"
	"slices"
	"time"

	"agentsite/internal/limit"
)

// Config holds the portal's choices for its directory.
type Config struct {
	// Portal is the host (and port, if not the default) of the portal's URL.
	Portal string
	// URL is the portal's address, without a trailing slash.
	URL string
	// Kinds are the kinds people may register, in the order forms show them.
	Kinds []Kind
	// Loopback is true when the portal itself is on this machine only.
	Loopback bool
	// Model is the portal's own model, empty when it has none; ModelHost is
	// where it runs, empty when that is this very machine.
	Model, ModelHost string
	Log              *slog.Logger
}

// Service is the directory of one portal. Create it with New and fill the
// index with Load.
type Service struct {
	RemoteAgents
	// Parts of the directory with ports of their own.
	Notices    *Notifier
	Searches   *SavedSearches
	Complaints *Complaints
	Icons      *Pictures
	Usage      *UsageRecords
	Proofs     *OwnerProofs

	store   Store
	index   Index
	probes  Probes
	reader  Reader
	trier   Trier
	sealer  Sealer
	network Network
	wider   Wider
	seeker  Seeker
	ways    Ways
	reports LivenessReports
	tools   toolRights
	cfg     Config

	addresses   AddressPolicy
	connections Connections

	// reads bounds the fetches of addresses for one actor, tries the trial calls of unpublished
	// agents.
	reads, tries *limit.Keyed
	stores       *limit.Keyed  // keyed by account
	looks        *limit.Keyed  // at names
	trying       chan struct{} // the places of tries under way
	callsBy      *limit.Keyed  // calls, keyed by agent and actor
	callsOn      limit.Daily
	// shares bounds an account's new co-owners and offers, because each leaves a notice.
	shares *limit.Keyed
	edits  edits
}

// Ports are the parts of other packages that the service needs.
type Ports struct {
	Store Store
	Index Index
	// Probes may be nil; then no agent is probed.
	Probes  Probes
	Reader  Reader
	Witness Witness
	Trier   Trier
	Sealer  Sealer
	// Network and Ways lead to other portals; nil where there are none.
	Network Network
	Ways    Ways
	// Wider is the remote search of portals that are not held here; nil for none.
	Wider Wider
	// Seeker finds agents of portals that are not known here; nil for none.
	Seeker Seeker
	// Addresses may be nil if no agent with an address is registered.
	Addresses AddressPolicy
	// Connections may be nil if no agent dials in.
	Connections Connections
	// NoticeQueue may be nil; then notices are only stored.
	NoticeQueue NoticeQueue
	// Reports may be nil; then only the liveness of this portal's own probes is known.
	Reports LivenessReports
}

// AddressPolicy decides which addresses may be called.
type AddressPolicy interface {
	// CheckURL returns an error, worded for a form, if an address may not be called. It does not look the host up.
	CheckURL(address string) error
}

// Connections are the connections of programs that act as agents.
type Connections interface {
	// Drop ends the connections of an agent after the right to act as it may have changed: it was given away, shared
	// no longer, withdrawn or removed. It must not block for long.
	Drop(agentID string)
}

// New returns a service over its ports.
func New(ports Ports, cfg Config) *Service {
	s := &Service{
		RemoteAgents: NewRemoteAgents(ports.Index, cfg.Portal),
		Notices:      &Notifier{store: ports.Store, queue: ports.NoticeQueue, log: cfg.Log},
		Searches:     &SavedSearches{store: ports.Store},
		store:        ports.Store, index: ports.Index, probes: ports.Probes, reader: ports.Reader, trier: ports.Trier,
		sealer: ports.Sealer, network: ports.Network, ways: ports.Ways, wider: ports.Wider, seeker: ports.Seeker,
		reports: ports.Reports, addresses: ports.Addresses, connections: ports.Connections,
		cfg:     cfg,
		reads:   limit.New(2*time.Second, 20, 50_000),
		looks:   limit.New(200*time.Millisecond, 100, 50_000),
		trying:  make(chan struct{}, maxTrying),
		stores:  limit.New(time.Second, storeBurst, 50_000),
		tries:   limit.New(5*time.Second, 12, 50_000),
		shares:  limit.New(30*time.Second, 40, 50_000),
		callsBy: limit.New(time.Second, 60, 200_000),
	}
	s.tools = toolRights{s}
	s.Icons = &Pictures{store: ports.Store, limit: s.reads, drawing: make(chan struct{}, 1)}
	s.Usage = &UsageRecords{store: ports.Store, agents: s, log: cfg.Log}
	s.Complaints = &Complaints{store: ports.Store, agents: s, notice: s.Notices,
		limit: limit.New(10*time.Minute, 5, 50_000), log: cfg.Log}
	s.Proofs = &OwnerProofs{store: ports.Store, agents: s, witness: ports.Witness, sealer: ports.Sealer,
		addresses: ports.Addresses, notice: s.Notices, limit: s.reads, loopback: cfg.Loopback, log: cfg.Log}
	return s
}

// draftRules returns the limits for drafts.
func (s *Service) draftRules() rules {
	return rules{kinds: s.cfg.Kinds, addresses: s.addresses, model: s.cfg.Model}
}

// Kinds lists the kinds people may register.
func (s *Service) Kinds() []Kind { return slices.Clone(s.cfg.Kinds) }

// Model is the portal's own model, empty when it has none.
func (s *Service) Model() string { return s.cfg.Model }

// TextGoesTo returns the final receiver of text to an agent: a host, or a description of one,
// empty when it stays on this portal.
func (s *Service) TextGoesTo(a Agent) string {
	switch {
	case a.Portal != "":
		return a.Portal
	case a.Endpoint != "":
		return a.Host()
	case a.Kind == Prompt:
		return s.cfg.ModelHost
	case a.Kind == Link:
		return "a program of " + a.OwnerName
	}
	return ""
}

// Portal is the portal's part of handles.
func (s *Service) Portal() string { return s.cfg.Portal }

// dropConnections ends the connections of an agent, see Connections.
func (s *Service) dropConnections(agentID string) {
	if s.connections != nil {
		s.connections.Drop(agentID)
	}
}
