package ard

import (
	"net/url"
	"strings"

	"agentsite/internal/hub"
)

// maxReferrals bounds the registries of other portals that one answer refers to.
const maxReferrals = 20

// homeOf returns the address of the portal that lists an agent: this one or a peer.
func (d *Handler) homeOf(a *hub.Agent) string {
	if !a.Elsewhere() {
		return d.cfg.URL
	}
	return d.cfg.Directory.Source(*a).URL
}

// publisherOf returns the publisher in the identifiers of an agent's portal, which is derived from the
// portal's host.
func (d *Handler) publisherOf(a *hub.Agent) string {
	if !a.Elsewhere() {
		return d.cfg.Publisher
	}
	return hostDomain(d.homeOf(a))
}

func hostDomain(origin string) string {
	u, err := url.Parse(origin)
	if err != nil {
		return ""
	}
	return Domain(u.Hostname())
}

// limitPublishers restricts a query to the portals of the requested publishers. Unknown publishers match
// nothing.
func (d *Handler) limitPublishers(q *query) {
	if q.publishers == nil {
		return
	}
	own := containsFold(q.publishers, d.cfg.Publisher)
	if q.Scope == hub.ScopePortal {
		q.nothing = q.nothing || !own
		return
	}
	if own {
		q.Portals = append(q.Portals, "")
	}
	for _, p := range d.cfg.Directory.Portals() {
		if containsFold(q.publishers, hostDomain(p.URL)) {
			q.Portals = append(q.Portals, p.Portal)
		}
	}
	q.nothing = q.nothing || len(q.Portals) == 0
}

// otherRegistries returns an entry for the registry of each other portal that has agents in this
// directory and a verified domain, at most maxReferrals.
func (d *Handler) otherRegistries() []entry {
	list := []entry{}
	for _, p := range d.cfg.Directory.Portals() {
		if !p.Verified || len(list) == maxReferrals {
			continue
		}
		name := strings.TrimSpace(p.Name)
		if name == "" {
			name = p.Portal
		}
		list = append(list, entry{Identifier: "urn:air:" + hostDomain(p.URL) + ":" + registrySpace + ":" + agentSpace,
			DisplayName: "Agents of " + cutText(name, maxQueryRunes), Type: registryType, URL: p.URL + base})
	}
	return list
}
