package hub

import (
	"log/slog"
	"slices"
	"strings"
	"time"

	"agentsite/internal/limit"
	"agentsite/internal/lookalike"
)

// Config is the configuration of a Service, fixed at the start.
type Config struct {
	// Portal is the host of the portal's URL, with the port unless it is the default.
	Portal string
	// URL is the portal's address, without a trailing slash, for links to its pages.
	URL string
	// Kinds are the kinds that people may register, in the order of the forms.
	Kinds []Kind
	// Loopback is true if the portal is reachable on this machine only.
	Loopback bool
	Log      *slog.Logger
}

// Service implements the directory of one portal. It is safe for concurrent use. Create it with New and
// fill the index with Load.
type Service struct {
	RemoteAgents
	// Parts of the directory with their own narrow stores.
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
	models  Models
	modules Modules
	network Network
	wider   Wider
	seeker  Seeker
	ways    Ways
	reports LivenessReports
	tools   toolRights
	cfg     Config

	addresses   AddressPolicy
	connections Connections

	// reads limits the fetches of addresses for one actor, tries the trial calls of unpublished agents.
	reads, tries *limit.Keyed
	stores       *limit.Keyed  // stored versions, keyed by account
	looks        *limit.Keyed  // NameFree calls, keyed by account
	trying       chan struct{} // semaphore of concurrent trial calls
	callsBy      *limit.Keyed  // calls, keyed by agent and actor
	callsOn      limit.Daily
	// shares limits the new co-owners and offers of an account, because each sends a notice.
	shares *limit.Keyed
	edits  edits
	// Names are the names and titles of the built-in agents, which no other agent and no person may resemble.
	Names lookalike.Names
}

// Ports are the implementations of the interfaces that a Service uses.
type Ports struct {
	Store Store
	Index Index
	// Probes probes agents; nil disables probing.
	Probes  Probes
	Reader  Reader
	Witness Witness
	Trier   Trier
	Sealer  Sealer
	// Network and Ways give access to other portals; nil if federation is off.
	Network Network
	Ways    Ways
	// Wider is the remote search of portals that are not fully replicated here; nil for none.
	Wider Wider
	// Seeker resolves agents of unknown portals; nil disables that.
	Seeker Seeker
	// Addresses may be nil if no agent with an address can be registered.
	Addresses AddressPolicy
	// Connections may be nil if kind link is not available.
	Connections Connections
	// NoticeQueue delivers notices; nil leaves them on the pages only.
	NoticeQueue NoticeQueue
	// Models may be nil if no prompt agent can be registered.
	Models Models
	// Modules may be nil if no hosted program can be registered.
	Modules Modules
	// Reports are the liveness reports of other portals; nil leaves only the results of this portal's probes.
	Reports LivenessReports
}

// Models are the models of prompt agents without an address.
type Models interface {
	// NamedModel returns a model's name on its server and the host of that, empty for this machine, by the name that
	// agents of the owner use, "" for the portal's default.
	NamedModel(ownerID, name string) (model, host string, ok bool)
}

// Modules are the programs that accounts uploaded.
type Modules interface {
	// CheckHosted returns an error, worded for a form, if the owner has no such program or may not host it.
	CheckHosted(ownerID, hash string) error
}

// AddressPolicy decides which addresses the portal may call.
type AddressPolicy interface {
	// CheckURL returns an error, worded for a form, if an address may not be called. It does not resolve the host.
	CheckURL(address string) error
}

// Connections closes the connections of programs that act as agents (kind link).
type Connections interface {
	// Drop closes the connections of an agent after the right to act for it may have changed: it was
	// transferred, no longer shared, withdrawn or removed. It must not block for long.
	Drop(agentID string)
}

// New returns a service with the given ports; Load fills its index.
func New(ports Ports, cfg Config) *Service {
	s := &Service{
		RemoteAgents: NewRemoteAgents(ports.Index, cfg.Portal),
		Notices:      &Notifier{store: ports.Store, queue: ports.NoticeQueue, log: cfg.Log},
		Searches:     &SavedSearches{store: ports.Store},
		store:        ports.Store, index: ports.Index, probes: ports.Probes, reader: ports.Reader, trier: ports.Trier,
		sealer: ports.Sealer, models: ports.Models, modules: ports.Modules, network: ports.Network, ways: ports.Ways,
		wider: ports.Wider, seeker: ports.Seeker, reports: ports.Reports, addresses: ports.Addresses, connections: ports.Connections, cfg: cfg,
		reads:   limit.New(2*time.Second, 20, 50_000),
		looks:   limit.New(200*time.Millisecond, 100, 50_000),
		trying:  make(chan struct{}, maxTrying),
		stores:  limit.New(time.Second, storeBurst, 50_000),
		tries:   limit.New(5*time.Second, 12, 50_000),
		shares:  limit.New(30*time.Second, 40, 50_000),
		callsBy: limit.New(time.Second, 60, 200_000),
	}
	s.tools = toolRights{s}
	s.Icons = &Pictures{ports.Store, limit.New(time.Minute, iconBurst, 50_000), make(chan struct{}, 1)}
	s.Usage = &UsageRecords{store: ports.Store, agents: s, log: cfg.Log}
	s.Complaints = &Complaints{store: ports.Store, agents: s, notice: s.Notices,
		limit: limit.New(10*time.Minute, 5, 50_000), log: cfg.Log}
	s.Proofs = &OwnerProofs{store: ports.Store, agents: s, witness: ports.Witness, sealer: ports.Sealer,
		addresses: ports.Addresses, notice: s.Notices, limit: s.reads, loopback: cfg.Loopback, log: cfg.Log}
	return s
}

// draftRules returns the rules that drafts are checked against.
func (s *Service) draftRules() rules {
	return rules{kinds: s.cfg.Kinds, addresses: s.addresses, models: s.models, modules: s.modules,
		names: &s.Names}
}

// Kinds returns a copy of the kinds that people may register.
func (s *Service) Kinds() []Kind { return slices.Clone(s.cfg.Kinds) }

// Model returns the name of the portal's default model, empty if it has none.
func (s *Service) Model() string {
	model, _, _ := s.models.NamedModel("", "")
	return model
}

// TextGoesTo returns the host, or a description of the program, that receives text sent to an agent;
// empty if the text stays on this portal. Pages disclose it.
func (s *Service) TextGoesTo(a Agent) string {
	switch {
	case a.Portal != "":
		return a.Portal
	case a.Endpoint != "":
		return a.Host()
	case a.Kind == Prompt, a.Kind == Builtin && (a.Name == "assistant" || a.Name == "guide"): // see package assistant
		_, host, _ := s.models.NamedModel(a.OwnerID, promptConfig(a).Model)
		return host
	case a.Kind == Link:
		return "a program of " + a.OwnerName
	case a.Kind == Wasm:
		conf := wasmConfig(a)
		hosts := conf.Hosts
		if _, host, _ := s.models.NamedModel(a.OwnerID, conf.Model); conf.Model != "" && host != "" {
			hosts = append([]string{host}, hosts...)
		}
		return strings.Join(hosts, ", ")
	}
	return ""
}

// Portal returns the host part of this portal's handles.
func (s *Service) Portal() string { return s.cfg.Portal }

// dropConnections closes the connections of an agent; see Connections.Drop.
func (s *Service) dropConnections(agentID string) {
	if s.connections != nil {
		s.connections.Drop(agentID)
	}
}
