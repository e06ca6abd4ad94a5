// Package popularity counts the people that use each agent, so that lists can be ordered by use. A person counts once,
// however often it asks; guests, other portals, agents and an agent's own owner do not count, so that a loop of calls
// does not move an agent upwards. The package knows neither the database nor the index.
package popularity

import (
	"context"
	"log/slog"
	"time"

	"agentsite/internal/clock"
)

const (
	// window is the time that is counted.
	window = 7 * 24 * time.Hour
	// every is the pause between two counts.
	every = time.Minute
	// most is the number of agents that are kept: lists show no further ones by use.
	most = 500
)

// Store counts people.
type Store interface {
	// CountUsers returns the number of people that used an agent since a time, by the agent's id, of the limit most
	// used agents.
	CountUsers(ctx context.Context, since time.Time, limit int) (map[string]int, error)
}

// Index orders agents by use.
type Index interface {
	// SetUsers replaces the number of people by the id of agents.
	SetUsers(users map[string]int)
}

// Counter passes the counts of a store to an index. Create it with New.
type Counter struct {
	store Store
	index Index
	log   *slog.Logger
}

// New returns a counter; Run makes it count.
func New(store Store, index Index, log *slog.Logger) *Counter { return &Counter{store, index, log} }

// Run counts at once and then every minute, until ctx is canceled.
func (c *Counter) Run(ctx context.Context) error {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		users, err := c.store.CountUsers(ctx, clock.Now().Add(-window), most)
		switch {
		case err == nil:
			c.index.SetUsers(users)
		case ctx.Err() == nil:
			c.log.Warn("count the people that use agents", "error", err)
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil
		}
	}
}
