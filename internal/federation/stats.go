package federation

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentsite/internal/clock"
	"agentsite/internal/ident"
)

// Stats are figures about the known portals, for metrics and operators.
type Stats struct {
	// States is the number of portals in each state.
	States map[State]int
	// Heads counts the known heads, CurrentHeads the valid and StaleHeads the expired ones. OldestHead is the age
	// of the oldest valid head. Lagging counts the portals with a newer head that is not pulled yet.
	Heads, CurrentHeads, StaleHeads, Lagging int
	OldestHead                               time.Duration
	// Held counts the stored agents of admitted portals, Listed those that their heads count.
	Held, Listed int
	Truncated    int                  // portals over their quota
	Faults       prometheus.Collector // counts refused records and answers of portals, by reason
	// Each has figures of single portals, at most maxEach.
	Each []PeerStats
}

// PeerStats are the figures of one portal.
type PeerStats struct {
	Host     string
	RTT, Lag time.Duration
	Failures int // failed requests in a row
	Faults   int // refused records and answers since the start
	Agents   int
}

// maxEach is the number of portals with metrics of their own: those with an operator's rule first, then
// those known for the longest time. Invented portals thus cannot fill the metrics.
const maxEach = 64

// Stats returns figures about the known portals; for operators.
func (p *Peers) Stats(_ context.Context, actor ident.Actor) (Stats, error) {
	if err := checkOperator(actor); err != nil {
		return Stats{}, err
	}
	now := clock.Now()
	out := Stats{States: make(map[State]int), Faults: p.faulted}
	p.mu.RLock()
	defer p.mu.RUnlock()
	var each []*entry
	for _, e := range p.entries {
		out.States[e.state]++
		if !e.HeadIssued.IsZero() {
			out.Heads++
			if e.HeadExpires.After(now) {
				out.CurrentHeads++
			} else {
				out.StaleHeads++
			}
		}
		if e.state != Active && e.state != Silent {
			continue
		}
		each = append(each, e)
		out.Held, out.Listed = out.Held+e.Agents, out.Listed+e.Listed
		if e.Truncated {
			out.Truncated++
		}
		if !e.Waits.IsZero() {
			out.Lagging++
		}
		if !e.HeadIssued.IsZero() && e.HeadExpires.After(now) {
			out.OldestHead = max(out.OldestHead, now.Sub(e.HeadIssued))
		}
	}
	slices.SortStableFunc(each, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(rankUnruled(a), rankUnruled(b)), a.Known.Compare(b.Known),
			cmp.Compare(a.Key(), b.Key()))
	})
	hosts := make(map[string]bool) // Several portals may claim one host, but a metric label must be unique.
	for _, e := range each[:min(len(each), maxEach)] {
		if hosts[e.hostName()] {
			continue
		}
		hosts[e.hostName()] = true
		s := PeerStats{Host: e.hostName(), RTT: e.RTT, Failures: e.Failures, Agents: e.Agents}
		if !e.Waits.IsZero() {
			s.Lag = max(now.Sub(e.Waits), 0)
		}
		for _, n := range e.faults {
			s.Faults += n
		}
		out.Each = append(out.Each, s)
	}
	return out, nil
}

func rankUnruled(e *entry) int {
	if e.Rule.Stand != "" {
		return 0
	}
	return 1
}
