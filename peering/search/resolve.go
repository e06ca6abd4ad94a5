package search

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/limit"
	"agentsite/internal/record"
	"agentsite/peering/catalog"
	"agentsite/peering/client"
	"agentsite/peering/overlay"
)

const (
	// seekFor is how long somebody waits for an agent of a portal that is not
	// known here. What comes later is there for the next who asks.
	seekFor = 2 * time.Second
	// seekWhole ends a search that nobody waits for any more.
	seekWhole = 8 * time.Second
	// absentFor is for how long nobody looks again for what the network does not
	// have, failedFor the same where it could not be said.
	absentFor = time.Minute
	failedFor = 5 * time.Second
	// maxAbsent bounds what is remembered not to be there.
	maxAbsent = 4096
	// maxSeeks bounds the searches that are under way.
	maxSeeks = 32
	// maxMet is how many portals are met for one search, of those that say to
	// have what is looked for.
	maxMet = 3
	// Somebody with an account may begin so many searches, a visitor fewer, and
	// all of them together no more than the network can bear of one portal.
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

// Bootstrapper meets portals that the DHT names and nobody here knows.
type Bootstrapper struct {
	// Handshake says hello at an origin to a portal, or to whoever is there: it
	// proves the domain, and takes in card and head. See client.Client.Handshake.
	Handshake func(ctx context.Context, origin string, portal record.PortalID) (*client.Handshake, error)
	Registry  federation.Registry
	// Wanted is told of a portal that somebody here looks for, before it is told
	// of with Learned: it is to be kept, though there are many. Nil for nothing.
	Wanted func(portal record.PortalID)
	// Report tells the Registry again how a portal's log stands here, see
	// Syncer.Report.
	Report  func(ctx context.Context, portal record.PortalID)
	Catalog *catalog.Catalog
}

// errShut is of a portal that may not be shown here.
var errShut = errors.New("it is not let in")

// meet says hello to a portal, or to whoever is at an origin, and has it known
// and shown here from then on. It finds room if it is wanted.
func (s *Bootstrapper) meet(ctx context.Context, origin string, portal record.PortalID, wanted bool) (*record.Card, error) {
	for _, p := range s.Registry.Portals(ctx) {
		if p.ID == "" && p.URL == origin && p.State == federation.Denied { // whoever is there
			return nil, errShut
		}
	}
	w, err := s.Handshake(ctx, origin, portal)
	if err != nil {
		return nil, err
	}
	if d := s.Registry.Decide(ctx, w.Card.Portal, w.Card.Origin); !d.Show || !d.In {
		return nil, errShut
	}
	if wanted && s.Wanted != nil {
		s.Wanted(w.Card.Portal)
	}
	// It is told of again: it may have been forgotten since its domain was proved.
	s.Registry.Learned(w.Card, w.Card.Origin == origin)
	s.Report(ctx, w.Card.Portal)
	s.Catalog.NoteSought(w.Card.Portal)
	s.Catalog.Reconcile(ctx)
	return w.Card, nil
}

// ResolverConfig is what a Resolver needs.
type ResolverConfig struct {
	// Host is this portal's own.
	Host         string
	DHT          DHT
	Searcher     *Searcher
	Bootstrapper *Bootstrapper
	Log          *slog.Logger
}

// Resolver finds agents of portals that are not known here: the DHT tells where the
// portal is, and the portal, once it is met as any other, what the agent is. It
// implements hub.Seeker. Create it with NewResolver; it is safe for concurrent use.
type Resolver struct {
	ResolverConfig
	catalog                *catalog.Catalog
	persons, visitors, all *limit.Keyed

	mu      sync.Mutex // guards the rest
	flights map[string]*seeking
	absent  map[string]absence
	tally   ResolveTally
}

var _ hub.Seeker = (*Resolver)(nil)

// seeking is a search under way.
type seeking struct {
	done  chan struct{} // closed with the rest, which is not changed from then on
	agent hub.Agent
	err   error
}

// absence is what was not found.
type absence struct {
	err   error
	until time.Time
}

// ResolveTally is what came of searches for agents of unknown portals since the
// start: Limited were not begun because somebody, or all together, began too
// many.
type ResolveTally struct{ Found, Absent, Failed, Limited int64 }

// NewResolver returns a Resolver. Its searches end with the Searcher's Run.
func NewResolver(cfg ResolverConfig) *Resolver {
	return &Resolver{ResolverConfig: cfg, catalog: cfg.Bootstrapper.Catalog, flights: make(map[string]*seeking), absent: make(map[string]absence),
		persons: limit.New(seekEvery, seekBurst, maxSeekers), visitors: limit.New(seekEveryVisitor, seekBurstVisitor, maxSeekers), all: limit.New(seekEveryAll, seekBurstAll, 1)}
}

// Tally returns what came of searches.
func (k *Resolver) Tally() ResolveTally {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.tally
}

// Seek implements hub.Seeker. All who look for the same wait for one search, at
// most seekFor.
func (k *Resolver) Seek(ctx context.Context, actor ident.Actor, what string) (hub.Agent, error) {
	w, err := k.goal(ctx, actor, what)
	if err != nil {
		return hub.Agent{}, err
	}
	s, err := k.begin(actor, what, w)
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
	return hub.Agent{}, &fault.Error{Kind: fault.Unavailable, Safe: w.text() + " is not known here. It is being looked for in the network; ask again in a few seconds.", RetryAfter: seekFor}
}

// begin returns the search that is under way, or begins one.
func (k *Resolver) begin(actor ident.Actor, what string, w goal) (*seeking, error) {
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
		k.tally.Limited++
		return nil, fault.Limited(wait, "%s is not known here, and you looked for many such in a short time. Wait %s.", w.text(), max(wait.Round(time.Second), time.Second))
	}
	wait, ok := k.all.Allow("")
	if !ok || len(k.flights) >= maxSeeks {
		k.tally.Limited++
		return nil, &fault.Error{Kind: fault.Unavailable, Safe: w.text() + " is not known here, and too many others are being looked for in the network now. Try again in some seconds.", RetryAfter: max(wait, time.Second)}
	}
	s := &seeking{done: make(chan struct{})}
	k.flights[what] = s
	k.Searcher.under.Go(func() {
		// Ended by cancel and not by a deadline, so that nobody is thought to be
		// down who is only slow.
		ctx, cancel := context.WithCancel(k.Searcher.alive)
		defer cancel()
		timer := time.AfterFunc(seekWhole, cancel)
		defer timer.Stop()
		s.agent, s.err = k.look(ctx, w)
		k.end(what, s)
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

// end notes what came of a search.
func (k *Resolver) end(what string, s *seeking) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.flights, what)
	life := absentFor
	switch {
	case s.err == nil:
		k.tally.Found++
		close(s.done)
		return
	case fault.Is(s.err, fault.NotFound):
		k.tally.Absent++
	default:
		k.tally.Failed++
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

// goal is an agent that somebody looks for: by its name and its portal's host,
// or by its id in the network.
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

// goal reads what is looked for, if it is worth a search: nothing that this
// portal itself must know, and of nobody who is shut out.
func (k *Resolver) goal(ctx context.Context, actor ident.Actor, what string) (w goal, err error) {
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
			return w, fault.New(fault.NotFound, "%.80q is neither a handle, such as name@portal.example, nor the id of an agent.", what)
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
	if d := k.decide(ctx, w.host); shutOut(d) {
		return w, w.none(keptOut(actor, d, "Check the spelling."))
	}
	return w, nil
}

// decide says what holds for whoever is at a host: for the portal that was seen
// to be there, if one was. That another one says so of itself shuts nobody out.
func (k *Resolver) decide(ctx context.Context, host string) federation.Decision {
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

// shutOut reports whether nothing of a portal is looked for. One that only waits
// may be let in by what is found.
func shutOut(d federation.Decision) bool {
	return d.State == federation.Denied || d.State == federation.Quarantined || d.State == federation.Active && !d.Take
}

// keptOut says to an operator that it is a decision of this portal that nothing is
// looked for; to anybody else what is said of what is not there.
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

// look looks for an agent.
func (k *Resolver) look(ctx context.Context, w goal) (hub.Agent, error) {
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
	// Anybody may sign that: who answers there is who is meant.
	a, err := k.ask(ctx, list, "", func(*record.Card) (hub.Agent, error) { return k.open(ctx, w) })
	return a, k.failed(w, err)
}

// ask meets portals, one after the other, until one has what is looked for. One
// that answers and has it not is the end of it.
func (k *Resolver) ask(ctx context.Context, list []overlay.Found, portal record.PortalID, has func(*record.Card) (hub.Agent, error)) (a hub.Agent, err error) {
	tried := make(map[string]bool)
	err = errShut
	for _, f := range list {
		if tried[f.Card.Origin] || len(tried) == maxMet || ctx.Err() != nil {
			continue
		}
		tried[f.Card.Origin] = true
		card, merr := k.Bootstrapper.meet(ctx, f.Card.Origin, portal, true)
		if merr != nil {
			k.Log.Debug("a portal that the DHT names was not met", "portal", f.Card.Portal, "origin", f.Card.Origin, "error", merr)
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

// open returns an agent of a portal that was met just now.
func (k *Resolver) open(ctx context.Context, w goal) (hub.Agent, error) {
	f, err := k.Searcher.Open(ctx, w.name, w.host)
	if err == nil {
		return f.Agent, nil
	}
	if a, ok := k.catalog.Named(w.name, w.host); ok { // its log was quicker
		if id, url := k.catalog.Owner(a); k.Bootstrapper.Registry.Decide(ctx, id, url).Show {
			return a, nil
		}
	}
	return hub.Agent{}, err
}

// byID looks for who lists an agent, or for its portal.
func (k *Resolver) byID(ctx context.Context, w goal) (hub.Agent, error) {
	list, _, err := k.DHT.Agent(ctx, w.id)
	if w.portal != "" { // nobody else lists it, whatever they sign
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
	a, err := k.ask(ctx, list, w.portal, func(c *record.Card) (hub.Agent, error) { return k.listed(ctx, c, w) })
	return a, k.failed(w, err)
}

// listed returns an agent as a portal lists it that was met just now.
func (k *Resolver) listed(ctx context.Context, card *record.Card, w goal) (hub.Agent, error) {
	for _, p := range k.catalog.Partial() {
		if p.ID == card.Portal {
			f, err := k.Searcher.fetch(ctx, p, p, w.id)
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
	return fault.Wrap(fault.Unavailable, err, "%s is not known here, and its portal could not be asked. Try again later.", w.text())
}
