package ard

import (
	"net/url"
	"strings"

	"agentsite/internal/hub"
)

// maxReferrals bounds how many other registries one answer names.
const maxReferrals = 20

// home is the address of an agent's portal.
func (d *Door) home(a *hub.Agent) string {
	if !a.Elsewhere() {
		return d.cfg.URL
	}
	return d.cfg.Directory.Source(*a).URL
}

// publisherOf is who publishes the entries of an agent's portal.
func (d *Door) publisherOf(a *hub.Agent) string {
	if !a.Elsewhere() {
		return d.cfg.Publisher
	}
	return hostDomain(d.home(a))
}

func hostDomain(origin string) string {
	u, err := url.Parse(origin)
	if err != nil {
		return ""
	}
	return Domain(u.Hostname())
}

// ofPublishers restricts a query to the portals of the publishers that it asks
// for.
func (d *Door) ofPublishers(q *query) {
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

// others are the registries of other portals whose agents are held here and
// whose domain was seen to be theirs.
func (d *Door) others() []entry {
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
			DisplayName: "Agents of " + cut(name, maxQueryRunes), Type: registryType, URL: p.URL + base})
	}
	return list
}
