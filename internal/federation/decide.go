package federation

import (
	"context"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/record"
)

// Decide implements Gatekeeper.
func (p *Peers) Decide(_ context.Context, portal record.PortalID, origin string) Decision {
	now := clock.Now()
	p.mu.RLock()
	defer p.mu.RUnlock()
	if e := p.entries[string(portal)]; portal != "" && e != nil {
		return p.decideLocked(&e.Facts, origin, now)
	}
	return p.decideLocked(&Facts{ID: portal, URL: origin}, "", now)
}

// DecideAddr implements Gatekeeper.
func (p *Peers) DecideAddr(a netip.Addr) string {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if n, ok := p.policy.deniesAddr(a); ok {
		return "The network " + n.String() + " is shut out here."
	}
	return ""
}

// DecideKey implements Gatekeeper.
func (p *Peers) DecideKey(key record.KeyID) string {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if slices.Contains(p.policy.DenyKeys, key) {
		return "The key " + string(key) + " is shut out here."
	}
	return ""
}

// Exports implements Filter.
func (p *Peers) Exports(tags, languages []string) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.policy.exportsAgent(tags, languages)
}

// Imports implements Filter.
func (p *Peers) Imports(a *record.Agent) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.policy.importsAgent(a)
}

// unprovedShare divides the request rate of portals that did not prove their address.
const unprovedShare = 10

// decideLocked returns the decision for the portal of f; origin is a further address claimed for it, or
// "". The order of the checks is the precedence: maintenance mode, the operator's deny rule, quarantine,
// denied keys, denied and allowed domains, followed lists, admission mode. The caller holds mu.
func (p *Peers) decideLocked(f *Facts, origin string, now time.Time) Decision {
	pol := &p.policy
	d := Decision{State: Active, MaxAgents: pol.MaxAgents, MaxBytes: pol.MaxBytes, PerSecond: pol.PerSecond}
	d.Follow = f.Rule.isAdmitted()
	if f.Rule.MaxAgents > 0 {
		d.MaxAgents = f.Rule.MaxAgents
	}
	if f.Rule.MaxBytes > 0 {
		d.MaxBytes = f.Rule.MaxBytes
	}
	if d.Unproved = !f.isProved(now); d.Unproved {
		d.PerSecond = max(d.PerSecond/unprovedShare, 1)
	}
	kept := func(s State, reason string) Decision {
		d.State, d.Reason = s, reason
		return d
	}
	if f.ID != "" && f.ID == p.selfID() {
		d.Unproved = false
		d.In, d.Show, d.Take, d.Call, d.Out = true, true, true, true, true
		return d
	}
	if pol.Service == ServiceOff {
		d.Keep = f.Rule.Stand != Deny
		return kept(Denied, "This portal is being worked on and deals with no others for now.")
	}
	if f.Rule.Stand == Deny {
		return kept(Denied, "An operator of this portal shut it out.")
	}
	if f.Quarantined {
		return kept(Quarantined, "It signed two different statements under one number. It stays out until an operator has looked at the proof.")
	}
	for _, k := range f.Keys {
		// Records signed by a denied key are refused, so the portal has to publish a card without that key.
		if slices.Contains(pol.DenyKeys, k) {
			return kept(Pending, "Its card lists the key "+string(k)+
				", which is shut out here. It waits for a card without that key.")
		}
	}
	allowed := f.Rule.isAdmitted()
	for _, o := range [...]string{f.URL, origin} {
		if len(pol.DenyDomains)+len(pol.AllowDomains) == 0 {
			// the loop is only for domain lists; Decide is called for each contact in the DHT and must be cheap
			break
		}
		entry, allows := pol.matchDomain(originHostname(o))
		switch {
		case entry == "" || f.Rule.isAdmitted():
		case !allows:
			return kept(Denied, "Portals of "+entry+" are shut out here.")
		case o == f.URL && (f.isProved(now) || f.Known.IsZero()):
			// An allowed domain counts only if it is proved, because any portal can claim any host.
			allowed = true
		}
	}
	if why := p.listVerdict(f, now); why != "" && !allowed {
		// The records are kept: the followed list may change, or the operator may stop following it.
		d.Keep = true
		return kept(Denied, why)
	}
	switch {
	case pol.Mode == ModeClosed:
		return kept(Denied, "This portal deals with no others.")
	case allowed, pol.Mode == ModeOpen:
	case pol.Mode == ModeVouched:
		if n := p.countVouchers(f.ID, now); n < pol.Vouchers {
			return kept(Pending, "It waits for others to vouch for it: "+formatCount(n, "portal does",
				"portals do")+", "+formatCount(pol.Vouchers, "is", "are")+" needed. An operator can allow it at once.")
		}
	default:
		return kept(Pending, "It waits for an operator of this portal to allow it.")
	}
	d.Show = true
	if f.RefusedUntil.After(now) {
		d.Keep = true
		return kept(Denied, "It sent what was forged ("+f.RefusedWhy+") "+formatCount(forgedMost, "time",
			"times")+" within "+forgedWithin.String()+". It is refused until "+formatTime(f.RefusedUntil)+".")
	}
	d.In, d.Out = true, pol.CallsOut
	if pol.Service == ServiceReadOnly {
		d.Out, d.Reason = false, "This portal is read-only for now."
		return d
	}
	d.Take, d.Call = true, pol.CallsIn
	return d
}

// provedFor is how long a portal counts as verified after its domain was seen to serve its card. The proof
// of the domain is checked every 24 hours and may fail once. It expires because domains change hands.
const provedFor = 50 * time.Hour

// isProved reports whether the proof of the portal's domain is recent enough.
func (f *Facts) isProved(now time.Time) bool { return now.Sub(f.Proved) < provedFor }

// Proven reports whether the proof of the portal's domain is recent enough to address the portal by its host.
func (p Peer) Proven(now time.Time) bool { return now.Sub(p.Proved) < provedFor }

// originHostname returns the host name of an origin, without the port; "" for an invalid origin.
func originHostname(origin string) string {
	u, err := url.Parse(origin)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// countVouchers counts the pinned portals that vouch for the portal id. The caller holds mu.
func (p *Peers) countVouchers(id record.PortalID, now time.Time) (n int) {
	for by, w := range p.words[id] {
		if e := p.entries[string(by)]; e != nil && e.Rule.Stand == Pin && !e.Quarantined && w.Verdict == record.Vouch &&
			w.Expires.After(now) {
			n++
		}
	}
	return n
}
