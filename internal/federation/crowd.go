package federation

import (
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/record"
)

// maxOfSite bounds the portals and addresses of one site (see SiteOf) that are known at the same
// time, because names below one domain cost nothing. Portals that have an operator's rule, and
// sites whose domain the policy allows, are not bounded.
const maxOfSite = 100

// addPlace notes where an entry is; the caller holds mu.
func (p *Peers) addPlace(e *entry, url string) {
	p.removePlace(e)
	e.URL, e.at = url, HostOf(url)
	e.site = SiteOf(e.at)
	p.sites[e.site]++
}

// removePlace notes that an entry is nowhere any more; the caller holds mu.
func (p *Peers) removePlace(e *entry) {
	if e.site == "" {
		return
	}
	if p.sites[e.site]--; p.sites[e.site] <= 0 {
		delete(p.sites, e.site)
	}
	e.site = ""
}

// makeRoom lets others go when there are too many of a site, or in all, and reports
// whether e stays, which has just come or moved. The caller holds mu.
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
	// Entries are dropped in this order: not seen at their claimed address; sharing a site with
	// most others; away with no agents listed.
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
		worst = e // no entry can be dropped
	}
	p.noticeCrowd(worst.site, now)
	p.dropEntry(worst.Key())
	return worst != e
}

// allowedSite reports whether an operator let in all of a site; the caller holds
// mu.
func (p *Peers) allowedSite(site string) bool {
	_, allows := p.policy.matchDomain(site)
	return allows
}

// findWorst returns which of some entries to drop first, nil when all have an operator's rule: entries
// not seen at their address, then entries with no agents here, then entries that are away; of
// equal ones, the one that is away for longest. The caller holds mu.
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
	// wantedFor is how long a portal that a visitor looked for is not dropped.
	wantedFor = time.Hour
	maxWanted = 1000
)

// Wanted notes that a visitor looks for a portal. For wantedFor the portal is not dropped when
// there are too many.
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

// isWanted reports whether a visitor looked for the portal within wantedFor; the caller holds mu.
func (p *Peers) isWanted(e *entry, now time.Time) bool {
	at, ok := p.wanted[e.ID]
	return ok && e.ID != "" && now.Sub(at) <= wantedFor
}

// wantedFirst returns the portal, other than one, that was wanted earliest, nil if all have an
// operator's rule. The caller holds mu.
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
