package replication

import (
	"math/rand/v2"
	"sync"
	"time"

	"agentsite/internal/record"
)

// dice makes random choices.
type dice struct {
	mu   sync.Mutex // guards rand
	rand *rand.Rand
}

// sample returns n random elements of list, or all when there are no more. It changes the order of list.
func (d *dice) sample(list []record.PortalID, n int) []record.PortalID {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:min(n, len(list))]
}

// vary returns a random time at most a fifth from t.
func (d *dice) vary(t time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Duration(float64(t) * (0.8 + 0.4*d.rand.Float64()))
}

// upTo returns a random time below t.
func (d *dice) upTo(t time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Duration(d.rand.Int64N(int64(t)))
}

// backoff returns the wait after a number of failures: from about two seconds, doubling, to ten minutes.
func (d *dice) backoff(fails int) time.Duration {
	return d.vary(min(time.Second<<min(fails, 10), 10*time.Minute))
}
