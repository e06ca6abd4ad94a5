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
	// CheckURL says, in words for the form, why an address may not be called,
	// without looking it up.
	CheckURL func(string) error
	// Loopback is true when the portal itself is on this machine only.
	Loopback bool
	// Model is the portal's own model, empty when it has none; ModelHost is
	// where it runs, empty when that is this very machine.
	Model, ModelHost string
	// Moved, when set, is called after the right to act as an agent may have
	// changed: it was given away, shared no longer, withdrawn or removed. It
	// must not block for long.
	Moved func(agentID string)
	// Optional; called after accounts got a notice. It must not block.
	Told func(n Notice, accounts []string)
	// Elsewhere, when set, is called with the outcome of a call to an agent of another portal. It
	// must not block.
	Elsewhere func(a Agent, reached bool)
	// Voices, when set, returns the liveness of an agent and the liveness reports of portals about
	// it, those that count most first.
	Voices func(a Agent) (Liveness, []Voice)
	Log    *slog.Logger
}

// Service is the directory of one portal. Create it with New and fill the
// index with Load.
type Service struct {
	RemoteAgents
	store   Store
	index   Index
	probes  Probes
	reader  Reader
	witness Witness
	trier   Trier
	sealer  Sealer
	network Network
	wider   Wider
	seeker  Seeker
	ways    Ways
	cfg     Config

	// reads bounds the fetches of addresses for one actor, tries the trial calls of unpublished
	// agents.
	reads, tries *limit.Keyed
	stores       *limit.Keyed  // keyed by account
	looks        *limit.Keyed  // at names
	trying       chan struct{} // the places of tries under way
	// reportsBy and callsBy are keyed by actor; the latter by agent too.
	reportsBy, callsBy *limit.Keyed
	callsOn            limit.Daily
	// shares bounds an account's new co-owners and offers, because each leaves a notice.
	shares  *limit.Keyed
	drawing chan struct{} // the place for a picture being drawn
	edits   edits
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
}

// New returns a service over its ports.
func New(ports Ports, cfg Config) *Service {
	return &Service{
		RemoteAgents: NewRemoteAgents(ports.Index, cfg.Portal),
		store:        ports.Store, index: ports.Index, probes: ports.Probes, reader: ports.Reader,
		witness: ports.Witness, trier: ports.Trier,
		sealer: ports.Sealer, network: ports.Network, ways: ports.Ways, wider: ports.Wider, seeker: ports.Seeker,
		cfg:       cfg,
		reads:     limit.New(2*time.Second, 20, 50_000),
		looks:     limit.New(200*time.Millisecond, 100, 50_000),
		trying:    make(chan struct{}, maxTrying),
		stores:    limit.New(time.Second, storeBurst, 50_000),
		tries:     limit.New(5*time.Second, 12, 50_000),
		shares:    limit.New(30*time.Second, 40, 50_000),
		reportsBy: limit.New(10*time.Minute, 5, 50_000),
		callsBy:   limit.New(time.Second, 60, 200_000),
		drawing:   make(chan struct{}, 1),
	}
}

// draftRules returns the limits for drafts.
func (s *Service) draftRules() rules {
	return rules{kinds: s.cfg.Kinds, checkURL: s.cfg.CheckURL, model: s.cfg.Model}
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

func (s *Service) moved(agentID string) {
	if s.cfg.Moved != nil {
		s.cfg.Moved(agentID)
	}
}
