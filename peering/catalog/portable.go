package catalog

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"agentsite/internal/hub"
	"agentsite/internal/record"
)

// An agent with a key of its own (portable) may be listed by several portals: it signed each listing. It is
// displayed once, by the best listing: those of portals with a verified address come first, then the order
// is by portal id.

// listing is one portal's entry of a portable agent.
type listing struct {
	portal record.PortalID
	name   string
	as     shown
}

// maxListings bounds the listings of one agent that are kept, one for each portal.
const maxListings = 16

func isPortable(id string) bool { return strings.HasPrefix(id, "a1") }

// noteListing records that a portal lists a portable agent (or with gone that it does not any more), and
// updates the directory. The caller holds s.turn.
func (c *Catalog) noteListing(ctx context.Context, s *stand, id, name string, gone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := slices.DeleteFunc(slices.Clone(c.portable[id]), func(l listing) bool { return l.portal == s.id })
	if !gone && len(list) < maxListings {
		list = append(list, listing{s.id, name, s.shown})
	}
	c.showAgents(ctx, id, list)
}

// dropListings removes all listings by a portal, and updates the directory.
func (c *Catalog) dropListings(ctx context.Context, portal record.PortalID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, list := range c.portable {
		if slices.ContainsFunc(list, func(l listing) bool { return l.portal == portal }) {
			c.showAgents(ctx, id, slices.DeleteFunc(slices.Clone(list),
				func(l listing) bool { return l.portal == portal }))
		}
	}
}

// showAgents displays a portable agent by the best of its listings, or removes it if there is none. The
// list replaces the listings kept. The caller holds mu, also during reads of the Replica; this is
// acceptable because there are few such agents.
func (c *Catalog) showAgents(ctx context.Context, id string, list []listing) {
	for _, l := range c.portable[id] {
		delete(c.handles, l.name+"@"+l.as.host)
	}
	slices.SortStableFunc(list, func(a, b listing) int {
		if a.as.verified != b.as.verified {
			if a.as.verified {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.portal, b.portal)
	})
	for len(list) > 0 {
		if a, ok := c.listedAs(ctx, list[0], id); ok {
			for _, l := range list[1:] {
				a.Also = append(a.Also, l.as.host)
				c.handles[l.name+"@"+l.as.host] = id
			}
			c.portable[id] = list
			c.cfg.Directory.Learn([]hub.Agent{a})
			return
		}
		list = list[1:]
	}
	delete(c.portable, id)
	c.cfg.Directory.Unlearn([]string{id})
}

// listedAs builds a portable agent from the record of one portal; ok is false if the Replica does not hold
// a valid one.
func (c *Catalog) listedAs(ctx context.Context, l listing, id string) (hub.Agent, bool) {
	r := c.heldRecord(ctx, l.portal, id)
	if r == nil {
		return hub.Agent{}, false
	}
	card, err := c.Card(ctx, l.portal)
	if err != nil {
		return hub.Agent{}, false
	}
	body, ok := r.Body.(*record.Agent)
	if !ok {
		return hub.Agent{}, false
	}
	a, err := c.buildAgent(card, r, body, l.as)
	return a, err == nil
}
