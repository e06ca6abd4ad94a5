// Package limit counts how often one client does something, in bounded memory: Keyed has a token
// bucket per key, where a key is any string that identifies a client, such as an account or an
// address. The callers choose the limited operation and the answer to a client over its limit.
package limit

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Keyed is a set of token buckets, one per key, all with the same rate unless a call gives another
// one. Create it with New; it is safe for concurrent use.
type Keyed struct {
	every time.Duration
	burst int
	max   int

	mu      sync.Mutex // guards buckets, not the limiters in it, which lock themselves
	buckets map[string]*rate.Limiter
}

// New returns buckets that allow burst uses at once and then one per interval every. At most max
// keys are kept. When there are more, full buckets are dropped first, because a new bucket is full
// too; if none is full, all are dropped.
func New(every time.Duration, burst, max int) *Keyed {
	return &Keyed{every: every, burst: burst, max: max, buckets: make(map[string]*rate.Limiter)}
}

// Allow takes one token from key's bucket. If the bucket is empty, ok is false and wait is the time
// until the next token.
func (k *Keyed) Allow(key string) (wait time.Duration, ok bool) {
	return k.AllowRate(key, k.every, k.burst)
}

// AllowN is Allow for n tokens at once. It always refuses n larger than the burst.
func (k *Keyed) AllowN(key string, n int) (wait time.Duration, ok bool) {
	return k.takeTokens(key, k.every, k.burst, n)
}

// AllowRate is Allow with a rate for this key instead of the common one. A changed rate applies
// from the next token on.
func (k *Keyed) AllowRate(key string, every time.Duration, burst int) (wait time.Duration, ok bool) {
	return k.takeTokens(key, every, burst, 1)
}

// Wait returns the time until the bucket of a key has a token, 0 when it has one or no bucket
// exists. every is the key's rate. No token is taken.
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

// ChargeUpTo takes n tokens of a key, or all that are left if there are fewer. A key without a
// bucket is not charged. It is used for costs that are known only after the work.
func (k *Keyed) ChargeUpTo(key string, n int) {
	now := time.Now()
	k.mu.Lock()
	b := k.buckets[key]
	k.mu.Unlock()
	if b != nil {
		b.AllowN(now, min(n, int(b.TokensAt(now))))
	}
}

func (k *Keyed) takeTokens(key string, every time.Duration, burst, n int) (wait time.Duration, ok bool) {
	now := time.Now()
	k.mu.Lock()
	b := k.buckets[key]
	if b == nil {
		if len(k.buckets) >= k.max {
			k.makeRoom(now)
		}
		b = rate.NewLimiter(rate.Every(every), burst)
		k.buckets[key] = b
	}
	k.mu.Unlock()
	if b.Burst() != burst || b.Limit() != rate.Every(every) {
		b.SetLimitAt(now, rate.Every(every))
		b.SetBurstAt(now, burst)
	}
	// AllowN instead of a reservation that is canceled on refusal: of several concurrent
	// reservations only the last one canceled gives its tokens back, so refused callers would lose
	// tokens.
	if b.AllowN(now, n) {
		return 0, true
	}
	missing := float64(n) - b.TokensAt(now)
	return max(time.Duration(missing*float64(every)), time.Nanosecond), false
}

// makeRoom deletes all full buckets, and every bucket if none was full. The caller holds mu.
func (k *Keyed) makeRoom(now time.Time) {
	for key, b := range k.buckets {
		if b.TokensAt(now) >= float64(b.Burst()) {
			delete(k.buckets, key)
		}
	}
	if len(k.buckets) >= k.max {
		clear(k.buckets)
	}
}
