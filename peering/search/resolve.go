package search

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/limit"
	"agentsite/internal/meter"
	"agentsite/internal/record"
	"agentsite/peering/catalog"
	"agentsite/peering/client"
	"agentsite/peering/overlay"
)

const (
	// seekFor is how long a caller waits for an agent of an unknown portal. A later result is returned to
	// the next caller.
	seekFor = 2 * time.Second
	// seekWhole bounds a search, which goes on after its callers have stopped waiting.
	seekWhole = 8 * time.Second
	// absentFor is how long the result "no such agent" is reused, failedFor how long a failed search is.
	absentFor = time.Minute
	failedFor = 5 * time.Second
	// maxAbsent bounds the cached results of unsuccessful searches; beyond it arbitrary ones are dropped.
	maxAbsent = 4096
	// maxSeeks bounds the searches that run at the same time; further callers get an Unavailable error.
	maxSeeks = 32
	// maxMet is how many of the portals that claim to have the agent one search contacts.
	maxMet = 3
	// Rate limits of new searches: for each account, for each guest's address (Visitor), and for all
	// callers together (All), because each search sends requests to many portals. maxSeekers bounds the
	// tracked accounts and addresses.
	seekEvery, seekBurst               = 2 * time.Second, 20
	seekEveryVisitor, seekBurstVisitor = 10 * time.Second, 6
	seekEveryAll, seekBurstAll         = 500 * time.Millisecond, 40
	maxSeekers                         = 20_000
)

// DHT looks up which portals signed that they have a host, an agent or a capability. overlay.Overlay
// implements it.
type DHT interface {
	Host(ctx context.Context, host string) ([]overlay.Found, overlay.Looked, error)
	Portal(ctx context.Context, portal record.PortalID) (overlay.Found, overlay.Looked, error)
	Agent(ctx context.Context, id string) ([]overlay.Found, overlay.Looked, error)
	Capability(ctx context.Context, tag string) ([]overlay.Found, overlay.Looked, error)
}

// Bootstrapper contacts portals that the DHT names and that are unknown here. All fields are required.
type Bootstrapper struct {
	Client   Client
	Registry Registry
	Syncer   Syncer
	Catalog  *catalog.Catalog
}

// Client performs handshakes with other portals. client.Client implements it.
type Client interface {
	// Handshake proves that a portal controls the domain of an origin, and accepts its card and head. With
	// an empty portal any portal at that origin is accepted.
	Handshake(ctx context.Context, origin string, portal record.PortalID) (*client.Handshake, error)
}

// Registry holds the other portals and the policy on them. federation.Peers implements it.
type Registry interface {
	federation.Registry
	// Wanted must be called before Learned for a portal that a caller looks for: the registry then keeps
	// the portal even if it is full.
	Wanted(portal record.PortalID)
}

// errShut is returned for a portal with agents that the policy does not allow here.
var errShut = errors.New("it is not let in")

// contactPortal performs a handshake with the portal at an origin and adds it to the registry and the
// catalog. An empty portal accepts any portal there. With wanted the registry makes room for it. It returns
// errShut if the policy does not allow it.
func (s *Bootstrapper) contactPortal(ctx context.Context, origin string, portal record.PortalID,
	wanted bool) (*record.Card, error) {
	for _, p := range s.Registry.Portals(ctx) {
		if p.ID == "" && p.URL == origin && p.State == federation.Denied { // a rule on the address
			return nil, errShut
		}
	}
	w, err := s.Client.Handshake(ctx, origin, portal)
	if err != nil {
		return nil, err
	}
	if d := s.Registry.Decide(ctx, w.Card.Portal, w.Card.Origin); !d.Show || !d.In {
		return nil, errShut
	}
	if wanted {
		s.Registry.Wanted(w.Card.Portal)
	}
	// Learned is called again, because the registry may have deleted the portal since its handshake.
	s.Registry.Learned(w.Card, w.Card.Origin == origin)
	s.Syncer.Report(ctx, w.Card.Portal)
	s.Catalog.NoteSought(w.Card.Portal)
	s.Catalog.Reconcile(ctx)
	return w.Card, nil
}

// ResolverConfig is the configuration of a Resolver. Every field is required.
type ResolverConfig struct {
	// Host is the host of this portal's URL.
	Host         string
	DHT          DHT
	Searcher     *Searcher
	Bootstrapper *Bootstrapper
	Log          *slog.Logger
}

// Resolver finds agents of unknown portals: the DHT names the portal, and that portal returns the agent
// after a handshake. It implements hub.Seeker. Create it with NewResolver; it is safe for concurrent use.
type Resolver struct {
	ResolverConfig
	catalog                *catalog.Catalog
	persons, visitors, all *limit.Keyed
	// outcomes counts searches; limited ones were refused because one caller, or all together, started too many.
	outcomes *prometheus.CounterVec

	mu      sync.Mutex // guards the fields below
	flights map[string]*seeking
	absent  map[string]absence
}

var _ hub.Seeker = (*Resolver)(nil)

// seeking is a running search, shared by all callers that look for the same agent.
type seeking struct {
	done  chan struct{} // closed once agent and err are set; they do not change afterwards
	agent hub.Agent
	err   error
}

// absence is the cached error of an unsuccessful search, valid until the time until.
type absence struct {
	err   error
	until time.Time
}

// NewResolver returns a Resolver. Its searches end with the Searcher's Run.
func NewResolver(cfg ResolverConfig) *Resolver {
	return &Resolver{ResolverConfig: cfg, catalog: cfg.Bootstrapper.Catalog, flights: make(map[string]*seeking),
		absent: make(map[string]absence),
		outcomes: meter.NewCounters("agentsite_agents_sought_total", "Agents of unknown portals that were looked for in the "+
			"DHT, by what came of it; limited are those that were not, because a caller exceeded the limit.",
			"outcome", "found", "absent", "failed", "limited"),
		persons:  limit.New(seekEvery, seekBurst, maxSeekers),
		visitors: limit.New(seekEveryVisitor, seekBurstVisitor, maxSeekers),
		all:      limit.New(seekEveryAll, seekBurstAll, 1)}
}

// Seek implements hub.Seeker: it finds an agent by handle or network id. All callers that look for the same
// agent share one search and wait at most seekFor; then they get an Unavailable error with RetryAfter while
// the search goes on.
func (k *Resolver) Seek(ctx context.Context, actor ident.Actor, what string) (hub.Agent, error) {
	w, err := k.parseGoal(ctx, actor, what)
	if err != nil {
		return hub.Agent{}, err
	}
	s, err := k.beginSearch(actor, what, w)
	if err != nil {
		return hub.Agent{}, err
	}
	wait := time.NewTimer(seekFor)
	defer wait.Stop()
	select {
	case <-s.done:
		return s.agent, s.err
	case <-wait.C:
	case <-ctx.Done():
	}
	return hub.Agent{}, &fault.Error{Kind: fault.Unavailable,
		Safe:       w.text() + " is not known here. It is being looked for in the network; ask again in a few seconds.",
		RetryAfter: seekFor}
}

// beginSearch returns the running search for an agent, or starts one. It returns the cached error of a
// recent unsuccessful search, or an error if a rate limit is exceeded.
func (k *Resolver) beginSearch(actor ident.Actor, what string, w goal) (*seeking, error) {
	now := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.flights[what]; s != nil {
		return s, nil
	}
	if a, ok := k.absent[what]; ok && now.Before(a.until) {
		return nil, a.err
	}
	if wait, ok := k.asker(actor); !ok {
		k.outcomes.WithLabelValues("limited").Inc()
		return nil, fault.Limited(wait, "%s is not known here, and you looked for many such in a short time. Wait %s.",
			w.text(), max(wait.Round(time.Second), time.Second))
	}
	wait, ok := k.all.Allow("")
	if !ok || len(k.flights) >= maxSeeks {
		k.outcomes.WithLabelValues("limited").Inc()
		return nil, &fault.Error{Kind: fault.Unavailable,
			Safe: w.text() + " is not known here, and too many others are being looked for in the network now. Try again in some seconds.", RetryAfter: max(wait, time.Second)}
	}
	s := &seeking{done: make(chan struct{})}
	k.flights[what] = s
	k.Searcher.under.Go(func() {
		// A deadline would count a slow portal as down; a canceled request does not.
		ctx, cancel := context.WithCancel(k.Searcher.alive)
		defer cancel()
		timer := time.AfterFunc(seekWhole, cancel)
		defer timer.Stop()
		s.agent, s.err = k.lookUp(ctx, w)
		k.endSearch(what, s)
	})
	return s, nil
}

// asker takes a token from the rate limit of the actor. If ok is false, wait is the time until the next
// token. The caller holds mu.
func (k *Resolver) asker(actor ident.Actor) (wait time.Duration, ok bool) {
	if actor.IsPerson() {
		return k.persons.Allow(actor.ID)
	}
	return k.visitors.Allow(actor.Addr)
}

// endSearch counts and publishes the result of a search, and caches an unsuccessful one.
func (k *Resolver) endSearch(what string, s *seeking) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.flights, what)
	life := absentFor
	switch {
	case s.err == nil:
		k.outcomes.WithLabelValues("found").Inc()
		close(s.done)
		return
	case fault.Is(s.err, fault.NotFound):
		k.outcomes.WithLabelValues("absent").Inc()
	default:
		k.outcomes.WithLabelValues("failed").Inc()
		life = failedFor
	}
	now := time.Now()
	if len(k.absent) >= maxAbsent {
		for other, a := range k.absent {
			if !now.Before(a.until) {
				delete(k.absent, other)
			}
		}
		for other := range k.absent { // remove arbitrary entries: those searches are repeated
			if len(k.absent) < maxAbsent {
				break
			}
			delete(k.absent, other)
		}
	}
	k.absent[what] = absence{s.err, now.Add(life)}
	close(s.done)
}

// goal identifies the agent of a search: by its name and its portal's host, or by its network id.
type goal struct {
	name, host string
	id         string
	portal     record.PortalID // the portal in the id; "" for an id that is the same at all portals
}

func (w goal) text() string {
	if w.id != "" {
		return "The agent " + w.id
	}
	return "The agent " + w.name + "@" + w.host
}

func (w goal) none(why string) error {
	return fault.New(fault.NotFound, "%s is not known here. %s", w.text(), why)
}

// parseGoal parses a handle or network id. It returns a NotFound error for other text, for agents that are
// held here anyway, and for portals that the policy denies.
func (k *Resolver) parseGoal(ctx context.Context, actor ident.Actor, what string) (w goal, err error) {
	name, host, handle := strings.Cut(what, "@")
	if !handle {
		portal, local, ok := strings.Cut(what, "/")
		_, digest := record.PortalID(portal).Digest()
		switch {
		case record.Portable(what):
			w.id = what
		case ok && digest && local != "" && len(local) <= maxLocal && !strings.ContainsAny(local, "/?#%"):
			w.id, w.portal = what, record.PortalID(portal)
		default:
			return w, fault.New(fault.NotFound,
				"%.80q is neither a handle, such as name@portal.example, nor the id of an agent.", what)
		}
		if d := k.Bootstrapper.Registry.Decide(ctx, w.portal, ""); shutOut(d) {
			return w, w.none(keptOut(actor, d, "Check the id."))
		}
		return w, nil
	}
	w.name, w.host = name, strings.ToLower(host)
	if ident.CheckForm(name) != nil || originOf(w.host) == "" || w.host == k.Host {
		return w, w.none("Check the spelling.")
	}
	// The policy counts at once, while the catalog drops the agents of a denied portal a moment later.
	if d := k.decideHost(ctx, w.host); shutOut(d) {
		return w, w.none(keptOut(actor, d, "Check the spelling."))
	}
	if k.catalog.ShowsHost(w.host) {
		return w, w.none("Its portal is, but nothing of that name was found there. Check the spelling.")
	}
	return w, nil
}

// decideHost returns the policy on the portal that was verified at a host. A portal that merely claims the
// host does not count, so that it cannot block the real one.
func (k *Resolver) decideHost(ctx context.Context, host string) federation.Decision {
	reg := k.Bootstrapper.Registry
	for _, p := range reg.Portals(ctx) {
		if p.ID != "" && !p.Proved.IsZero() && p.Host() == host {
			return reg.Decide(ctx, p.ID, p.URL)
		}
	}
	return reg.Decide(ctx, "", originOf(host))
}

// maxLocal bounds the part of a network id after the portal, in bytes.
const maxLocal = 128

// shutOut reports whether the policy forbids to search for agents of a portal. A pending portal may be
// searched, because the search itself can admit it.
func shutOut(d federation.Decision) bool {
	return d.State == federation.Denied || d.State == federation.Quarantined || d.State == federation.Active && !d.Take
}

// keptOut returns the explanation for a refused search: the policy's reason for operators, the text others
// for other callers, so that the policy is not disclosed.
func keptOut(actor ident.Actor, d federation.Decision, others string) string {
	if !actor.IsOperator() || !actor.May(ident.Admin) {
		return others
	}
	why := d.Reason
	if why == "" {
		why = "The policy takes nothing in."
	}
	return "Its portal is not let in here: " + why + " Only operators read this."
}

// originOf returns the origin of the portal at a host: https if that is valid, http for private hosts, ""
// for an invalid host.
func originOf(host string) string {
	for _, scheme := range [...]string{"https://", "http://"} {
		if record.ValidOrigin(scheme + host) {
			return scheme + host
		}
	}
	return ""
}

// lookUp searches the DHT for the portal of an agent and asks that portal for the agent.
func (k *Resolver) lookUp(ctx context.Context, w goal) (hub.Agent, error) {
	if w.id != "" {
		return k.byID(ctx, w)
	}
	list, _, err := k.DHT.Host(ctx, w.host)
	if err != nil && len(list) == 0 {
		return hub.Agent{}, k.failed(w, err)
	}
	if len(list) == 0 {
		return hub.Agent{}, w.none("No portal of this network signed to be at " + w.host + ".")
	}
	// Any portal may sign a DHT entry for the host. The handshake finds out which one really answers there.
	a, err := k.askPortals(ctx, list, "", func(*record.Card) (hub.Agent, error) { return k.openAgent(ctx, w) })
	return a, k.failed(w, err)
}

// askPortals contacts at most maxMet portals in turn, and returns the first agent that the function has
// finds at one of them. Otherwise it returns the last error; errShut if no portal was allowed.
func (k *Resolver) askPortals(ctx context.Context, list []overlay.Found, portal record.PortalID,
	has func(*record.Card) (hub.Agent, error)) (a hub.Agent, err error) {
	tried := make(map[string]bool)
	err = errShut
	for _, f := range list {
		if tried[f.Card.Origin] || len(tried) == maxMet || ctx.Err() != nil {
			continue
		}
		tried[f.Card.Origin] = true
		card, merr := k.Bootstrapper.contactPortal(ctx, f.Card.Origin, portal, true)
		if merr != nil {
			k.Log.Debug("a portal that the DHT names was not met", "portal", f.Card.Portal, "origin", f.Card.Origin,
				"error", merr)
			if !errors.Is(merr, errShut) {
				err = merr
			}
			continue
		}
		if a, err = has(card); err == nil {
			return a, nil
		}
	}
	return a, err
}

// openAgent returns an agent, by handle, of a portal that was contacted just now.
func (k *Resolver) openAgent(ctx context.Context, w goal) (hub.Agent, error) {
	f, err := k.Searcher.Open(ctx, w.name, w.host)
	if err == nil {
		return f.Agent, nil
	}
	if a, ok := k.catalog.Named(w.name, w.host); ok { // the portal's log was pulled meanwhile, so the agent is held
		if id, url := k.catalog.Owner(a); k.Bootstrapper.Registry.Decide(ctx, id, url).Show {
			return a, nil
		}
	}
	if a, ok := k.catalog.Builtin(ctx, w.name, w.host); ok {
		return a, nil
	}
	return hub.Agent{}, err
}

// byID finds an agent by its network id: at a portal that signed a DHT entry for it, or at the portal in
// the id.
func (k *Resolver) byID(ctx context.Context, w goal) (hub.Agent, error) {
	list, _, err := k.DHT.Agent(ctx, w.id)
	if w.portal != "" { // only the portal in the id may list the agent: ignore entries of others
		list = slices.DeleteFunc(list, func(f overlay.Found) bool { return f.Card.Portal != w.portal })
	}
	if len(list) == 0 && w.portal != "" {
		var f overlay.Found
		var perr error
		if f, _, perr = k.DHT.Portal(ctx, w.portal); perr == nil {
			list = []overlay.Found{f}
		} else if !fault.Is(perr, fault.NotFound) {
			err = perr
		}
	}
	if len(list) == 0 {
		if err != nil {
			return hub.Agent{}, k.failed(w, err)
		}
		return hub.Agent{}, w.none("No portal of this network signed to list it.")
	}
	a, err := k.askPortals(ctx, list, w.portal, func(c *record.Card) (hub.Agent, error) { return k.listed(ctx, c, w) })
	return a, k.failed(w, err)
}

// listed returns an agent, by its network id, of a portal that was contacted just now: from the portal
// itself or, if its log is held meanwhile, from the catalog.
func (k *Resolver) listed(ctx context.Context, card *record.Card, w goal) (hub.Agent, error) {
	for _, p := range k.catalog.Partial() {
		if p.ID == card.Portal {
			f, err := k.Searcher.fetchAgent(ctx, p, p, w.id)
			if err == nil {
				k.Searcher.opened.put(f, clock.Now().Add(openedFor))
				return f.Agent, nil
			}
			if a, ok := k.catalog.Learned(w.id); ok {
				return a, nil
			}
			return hub.Agent{}, err
		}
	}
	if a, ok := k.catalog.Learned(w.id); ok {
		return a, nil
	}
	return hub.Agent{}, errNotThere
}

// failed converts an error of a search into one that callers may read; nil stays nil. Only the log gets the
// details.
func (k *Resolver) failed(w goal, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errNotThere):
		return w.none("Its portal does not list it. Check the spelling.")
	case errors.Is(err, errShut):
		return w.none("Check the spelling.")
	}
	k.Log.Debug("an agent was looked for in vain", "agent", w.text(), "error", err)
	return fault.Wrap(fault.Unavailable, err,
		"%s is not known here, and its portal could not be asked. Try again later.", w.text())
}
