package replication

import (
	"math/rand/v2"
	"sync"
	"time"

	"agentsite/internal/record"
)

// dice makes random choices. It is safe for concurrent use.
type dice struct {
	mu   sync.Mutex // guards rand
	rand *rand.Rand
}

// sampleList returns n random elements of list, or all when there are no more. It changes the order of list.
func (d *dice) sampleList(list []record.PortalID, n int) []record.PortalID {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:min(n, len(list))]
}

// varyTime returns a random duration that differs from t by at most a fifth, so that portals do not act in
// step.
func (d *dice) varyTime(t time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Duration(float64(t) * (0.8 + 0.4*d.rand.Float64()))
}

// timeBelow returns a random duration from 0 to below t.
func (d *dice) timeBelow(t time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Duration(d.rand.Int64N(int64(t)))
}

// backoffAfter returns the wait after a number of failures: from about two seconds, doubling, to ten minutes.
func (d *dice) backoffAfter(fails int) time.Duration {
	return d.varyTime(min(time.Second<<min(fails, 10), 10*time.Minute))
}
