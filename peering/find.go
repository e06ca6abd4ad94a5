package peering

import (
	"context"
	"strings"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/record"
	"agentsite/peering/translate"
)

// Find implements hub.Network. It looks at what is in memory, and asks the
// Gatekeeper, so that what an operator just said holds at once. What of a
// portal is not held is asked for there, which may take a while.
func (c *Catalog) Find(ctx context.Context, name, host string) (hub.Agent, error) {
	host = strings.ToLower(host)
	a, ok := c.named(name, host)
	if ok {
		if id, url := c.owner(a); id != "" && !c.cfg.Registry.Decide(ctx, id, url).Show {
			ok = false
		}
	}
	if w := c.wider.Load(); !ok && w != nil {
		f, err := w.open(ctx, name, host)
		if err == nil {
			return f.Agent, nil
		}
	}
	if !ok {
		if s := c.view.Load().byHost[host]; s != nil && s.folded > 0 {
			return hub.Agent{}, fault.New(fault.NotFound, "%s has not renewed its word for its agents since %s, so they are left out until it does.", host, s.issued.UTC().Format("2 January 15:04 UTC"))
		}
		return hub.Agent{}, fault.New(fault.NotFound, "There is no agent %.80q that is known here. Search for it, or check the spelling.", name+"@"+host)
	}
	return a, nil
}

// owner is the portal that lists an agent, and where it is: the one in the agent's
// id, as several may say to be at one host.
func (c *Catalog) owner(a hub.Agent) (id record.PortalID, url string) {
	if s := c.view.Load().byHost[a.Portal]; s != nil {
		id, url = s.id, s.url
	}
	if of, _ := translate.Local(a.ID); of != "" && of != id {
		id = of // at the same host: the same origin
	}
	return id, url
}

// named returns the agent that a handle means: of several one whose portal was
// seen to be at the host, else that of the lowest id.
func (c *Catalog) named(name, host string) (hub.Agent, bool) {
	list := c.shelf.LearnedAs(name, host)
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
	return c.shelf.Learned(id)
}

// Source implements hub.Network.
func (c *Catalog) Source(a hub.Agent) hub.Source {
	s := c.view.Load().source(a)
	s.Sought = c.meets.since(record.PortalID(s.ID))
	return s
}

// Portals implements hub.Network.
func (c *Catalog) Portals() []hub.Source { return c.view.Load().portals() }

// Coverage implements hub.Network.
func (c *Catalog) Coverage(portals []string) federation.Coverage {
	return c.view.Load().coverage(portals, clock.Now())
}
