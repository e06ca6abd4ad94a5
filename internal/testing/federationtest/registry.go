package federationtest

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"agentsite/internal/federation"
	"agentsite/internal/record"
)

// Registry is a federation.Registry that is kept in memory and allows every portal that a test did not
// restrict. The zero value is ready. It is safe for concurrent use.
type Registry struct {
	mu        sync.Mutex // guards the fields below
	peers     map[record.PortalID]federation.Peer
	decisions map[record.PortalID]federation.Decision
	heard     []string
	denied    []string // origins that Portals lists as denied
	addrs     map[netip.Addr]string
	keys      map[record.KeyID]string
}

// In is the decision about portals for which Say was not called: everything is allowed.
var In = federation.Decision{In: true, Show: true, Take: true, Call: true, Out: true, State: federation.Active, MaxAgents: 50_000, MaxBytes: 128 << 20, PerSecond: 1000}

// Say sets the decision that Decide returns for a portal.
func (g *Registry) Say(portal record.PortalID, d federation.Decision) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.decisions == nil {
		g.decisions = make(map[record.PortalID]federation.Decision)
	}
	g.decisions[portal] = d
}

// Decide implements federation.Gatekeeper.
func (g *Registry) Decide(_ context.Context, portal record.PortalID, _ string) federation.Decision {
	g.mu.Lock()
	defer g.mu.Unlock()
	if d, ok := g.decisions[portal]; ok {
		return d
	}
	return In
}

// Deny makes Portals list the origin as a denied portal.
func (g *Registry) Deny(origin string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.denied = append(g.denied, origin)
}

// DecideAddr implements federation.Gatekeeper.
func (g *Registry) DecideAddr(addr netip.Addr) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.addrs[addr]
}

// DecideKey implements federation.Gatekeeper.
func (g *Registry) DecideKey(key record.KeyID) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.keys[key]
}

// SayAddr makes DecideAddr return the reason for an IP address. "" allows the address.
func (g *Registry) SayAddr(addr netip.Addr, reason string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.addrs == nil {
		g.addrs = make(map[netip.Addr]string)
	}
	g.addrs[addr] = reason
}

// SayKey makes DecideKey return the reason for a key. "" allows the key.
func (g *Registry) SayKey(key record.KeyID, reason string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.keys == nil {
		g.keys = make(map[record.KeyID]string)
	}
	g.keys[key] = reason
}

// Imports implements catalog.Registry.
func (g *Registry) Imports(*record.Agent) bool { return true }

// Changed implements catalog.Registry.
func (g *Registry) Changed() <-chan struct{} { return nil }

// Wanted implements search.Registry.
func (g *Registry) Wanted(record.PortalID) {}

// Heard implements federation.Registry.
func (g *Registry) Heard(origin string, _ record.PortalID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !slices.Contains(g.heard, origin) {
		g.heard = append(g.heard, origin)
	}
}

// Origins returns the origins for which Heard was called, each once, oldest first.
func (g *Registry) Origins() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.heard)
}

// Learned implements federation.Registry.
func (g *Registry) Learned(card *record.Card, proved bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p, ok := g.peers[card.Portal]
	if !ok {
		p = federation.Peer{ID: card.Portal, State: federation.Joining, Faults: make(map[string]int)}
	}
	p.URL, p.Name, p.Operator, p.Contact, p.Tier = card.Origin, card.Name, card.Operator, card.Contact, card.Tier
	if proved {
		p.Proved, p.State = time.UnixMilli(card.Issued), federation.Active
	}
	if g.peers == nil {
		g.peers = make(map[record.PortalID]federation.Peer)
	}
	g.peers[card.Portal] = p
}

// with calls change for a known portal with mu held. It does nothing for an unknown one.
func (g *Registry) with(portal record.PortalID, change func(p *federation.Peer)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p, ok := g.peers[portal]; ok {
		p.Faults = maps.Clone(p.Faults) // callers of Portals may hold the old map
		change(&p)
		g.peers[portal] = p
	}
}

// Seen implements federation.Registry.
func (g *Registry) Seen(portal record.PortalID, took time.Duration) {
	g.with(portal, func(p *federation.Peer) {
		p.State = federation.Active
		if took > 0 {
			p.RTT = took
		}
	})
}

// Rule sets the operator's rule of a known portal.
func (g *Registry) Rule(portal record.PortalID, rule federation.Rule) {
	g.with(portal, func(p *federation.Peer) { p.Rule = rule })
}

// Barred implements federation.Registry.
func (g *Registry) Barred(portal record.PortalID, why federation.Reason, words string) {
	g.with(portal, func(p *federation.Peer) { p.Bars, p.BarsWhy = why, words })
}

// Failed implements federation.Registry.
func (g *Registry) Failed(portal record.PortalID, err error) {
	g.with(portal, func(p *federation.Peer) { p.State, p.Reason = federation.Silent, err.Error() })
}

// Fault implements federation.Registry.
func (g *Registry) Fault(portal record.PortalID, reason string) {
	g.with(portal, func(p *federation.Peer) { p.Faults[reason]++ })
}

// Synced implements federation.Registry.
func (g *Registry) Synced(portal record.PortalID, head federation.HeadRow, held int, truncated bool, waits time.Time) {
	g.with(portal, func(p *federation.Peer) {
		p.Head, p.Listed, p.Agents, p.Truncated = head.Version, int(head.Count), held, truncated
		p.HeadIssued, p.HeadExpires = time.UnixMilli(head.Issued), time.UnixMilli(head.Expires)
		p.Lag = 0
		if !waits.IsZero() {
			p.Lag = max(time.UnixMilli(head.Issued).Sub(waits), 1)
		}
	})
}

// Portals implements federation.Registry. It includes origins whose portal is not known yet.
func (g *Registry) Portals(context.Context) []federation.Peer {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := slices.Collect(maps.Values(g.peers))
	for _, origin := range g.heard {
		if !slices.ContainsFunc(list, func(p federation.Peer) bool { return p.URL == origin }) {
			list = append(list, federation.Peer{URL: origin, State: federation.Joining})
		}
	}
	for _, origin := range g.denied {
		list = append(list, federation.Peer{URL: origin, State: federation.Denied})
	}
	// All origins have one scheme, so this sorts by host.
	slices.SortFunc(list, func(a, b federation.Peer) int { return cmp.Compare(a.URL, b.URL) })
	return list
}
