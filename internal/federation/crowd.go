package federation

import (
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/record"
)

// maxOfSite is the number of known portals and addresses of one site (see SiteOf), because host names below one
// domain cost nothing. Portals with an operator's rule, and sites whose domain the policy allows, are exempt.
const maxOfSite = 100

// addPlace sets the URL, host and site of an entry and counts it for its site; the caller holds mu.
func (p *Peers) addPlace(e *entry, url string) {
	p.removePlace(e)
	e.URL, e.at = url, HostOf(url)
	e.site = SiteOf(e.at)
	p.sites[e.site]++
}

// removePlace removes the host and site of an entry and its count; the caller holds mu.
func (p *Peers) removePlace(e *entry) {
	if e.site == "" {
		return
	}
	if p.sites[e.site]--; p.sites[e.site] <= 0 {
		delete(p.sites, e.site)
	}
	e.site = ""
}

// makeRoom drops entries while the site of e, or the whole table, has too many. It returns false if e,
// which was just added or moved, was dropped itself. The caller holds mu.
func (p *Peers) makeRoom(e *entry, now time.Time) bool {
	site := e.site
	if p.sites[site] > maxOfSite && !p.allowedSite(site) {
		if worst := p.findWorst(now, func(o *entry) bool { return o.site == site }); worst != nil {
			p.noticeCrowd(site, now)
			p.dropEntry(worst.Key())
			if worst == e {
				return false
			}
		}
	}
	if len(p.entries) <= p.cfg.Most {
		return true
	}
	// Entries are dropped in this order: those whose domain is not proved; those of the site with the
	// most entries; inactive ones without agents.
	worst := p.findWorst(now, func(o *entry) bool { return o != e && !o.isProved(now) })
	if worst == nil {
		most := ""
		for s, n := range p.sites {
			if n > 1 && (most == "" || n > p.sites[most] || n == p.sites[most] && s < most) && !p.allowedSite(s) {
				most = s
			}
		}
		worst = p.findWorst(now, func(o *entry) bool { return most != "" && o.site == most })
	}
	if worst == nil {
		worst = p.findWorst(now, func(o *entry) bool { return o != e && o.state != Active && o.Agents == 0 })
	}
	if worst == nil && p.isWanted(e, now) {
		if worst = p.findWorst(now, func(o *entry) bool { return o != e }); worst == nil {
			worst = p.wantedFirst(e)
		}
	}
	if worst == nil {
		worst = e // no other entry may be dropped
	}
	p.noticeCrowd(worst.site, now)
	p.dropEntry(worst.Key())
	return worst != e
}

// allowedSite reports whether the policy allows the domain of a site, which exempts it from maxOfSite;
// the caller holds mu.
func (p *Peers) allowedSite(site string) bool {
	_, allows := p.policy.matchDomain(site)
	return allows
}

// findWorst returns the entry to drop first among those that of selects, nil if none may be dropped.
// Entries with an operator's rule and wanted ones are never returned. The order is: domain not proved,
// then no agents here, then inactive; within these, inactive for the longest time. The caller holds mu.
func (p *Peers) findWorst(now time.Time, of func(*entry) bool) (worst *entry) {
	for _, e := range p.entries {
		if e.Rule == (Rule{}) && !(e.isAddress() && e.From == "") && !p.isWanted(e, now) && of(e) &&
			(worst == nil || isWorse(e, worst, now)) {
			worst = e
		}
	}
	return worst
}

const (
	// wantedFor is how long a portal that a visitor looked up is protected from being dropped.
	wantedFor = time.Hour
	maxWanted = 1000
)

// Wanted protects a portal that a visitor looks up from being dropped for wantedFor, so that invented
// portals cannot displace it.
func (p *Peers) Wanted(portal record.PortalID) {
	now := clock.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.wanted) >= maxWanted {
		for id, at := range p.wanted {
			if now.Sub(at) > wantedFor {
				delete(p.wanted, id)
			}
		}
	}
	if len(p.wanted) < maxWanted {
		p.wanted[portal] = now
	}
}

// isWanted reports whether a visitor looked up the portal within wantedFor; the caller holds mu.
func (p *Peers) isWanted(e *entry, now time.Time) bool {
	at, ok := p.wanted[e.ID]
	return ok && e.ID != "" && now.Sub(at) <= wantedFor
}

// wantedFirst returns the entry, except but, that was looked up earliest and has no operator's rule; nil
// if there is none. The caller holds mu.
func (p *Peers) wantedFirst(but *entry) (first *entry) {
	for id, at := range p.wanted {
		if o := p.entries[string(id)]; o != nil && o != but && o.Rule == (Rule{}) &&
			(first == nil || at.Before(p.wanted[first.ID])) {
			first = o
		}
	}
	return first
}

func isWorse(a, b *entry, now time.Time) bool {
	if x, y := a.keepRank(now), b.keepRank(now); x != y {
		return x < y
	}
	x, y := maxTime(a.Seen, a.Known), maxTime(b.Seen, b.Known)
	return x.Before(y) || x.Equal(y) && a.Key() < b.Key()
}

func (e *entry) keepRank(now time.Time) (n int) {
	if e.isProved(now) {
		n += 4
	}
	if e.Agents > 0 {
		n += 2
	}
	if e.state == Active {
		n++
	}
	return n
}

func maxTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
