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

// errNotShown is of an agent that this portal's import policy leaves out.
var errNotShown = errors.New("it is not shown here")

// Partial returns the portals that may be shown and are not fully replicated.
func (c *Catalog) Partial() []federation.Peer { return c.view.Load().partly }

// PartialPortal returns one of Partial.
func (c *Catalog) PartialPortal(id record.PortalID) (federation.Peer, bool) {
	v := c.view.Load()
	at, ok := v.partlyAt[id]
	if !ok {
		return federation.Peer{}, false
	}
	return v.partly[at], true
}

// Indexes returns the index portals that are shown.
func (c *Catalog) Indexes() []federation.Peer { return c.view.Load().indexes }

// SummaryOnly reports whether of other portals only summaries are kept.
func (c *Catalog) SummaryOnly() bool { return c.view.Load().tier == record.TierSummary }

// Standing returns a portal if searches ask it (known), and reports whether all
// of it is held here. This portal itself is held.
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

// ShowsHost reports whether agents of the portal at a host are shown.
func (c *Catalog) ShowsHost(host string) bool {
	s := c.view.Load().byHost[host]
	return s != nil && s.shown
}

// Collapsed reports whether the agents of the portal at a host are left out
// because its head has expired, and when that head was issued.
func (c *Catalog) Collapsed(host string) (issued time.Time, ok bool) {
	s := c.view.Load().byHost[host]
	if s == nil || s.folded == 0 {
		return time.Time{}, false
	}
	return s.issued, true
}

// PolicyVersion grows when other agents may be shown than before.
func (c *Catalog) PolicyVersion() int64 { return c.rules.Load() }

// NoteSought notes that a portal became known because of a search for one of its agents.
func (c *Catalog) NoteSought(portal record.PortalID) { c.sought.notePortal(portal) }

// Learned returns an agent that is shown by its id in the network.
func (c *Catalog) Learned(id string) (hub.Agent, bool) { return c.cfg.Directory.Learned(id) }

// Owner returns the portal that lists an agent, and where it is: the one in the
// agent's id, because several portals may claim one host.
func (c *Catalog) Owner(a hub.Agent) (id record.PortalID, url string) {
	if s := c.view.Load().byHost[a.Portal]; s != nil {
		id, url = s.id, s.url
	}
	if of, _ := translate.Local(a.ID); of != "" && of != id {
		id = of // at the same host: the same origin
	}
	return id, url
}

// Named returns the agent of a handle. If several portals claim the host, the portal proved to be at
// the host comes first, then the order is by id.
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

// Builtin returns a built-in agent of the portal at a host. Built-in agents are in no portal's records,
// because every portal has its own: the one of this portal describes the other. It may be called once its
// portal is known here and allowed.
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

// Present returns an agent that is not held as it is shown.
func (c *Catalog) Present(card *record.Card, p federation.Peer, r *record.Record) (hub.Agent, error) {
	body, ok := r.Body.(*record.Agent)
	if !ok || !c.cfg.Registry.Imports(body) {
		return hub.Agent{}, errNotShown
	}
	return c.buildAgent(card, r, body, shown{host: p.Host(), verified: p.Proven(clock.Now())})
}

// Source says where an agent comes from. See hub.Network.
func (c *Catalog) Source(a hub.Agent) hub.Source {
	s := c.view.Load().sourceOf(a)
	s.Sought = c.sought.soughtSince(record.PortalID(s.ID))
	return s
}

// Portals returns the portals with agents in the index. See hub.Network.
func (c *Catalog) Portals() []hub.Source { return c.view.Load().listPortals() }

// Coverage says how much of the network answers rest on. See hub.Network.
func (c *Catalog) Coverage(portals []string) federation.Coverage {
	return c.view.Load().countCoverage(portals, clock.Now())
}
