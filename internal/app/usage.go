package app

import (
	"context"
	"sync"
	"time"

	"agentsite/handlers/ard"
)

// usageFor is how long usage counts are cached: counting scans all conversations, and the endpoint is public.
const usageFor = 5 * time.Minute

// usage counts the usage of a portal.
type usage struct {
	p *Portal

	mu   sync.Mutex // held while the portal counts, so that concurrent callers do not count too
	at   time.Time
	last ard.Usage
}

// CountUsage implements ard.UsageCounter.
func (u *usage) CountUsage(ctx context.Context) (ard.Usage, error) {
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
