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
	// A portal that chooses its tier by itself keeps only summaries when there are at least this
	// many agents of others, or this many bytes of their records.
	summaryFromAgents = 2_000_000
	summaryFromBytes  = 4 << 30
	// It keeps all records again below this percentage of these limits, so that a network whose
	// size is near a limit does not switch the tier repeatedly.
	replicaBelow = 80
	// tierEvery is how often it looks.
	tierEvery = 10 * time.Second
)

// TiersConfig holds the parts that Tiers works with. Known is required if Want is empty.
type TiersConfig struct {
	// Want is the tier that the operator set, empty to choose by size.
	Want string
	// Was is the tier that the portal announced last, empty for none.
	Was string
	// Known returns how many agents of others there are to be kept, and how many
	// bytes all that they signed takes or would take.
	Known func(ctx context.Context) (agents int, bytes int64, err error)
	// Announce publishes a changed tier. Optional.
	Announce func(ctx context.Context) error
	Log      *slog.Logger
}

// Tiers chooses how much this portal keeps of the others: record.TierReplica, record.TierSummary
// or record.TierIndex, which is never chosen automatically. Create it with NewTiers and keep Run
// running; it is safe for concurrent use.
type Tiers struct {
	cfg TiersConfig

	mu      sync.Mutex // guards the rest
	tier    string
	changed chan struct{} // closed when the tier changes
	untold  bool          // Announce has yet to succeed
}

// NewTiers returns the tier that is wanted, or the one there was.
func NewTiers(cfg TiersConfig) *Tiers {
	t := &Tiers{cfg: cfg, tier: cfg.Want, changed: make(chan struct{})}
	if t.tier == "" {
		if t.tier = record.TierReplica; cfg.Was == record.TierSummary {
			t.tier = record.TierSummary
		}
	}
	return t
}

// Tier is the present one.
func (t *Tiers) Tier() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tier
}

// Changed returns a channel that is closed when the tier is another than now.
func (t *Tiers) Changed() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changed
}

// Run chooses the tier again as the network grows and shrinks, until ctx ends.
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

// Look chooses the tier now.
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

// nextTier is the tier after was, for so many agents and bytes of others.
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

// agentBytes is the estimated size of an agent of another portal that is not held here yet.
const agentBytes = 2_000

// Known returns the number of agents of others that are to be kept, as counted by their portals'
// heads, and their size in bytes, of which held are here. Portals that are hidden, whose head has
// expired, or that are over quota do not count, because nothing of them is kept: a portal cannot
// change this portal's tier by a count above its quota.
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
