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
	// seekFor is how long a caller waits for an agent of an unknown portal. A later result serves the next
	// caller.
	seekFor = 2 * time.Second
	// seekWhole ends a search after all its callers have gone.
	seekWhole = 8 * time.Second
	// absentFor is how long a search for an absent agent is not repeated, failedFor the same after a
	// search without a definite result.
	absentFor = time.Minute
	failedFor = 5 * time.Second
	// maxAbsent bounds the remembered absences.
	maxAbsent = 4096
	// maxSeeks bounds the searches that are under way.
	maxSeeks = 32
	// maxMet is how many portals are contacted in one search, of those that claim to have the agent.
	maxMet = 3
	// Limits of searches: an account may start more than a guest, and all together no more than the
	// network can bear from one portal.
	seekEvery, seekBurst               = 2 * time.Second, 20
	seekEveryVisitor, seekBurstVisitor = 10 * time.Second, 6
	seekEveryAll, seekBurstAll         = 500 * time.Millisecond, 40
	maxSeekers                         = 20_000
)

// DHT is the DHT as far as others ask it: overlay.Overlay.
type DHT interface {
	Host(ctx context.Context, host string) ([]overlay.Found, overlay.Looked, error)
	Portal(ctx context.Context, portal record.PortalID) (overlay.Found, overlay.Looked, error)
	Agent(ctx context.Context, id string) ([]overlay.Found, overlay.Looked, error)
	Capability(ctx context.Context, tag string) ([]overlay.Found, overlay.Looked, error)
}

// Bootstrapper contacts portals that the DHT names and that are unknown here.
type Bootstrapper struct {
	Client   Client
	Registry Registry
	Syncer   Syncer
	Catalog  *catalog.Catalog
}

// Client performs handshakes with other portals: client.Client.
type Client interface {
	// Handshake proves the domain of the portal at an origin, and takes in its card and head. The portal
	// may be empty for whichever is there.
	Handshake(ctx context.Context, origin string, portal record.PortalID) (*client.Handshake, error)
}

// Registry knows the other portals: federation.Peers.
type Registry interface {
	federation.Registry
	// Wanted is called, before Learned, with a portal that a caller looks for: it is kept even if there
	// are many.
	Wanted(portal record.PortalID)
}

// errShut is of a portal that may not be shown here.
var errShut = errors.New("it is not let in")

// contactPortal says hello to a portal, or to whoever is at an origin, and has it known
// and shown here from then on. It finds room if it is wanted.
func (s *Bootstrapper) contactPortal(ctx context.Context, origin string, portal record.PortalID,
	wanted bool) (*record.Card, error) {
	for _, p := range s.Registry.Portals(ctx) {
		if p.ID == "" && p.URL == origin && p.State == federation.Denied { // whoever is there
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
	// Learned is repeated: the registry may have forgotten the portal since its domain was proved.
	s.Registry.Learned(w.Card, w.Card.Origin == origin)
	s.Syncer.Report(ctx, w.Card.Portal)
	s.Catalog.NoteSought(w.Card.Portal)
	s.Catalog.Reconcile(ctx)
	return w.Card, nil
}

// ResolverConfig is the configuration of a Resolver.
type ResolverConfig struct {
	// Host is this portal's own.
	Host         string
	DHT          DHT
	Searcher     *Searcher
	Bootstrapper *Bootstrapper
	Log          *slog.Logger
}

// Resolver finds agents of unknown portals: the DHT names the portal, and the portal, once contacted
// like any other, returns the agent. It implements hub.Seeker. Create it with NewResolver; it is safe
// for concurrent use.
type Resolver struct {
	ResolverConfig
	catalog                *catalog.Catalog
	persons, visitors, all *limit.Keyed
	// outcomes counts searches; limited ones were refused because one caller, or all together, started too many.
	outcomes *prometheus.CounterVec

	mu      sync.Mutex // guards the rest
	flights map[string]*seeking
	absent  map[string]absence
}

var _ hub.Seeker = (*Resolver)(nil)

// seeking is a search under way.
type seeking struct {
	done  chan struct{} // closed with the rest, which is not changed from then on
	agent hub.Agent
	err   error
}

// absence is a search without a result.
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

// Seek implements hub.Seeker. All callers that look for the same agent share one search and wait at
// most seekFor.
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

// beginSearch returns the search that is under way, or begins one.
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
		// Ended by cancel and not by a deadline, so that a slow portal is not counted as down.
		ctx, cancel := context.WithCancel(k.Searcher.alive)
		defer cancel()
		timer := time.AfterFunc(seekWhole, cancel)
		defer timer.Stop()
		s.agent, s.err = k.lookUp(ctx, w)
		k.endSearch(what, s)
	})
	return s, nil
}

// asker takes a token of whoever asks. The caller holds mu.
func (k *Resolver) asker(actor ident.Actor) (wait time.Duration, ok bool) {
	if actor.IsPerson() {
		return k.persons.Allow(actor.ID)
	}
	return k.visitors.Allow(actor.Addr)
}

// endSearch records the result of a search.
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
		for other := range k.absent { // any: it is looked for again
			if len(k.absent) < maxAbsent {
				break
			}
			delete(k.absent, other)
		}
	}
	k.absent[what] = absence{s.err, now.Add(life)}
	close(s.done)
}

// goal identifies the agent of a search: by its name and its portal's host, or by its id in the
// network.
type goal struct {
	name, host string
	id         string
	portal     record.PortalID // of an id that names one
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

// parseGoal parses a text into the agent to search for. It refuses agents that this portal itself must
// know, and those of a portal that is shut out.
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
	if k.catalog.ShowsHost(w.host) {
		return w, w.none("Its portal is, but nothing of that name was found there. Check the spelling.")
	}
	if d := k.decideHost(ctx, w.host); shutOut(d) {
		return w, w.none(keptOut(actor, d, "Check the spelling."))
	}
	return w, nil
}

// decideHost returns the decision for the portal at a host, if one was proved there. A claim by another
// portal shuts out none.
func (k *Resolver) decideHost(ctx context.Context, host string) federation.Decision {
	reg := k.Bootstrapper.Registry
	for _, p := range reg.Portals(ctx) {
		if p.ID != "" && !p.Proved.IsZero() && p.Host() == host {
			return reg.Decide(ctx, p.ID, p.URL)
		}
	}
	return reg.Decide(ctx, "", originOf(host))
}

// maxLocal bounds an agent's id at its portal.
const maxLocal = 128

// shutOut reports whether no agent of a portal is searched for. A pending portal may be admitted by
// the search.
func shutOut(d federation.Decision) bool {
	return d.State == federation.Denied || d.State == federation.Quarantined || d.State == federation.Active && !d.Take
}

// keptOut returns the reason for an operator: this portal forbids the search. Any other caller gets
// the text for an absent agent.
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

// originOf is where the portal of a handle's host is, "" where none can be.
func originOf(host string) string {
	for _, scheme := range [...]string{"https://", "http://"} {
		if record.ValidOrigin(scheme + host) {
			return scheme + host
		}
	}
	return ""
}

// lookUp looks for an agent.
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
	// Any portal may sign such an entry: the one that answers at the host is the right one.
	a, err := k.askPortals(ctx, list, "", func(*record.Card) (hub.Agent, error) { return k.openAgent(ctx, w) })
	return a, k.failed(w, err)
}

// askPortals contacts portals, one after the other, until one has the agent. A portal that answers without it
// ends the search.
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

// openAgent returns an agent of a portal that was met just now.
func (k *Resolver) openAgent(ctx context.Context, w goal) (hub.Agent, error) {
	f, err := k.Searcher.Open(ctx, w.name, w.host)
	if err == nil {
		return f.Agent, nil
	}
	if a, ok := k.catalog.Named(w.name, w.host); ok { // its log was quicker
		if id, url := k.catalog.Owner(a); k.Bootstrapper.Registry.Decide(ctx, id, url).Show {
			return a, nil
		}
	}
	if a, ok := k.catalog.Builtin(ctx, w.name, w.host); ok {
		return a, nil
	}
	return hub.Agent{}, err
}

// byID searches for a portal that lists an agent, or for the agent's own portal.
func (k *Resolver) byID(ctx context.Context, w goal) (hub.Agent, error) {
	list, _, err := k.DHT.Agent(ctx, w.id)
	if w.portal != "" { // only the portal of the agent may list it; claims of others do not count
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

// listed returns an agent as a portal lists it that was met just now.
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

// failed is why nothing was found, for people.
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
