package federation

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/record"
)

const (
	// Without a configured tier, a portal keeps only summaries from this many agents of other portals,
	// or this many bytes of their records, on.
	summaryFromAgents = 2_000_000
	summaryFromBytes  = 4 << 30
	// The portal returns to keeping all records below this percentage of the limits. The gap avoids
	// repeated switching when the network's size is near a limit.
	replicaBelow = 80
	tierEvery    = 10 * time.Second
)

// TiersConfig holds the parts that Tiers works with. Known is required if Want is empty.
type TiersConfig struct {
	// Want is the tier that the operator set; empty to choose by size.
	Want string
	// Was is the tier that the portal announced last; empty for none.
	Was string
	// Known returns the number of agents of other portals that would be stored, and the bytes of their
	// records, stored or estimated.
	Known func(ctx context.Context) (agents int, bytes int64, err error)
	// Announce publishes a changed tier, for example by a new card; nil for none.
	Announce func(ctx context.Context) error
	Log      *slog.Logger
}

// Tiers chooses how much this portal stores of other portals: record.TierReplica or record.TierSummary
// by the size of the network, or the configured tier, which may also be record.TierIndex. Create it with
// NewTiers; Run must run. It is safe for concurrent use.
type Tiers struct {
	cfg TiersConfig

	mu      sync.Mutex // guards the fields below
	tier    string
	changed chan struct{} // closed and replaced when the tier changes
	untold  bool          // a change that Announce has not published yet
}

// NewTiers returns Tiers that starts with the configured tier or, without one, the last announced tier.
func NewTiers(cfg TiersConfig) *Tiers {
	t := &Tiers{cfg: cfg, tier: cfg.Want, changed: make(chan struct{})}
	if t.tier == "" {
		if t.tier = record.TierReplica; cfg.Was == record.TierSummary {
			t.tier = record.TierSummary
		}
	}
	return t
}

// Tier returns the present tier; Changed announces the next one.
func (t *Tiers) Tier() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tier
}

// Changed returns a channel that is closed at the next change of the tier.
func (t *Tiers) Changed() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changed
}

// Run chooses the tier every tierEvery, until ctx ends.
func (t *Tiers) Run(ctx context.Context) error {
	tick := time.NewTicker(tierEvery)
	defer tick.Stop()
	for {
		if err := t.Look(ctx); err != nil && ctx.Err() == nil {
			t.cfg.Log.Warn("choose how much is kept of other portals", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// Look chooses the tier now and announces a change. A failed announcement is repeated by the next call.
func (t *Tiers) Look(ctx context.Context) error {
	if t.cfg.Want == "" {
		agents, bytes, err := t.cfg.Known(ctx)
		if err != nil {
			return err
		}
		t.mu.Lock()
		was := t.tier
		if next := nextTier(was, agents, bytes); next != was {
			t.tier, t.untold = next, true
			close(t.changed)
			t.changed = make(chan struct{})
			t.cfg.Log.Info("how much is kept of other portals changes; --tier sets it", "tier", next, "agents", agents,
				"bytes", bytes)
		}
		t.mu.Unlock()
	}
	t.mu.Lock()
	untold := t.untold
	t.untold = false
	t.mu.Unlock()
	if !untold || t.cfg.Announce == nil {
		return nil
	}
	if err := t.cfg.Announce(ctx); err != nil {
		t.mu.Lock()
		t.untold = true
		t.mu.Unlock()
		return fmt.Errorf("announce the tier: %w", err)
	}
	return nil
}

// nextTier returns the tier for a network with that many agents and bytes of other portals, if the
// present tier is was.
func nextTier(was string, agents int, bytes int64) string {
	if was == record.TierSummary {
		if agents < summaryFromAgents/100*replicaBelow && bytes < summaryFromBytes/100*replicaBelow {
			return record.TierReplica
		}
		return was
	}
	if agents >= summaryFromAgents || bytes >= summaryFromBytes {
		return record.TierSummary
	}
	return record.TierReplica
}

// agentBytes is the estimated size of an agent record that is not stored here yet.
const agentBytes = 2_000

// Known returns the number of agents of other portals that are to be stored, as their heads count them, and their
// size in bytes; held is the size of those already here. Portals that are hidden, expired or over their quota do not
// count, because their agents are not stored. A portal thus cannot change the tier by a false count.
func (p *Peers) Known(held int64) (agents int, bytes int64) {
	now := clock.Now()
	p.mu.RLock()
	defer p.mu.RUnlock()
	here := 0
	for _, e := range p.entries {
		here += e.Agents
		if d := p.decideLocked(&e.Facts, "", now); d.Show && e.HeadExpires.After(now) && e.Listed <= d.MaxAgents &&
			!e.Truncated {
			agents += max(e.Listed, e.Agents)
		}
	}
	return agents, held + int64(max(agents-here, 0))*agentBytes
}
