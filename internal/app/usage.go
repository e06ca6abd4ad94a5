package app

import (
	"context"
	"sync"
	"time"

	"agentsite/handlers/api/spending"
	"agentsite/handlers/ard"
	"agentsite/internal/task"
	"agentsite/internal/usage"
)

// statedCost returns the cost of a task's models so far, if the caller asked for it; nil for none.
func statedCost(of *usage.Service, taskID string) *task.Claim {
	sum, currency, ok := of.OfTask(taskID)
	if !ok {
		return nil
	}
	c := &task.Claim{InputTokens: sum.Input, OutputTokens: sum.Output}
	if cost := sum.TalkCost + sum.WorkCost; cost > 0 {
		c.Cost, c.Currency = spending.FormatCost(cost), currency
	}
	if !c.Valid() {
		return nil
	}
	return c
}

// usageFor is how long usage counts are cached: counting scans all conversations, and the endpoint is public.
const usageFor = 5 * time.Minute

// portalCounts implements ard.UsageCounter with a cache of usageFor.
type portalCounts struct {
	p *Portal

	mu   sync.Mutex // held while counting, so that concurrent callers wait for one count
	at   time.Time
	last ard.Usage
}

// CountUsage implements ard.UsageCounter. Only the number of other portals is current; the rest may be
// usageFor old.
func (u *portalCounts) CountUsage(ctx context.Context) (ard.Usage, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.at.IsZero() || time.Since(u.at) >= usageFor {
		n, err := u.p.db.Stats(ctx)
		if err != nil {
			return ard.Usage{}, err
		}
		u.at, u.last = time.Now(), ard.Usage{Users: n["accounts"], Posts: n["messages"]}
	}
	out := u.last
	portals, _ := u.p.peers.Counts()
	out.Peers = portals - 1
	return out, nil
}
