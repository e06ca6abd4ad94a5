// Package limit counts how often somebody does something. It holds one token
// bucket a key in bounded memory; keys are whatever the caller can tell
// people apart by (an account, an address). It knows nothing of what is
// limited.
package limit

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Keyed is a set of token buckets, one a key, each refilled at the same rate.
// It is safe for concurrent use.
type Keyed struct {
	every time.Duration
	burst int
	max   int

	mu      sync.Mutex // guards buckets
	buckets map[string]*rate.Limiter
}

// New allows burst at once and then one per every, for each key. At most max
// keys are remembered: when there are more, the full buckets, which say
// nothing, are dropped first, and if none is full all are.
func New(every time.Duration, burst, max int) *Keyed {
	return &Keyed{every: every, burst: burst, max: max, buckets: make(map[string]*rate.Limiter)}
}

// Allow takes one token of key's bucket; when it is empty it returns how long
// to wait.
func (k *Keyed) Allow(key string) (wait time.Duration, ok bool) {
	return k.AllowRate(key, k.every, k.burst)
}

// AllowN is Allow for n tokens at once; more than the burst are never there.
func (k *Keyed) AllowN(key string, n int) (wait time.Duration, ok bool) {
	return k.allow(key, k.every, k.burst, n)
}

// AllowRate is Allow for a key with a rate of its own; a changed rate holds
// from the next token on.
func (k *Keyed) AllowRate(key string, every time.Duration, burst int) (wait time.Duration, ok bool) {
	return k.allow(key, every, burst, 1)
}

// Wait is how long until a key with a rate of its own has a token again, 0 when
// it has one. It takes none.
func (k *Keyed) Wait(key string, every time.Duration) time.Duration {
	now := time.Now()
	k.mu.Lock()
	b := k.buckets[key]
	k.mu.Unlock()
	if b == nil {
		return 0
	}
	if missing := 1 - b.TokensAt(now); missing > 0 {
		return max(time.Duration(missing*float64(every)), time.Nanosecond)
	}
	return 0
}

// Charge takes up to n tokens of a key, as many as there are.
func (k *Keyed) Charge(key string, n int) {
	now := time.Now()
	k.mu.Lock()
	b := k.buckets[key]
	k.mu.Unlock()
	if b != nil {
		b.AllowN(now, min(n, int(b.TokensAt(now))))
	}
}

func (k *Keyed) allow(key string, every time.Duration, burst, n int) (wait time.Duration, ok bool) {
	now := time.Now()
	k.mu.Lock()
	b := k.buckets[key]
	if b == nil {
		if len(k.buckets) >= k.max {
			k.shrink(now)
		}
		b = rate.NewLimiter(rate.Every(every), burst)
		k.buckets[key] = b
	}
	k.mu.Unlock()
	if b.Burst() != burst || b.Limit() != rate.Every(every) {
		b.SetLimitAt(now, rate.Every(every))
		b.SetBurstAt(now, burst)
	}
	// Not a reservation given back: of several at once, only the last would
	// be restored, and being refused would cost tokens.
	if b.AllowN(now, n) {
		return 0, true
	}
	missing := float64(n) - b.TokensAt(now)
	return max(time.Duration(missing*float64(every)), time.Nanosecond), false
}

// shrink makes room; the caller holds mu.
func (k *Keyed) shrink(now time.Time) {
	for key, b := range k.buckets {
		if b.TokensAt(now) >= float64(b.Burst()) {
			delete(k.buckets, key)
		}
	}
	if len(k.buckets) >= k.max {
		clear(k.buckets)
	}
}
