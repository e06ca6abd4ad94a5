package federation

import (
	"strings"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/record"
)

var (
	_ Registry = (*Peers)(nil)
	_ Filter   = (*Peers)(nil)
)

// Heard implements Registry. Invalid origins, this portal's own, and addresses beyond the limits
// (maxAddresses, maxAddressesFrom) are ignored.
func (p *Peers) Heard(origin string, from record.PortalID) {
	origin = strings.TrimSuffix(origin, "/")
	if !record.ValidOrigin(origin) || p.cfg.Signer != nil && origin == p.cfg.Signer.Origin() {
		return
	}
	now := clock.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	// A portal that only claims this origin does not prevent a lookup there.
	if e := p.findEntry(HostOf(origin)); e != nil && e.URL == origin && (e.isAddress() || !e.Proved.IsZero()) {
		if from == "" && e.From != "" && e.isAddress() {
			e.From = "" // An operator named the address, so it does not expire.
			p.markDirty(e, now)
		}
		return
	}
	all, its := 0, 0
	for _, e := range p.entries {
		if e.isAddress() {
			all++
			if e.From == from {
				its++
			}
		}
	}
	if from != "" && (all >= maxAddresses || its >= maxAddressesFrom) {
		return
	}
	e := &entry{Facts: Facts{URL: origin, From: from, Known: now}, next: now}
	p.entries[e.Key()] = e
	p.addPlace(e, origin)
	if !p.makeRoom(e, now) {
		return
	}
	p.markDirty(e, now)
	p.wakeRun()
}

// Learned implements Registry.
func (p *Peers) Learned(c *record.Card, proved bool) {
	if c.Portal == p.selfID() {
		return
	}
	now := clock.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entries[string(c.Portal)]
	if e == nil {
		e = &entry{Facts: Facts{ID: c.Portal, Known: now}, next: now}
		p.entries[e.Key()] = e
		// The replica may still have a proof from before the entry was dropped, so the quarantine is checked.
		select {
		case p.suspect <- c.Portal:
		default:
		}
	}
	p.atAddress(e, c.Origin, proved)
	if proved {
		p.unseatOthers(e, c.Origin, now)
	}
	keys := make([]record.KeyID, len(c.Keys))
	for i, k := range c.Keys {
		keys[i] = k.ID
	}
	p.noticeCard(e, c.Origin, keys, proved)
	if e.URL != c.Origin {
		e.Proved, e.Failures, e.Why, e.next = time.Time{}, 0, "", now
	}
	moved := e.URL != c.Origin
	e.Name, e.Operator, e.Contact, e.Tier, e.Keys = c.Name, c.Operator, c.Contact, c.Tier, keys
	if proved {
		e.Proved = now
	}
	if moved {
		if p.addPlace(e, c.Origin); !p.makeRoom(e, now) {
			return
		}
	}
	p.markDirty(e, now)
}

// atAddress transfers the rule of the address that a portal's card names to the portal. An allow or pin
// rule is transferred only if the portal answered there (proved), because any card can name the address;
// a deny rule always. The caller holds mu.
func (p *Peers) atAddress(e *entry, origin string, proved bool) {
	a := p.entries[origin]
	if a == nil {
		return
	}
	if e.Rule == (Rule{}) && (proved || a.Rule.Stand == Deny) {
		e.Rule = a.Rule
	}
	if proved {
		e.Known, e.From = minTime(e.Known, a.Known), a.From
		p.dropEntry(origin)
	}
}

// unseatOthers removes the proof of an origin from all entries except by, whose portal was seen there
// just now. The caller holds mu.
func (p *Peers) unseatOthers(by *entry, origin string, now time.Time) {
	for _, e := range p.entries {
		if e != by && e.URL == origin && !e.Proved.IsZero() {
			e.Proved = time.Time{}
			p.markDirty(e, now)
		}
	}
}

func minTime(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Seen implements Registry.
func (p *Peers) Seen(portal record.PortalID, took time.Duration) {
	now := clock.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entries[string(portal)]
	if e == nil || portal == "" {
		return
	}
	e.Seen, e.later = now, true
	switch {
	case took > 0:
		e.dirty = e.dirty || e.Failures > 0
		e.Failures, e.Why = 0, ""
		e.asked, e.next = now, now.Add(p.askInterval(e))
		if e.RTT == 0 {
			e.RTT = took
		}
		e.RTT += (took - e.RTT) / rttWeight
	case e.Failures > 0:
		// A portal that failed before is asked at once, because its request shows that it is back.
		e.next = now
		p.wakeRun()
	}
	p.updateState(e, now)
}

// Barred implements Registry.
func (p *Peers) Barred(portal record.PortalID, why Reason, words string) {
	words = record.CutLine(record.CleanLine(words), maxWhy)
	p.mu.RLock()
	e := p.entries[string(portal)]
	same := e == nil || portal == "" || e.Bars == why && e.BarsWhy == words
	p.mu.RUnlock()
	if same {
		return
	}
	p.changeFacts(portal, func(e *entry, _ time.Time) { e.Bars, e.BarsWhy = why, words })
}

// maxWhy is the longest stored error text, in bytes.
const maxWhy = 200

// Failed implements Registry.
func (p *Peers) Failed(portal record.PortalID, err error) {
	p.changeFacts(portal, func(e *entry, now time.Time) { e.recordFailure(err, now) })
}

// Missed reports that gossip members miss a portal: a status request is sent to it soon, but not more
// often than quietInterval.
func (p *Peers) Missed(portal record.PortalID) {
	p.changeFacts(portal, func(e *entry, now time.Time) {
		if soon := maxTime(now, e.asked.Add(p.quietInterval())); soon.Before(e.next) {
			e.next = soon
			p.wakeRun()
		}
	})
}

// retryAfter is the wait before the second attempt after a first failure.
const retryAfter = time.Second

func (e *entry) recordFailure(err error, now time.Time) {
	e.Failed = now
	e.Failures = min(e.Failures+1, 1_000_000)
	if e.Why = "no answer"; err != nil {
		e.Why = record.CutLine(err.Error(), maxWhy)
	}
	if e.Failures < silentAfter {
		e.next = now.Add(retryAfter)
	}
}

// Fault implements Registry.
func (p *Peers) Fault(portal record.PortalID, reason string) {
	p.faulted.WithLabelValues(reason).Inc()
	p.changeFacts(portal, func(e *entry, now time.Time) {
		if e.countFault(reason, now) {
			p.cfg.Log.Warn("a portal is refused for an hour", "portal", portal, "reason", reason)
		}
	})
	switch reason {
	case string(record.Equivocation), string(record.Quarantined), string(record.BadEvidence):
		select {
		case p.suspect <- portal:
		default: // The queue is full; checkAllConflicts finds the portal later.
		}
	}
}

// Synced implements Registry.
func (p *Peers) Synced(portal record.PortalID, head HeadRow, held int, truncated bool, waits time.Time) {
	p.changeFacts(portal, func(e *entry, _ time.Time) {
		if e.Truncated != truncated || e.Listed != int(head.Count) || e.Waits.IsZero() != waits.IsZero() {
			// closes the channel before the new values are set; readers then wait for mu and see the new values
			p.wakeReaders()
		}
		e.Agents, e.Listed, e.Truncated, e.Waits = held, int(head.Count), truncated, waits
		e.Head, e.HeadIssued, e.HeadExpires = head.Version, clock.FromMilli(head.Issued), clock.FromMilli(head.Expires)
	})
}

// changeFacts calls fn with the entry of a portal and marks it dirty, with mu held; unknown portals are ignored.
func (p *Peers) changeFacts(portal record.PortalID, fn func(e *entry, now time.Time)) {
	now := clock.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entries[string(portal)]
	if e == nil || portal == "" {
		return
	}
	agents := e.Agents
	fn(e, now)
	p.markDirty(e, now)
	if e.Agents != agents {
		p.wakeReaders()
	}
}

// wakeRun makes Run check for due work now; it never blocks.
func (p *Peers) wakeRun() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}
