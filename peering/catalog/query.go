package catalog

import (
	"context"
	"errors"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/record"
	"agentsite/peering/translate"
)

// errNotShown is returned for an agent that the import policy excludes.
var errNotShown = errors.New("it is not shown here")

// Partial returns the displayed portals with agents that are not all held here; remote search asks them.
// The caller must not change the slice.
func (c *Catalog) Partial() []federation.Peer { return c.view.Load().partly }

// PartialPortal returns the portal with that id if it is one of Partial.
func (c *Catalog) PartialPortal(id record.PortalID) (federation.Peer, bool) {
	v := c.view.Load()
	at, ok := v.partlyAt[id]
	if !ok {
		return federation.Peer{}, false
	}
	return v.partly[at], true
}

// Indexes returns the displayed portals of the tier index, which answer searches for other portals too. The
// caller must not change the slice.
func (c *Catalog) Indexes() []federation.Peer { return c.view.Load().indexes }

// SummaryOnly reports whether the tier of this portal keeps only summaries of other portals.
func (c *Catalog) SummaryOnly() bool { return c.view.Load().tier == record.TierSummary }

// Standing returns a portal if it is one of Partial (known), and reports whether all its agents are held
// here (held). This portal counts as held.
func (c *Catalog) Standing(id record.PortalID) (p federation.Peer, known, held bool) {
	if p, ok := c.PartialPortal(id); ok {
		return p, true, false
	}
	for _, o := range c.view.Load().list {
		if o.id == id {
			return p, false, o.shown
		}
	}
	return p, false, id == c.cfg.Self
}

// ShowsHost reports whether agents of the portal at a host are in the directory. The host must be in lower
// case.
func (c *Catalog) ShowsHost(host string) bool {
	s := c.view.Load().byHost[host]
	return s != nil && s.shown
}

// Collapsed reports whether the agents of the portal at a host are left out because its head has expired;
// issued is the time at which that head was signed.
func (c *Catalog) Collapsed(host string) (issued time.Time, ok bool) {
	s := c.view.Load().byHost[host]
	if s == nil || s.folded == 0 {
		return time.Time{}, false
	}
	return s.issued, true
}

// PolicyVersion returns a number that increases with each change of the import policy, as part of cache
// keys.
func (c *Catalog) PolicyVersion() int64 { return c.rules.Load() }

// NoteSought records that a portal became known because of a search for one of its agents, for display in
// Source.
func (c *Catalog) NoteSought(portal record.PortalID) { c.sought.notePortal(portal) }

// Learned returns an agent of another portal from the directory, by its network id.
func (c *Catalog) Learned(id string) (hub.Agent, bool) { return c.cfg.Directory.Learned(id) }

// Owner returns the id and address of the portal that lists an agent. The portal in the agent's id takes
// precedence over the one at its host, because several portals may claim one host.
func (c *Catalog) Owner(a hub.Agent) (id record.PortalID, url string) {
	if s := c.view.Load().byHost[a.Portal]; s != nil {
		id, url = s.id, s.url
	}
	if of, _ := translate.Local(a.ID); of != "" && of != id {
		id = of // that portal claims the same host, so url is right for it too
	}
	return id, url
}

// Named returns the agent with a handle. If several portals claim the host, the one verified at it takes
// precedence, then the order is by id.
func (c *Catalog) Named(name, host string) (hub.Agent, bool) {
	list := c.cfg.Directory.LearnedAs(name, host)
	for _, a := range list {
		if a.Verified {
			return a, true
		}
	}
	if len(list) > 0 {
		return list[0], true
	}
	c.mu.Lock()
	id, ok := c.handles[name+"@"+host]
	c.mu.Unlock()
	if !ok {
		return hub.Agent{}, false
	}
	return c.cfg.Directory.Learned(id)
}

// Builtin returns a built-in agent of the portal at a host. No records exist for built-in agents, because
// every portal has its own, so the description comes from the agent of the same name of this portal. ok is
// false if the portal is unknown or not allowed.
func (c *Catalog) Builtin(ctx context.Context, name, host string) (hub.Agent, bool) {
	s := c.view.Load().byHost[host]
	if s == nil || !c.cfg.Registry.Decide(ctx, s.id, s.url).Show {
		return hub.Agent{}, false
	}
	a, ok := c.cfg.Directory.Builtin(name)
	if !ok {
		return hub.Agent{}, false
	}
	a.ID, a.Portal, a.Proof = string(s.id)+"/builtin/"+name, host, hub.Proof{}
	a, err := hub.Elsewhere(a)
	return a, err == nil
}

// Present converts a record that is not held here, such as one in a search answer, to an agent for display.
// It returns errNotShown if the policy excludes the agent.
func (c *Catalog) Present(card *record.Card, p federation.Peer, r *record.Record) (hub.Agent, error) {
	body, ok := r.Body.(*record.Agent)
	if !ok || !c.cfg.Registry.Imports(body) {
		return hub.Agent{}, errNotShown
	}
	return c.buildAgent(card, r, body, shown{host: p.Host(), verified: p.Proven(clock.Now())})
}

// Source implements a part of hub.Network: it returns the portal that an agent comes from, and how its
// record was obtained.
func (c *Catalog) Source(a hub.Agent) hub.Source {
	s := c.view.Load().sourceOf(a)
	s.Sought = c.sought.soughtSince(record.PortalID(s.ID))
	return s
}

// Portals implements a part of hub.Network: it returns the portals with agents in the directory, by host.
func (c *Catalog) Portals() []hub.Source { return c.view.Load().listPortals() }

// Coverage implements a part of hub.Network: it returns how much of the network the local search covers.
// portals are the hosts that a search is limited to; none for no limit.
func (c *Catalog) Coverage(portals []string) federation.Coverage {
	return c.view.Load().countCoverage(portals, clock.Now())
}
