package guard

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"math"
	"sync"
	"time"

	"agentsite/internal/clock"
)

// NonceStore stores on disk which nonces were used, so that a restart does not allow replays.
type NonceStore interface {
	// KeepNonces stores each nonce with the time until which it is needed; it returns after they are on
	// disk.
	KeepNonces(ctx context.Context, list map[[16]byte]time.Time) error
	// LoadNonces calls yield with each nonce that is still needed. clean is true if EndNonces was called
	// at the last stop, or nothing was ever stored; otherwise nonces may be missing.
	LoadNonces(ctx context.Context, yield func(nonce [16]byte, until time.Time)) (clean bool, err error)
	// EndNonces records, at the stop of the process, that all used nonces are stored.
	EndNonces(ctx context.Context) error
}

const (
	// maxNonces is how many nonces are kept in memory, about 30 MB.
	maxNonces = 1_000_000
	// nonceSpan is the period of one bucket; nonces are dropped by whole buckets.
	nonceSpan = 30 * time.Second
	// keepEvery is the interval in which used nonces are written. A crash loses those of the last
	// interval; the portal then refuses requests signed before its next start.
	keepEvery = 5 * time.Second
	maxUnkept = 4096
	// NoncesKept is how much longer than its validity a nonce is kept, in memory and on disk: if a fast
	// clock is set back, expired signatures become valid again. used.forgotten covers a clock that is
	// set back further.
	NoncesKept = 15 * time.Minute
)

// used holds the used nonces. It is safe for concurrent use.
type used struct {
	disk NonceStore
	log  *slog.Logger

	mu      sync.Mutex // guards the fields below
	buckets map[int64]*bucket
	// forgotten is the number of the newest dropped bucket: nonces in it or before may have been used
	// and are refused.
	forgotten int64
	count     int
	unkept    map[[16]byte]time.Time
	full      chan struct{} // capacity 1: wakes the writer when many nonces wait
}

func (u *used) countNonces() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.count
}

// bucket holds the nonces whose validity ends in one nonceSpan.
type bucket struct {
	nonces map[[16]byte]struct{}
	last   time.Time // time of the last addition; time.Since uses its monotonic clock
}

// newUsed loads the stored nonces; clean is false if some may be missing after a crash.
func newUsed(ctx context.Context, disk NonceStore, log *slog.Logger) (u *used, clean bool, err error) {
	u = &used{disk: disk, log: log, buckets: make(map[int64]*bucket), forgotten: math.MinInt64,
		unkept: make(map[[16]byte]time.Time), full: make(chan struct{}, 1)}
	var newest time.Time
	clean, err = disk.LoadNonces(ctx, func(nonce [16]byte, until time.Time) {
		if newest.Before(until) {
			newest = until
		}
		if u.count < maxNonces {
			u.addNonce(nonce, until)
		} else {
			u.forgotten = max(u.forgotten, bucketOf(until))
		}
	})
	if !newest.IsZero() {
		// Older nonces were deleted from disk when the newest was stored, so they count as dropped.
		u.forgotten = max(u.forgotten, bucketOf(newest.Add(-NoncesKept)))
	}
	return u, clean, err
}

// nonceKey returns the map key of a nonce: a hash of the key id and the nonce.
func nonceKey(keyID, nonce string) [16]byte {
	b := make([]byte, 0, 160)
	b = append(append(append(b, keyID...), 0), nonce...)
	sum := sha256.Sum256(b)
	return [16]byte(sum[:16])
}

func bucketOf(until time.Time) int64 { return until.UnixMilli() / nonceSpan.Milliseconds() }

// addNonce adds a nonce to its bucket; the caller holds mu.
func (u *used) addNonce(nonce [16]byte, until time.Time) {
	b := u.buckets[bucketOf(until)]
	if b == nil {
		b = &bucket{nonces: make(map[[16]byte]struct{})}
		u.buckets[bucketOf(until)] = b
	}
	b.nonces[nonce], b.last = struct{}{}, time.Now()
	u.count++
}

// sweepBuckets drops buckets that have expired by the wall clock and, unless memory is half full, also
// by the monotonic clock, which a clock change does not affect. The caller holds mu.
func (u *used) sweepBuckets(now time.Time) {
	for at, b := range u.buckets { // about thirty buckets
		if at < bucketOf(now) && (time.Since(b.last) > NoncesKept || u.count > maxNonces/2) {
			u.forgotten = max(u.forgotten, at)
			u.count -= len(b.nonces)
			delete(u.buckets, at)
		}
	}
}

// has reports whether a nonce is in memory.
func (u *used) has(nonce [16]byte) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.hasLocked(nonce)
}

// hasLocked is has for callers that hold mu.
func (u *used) hasLocked(nonce [16]byte) bool {
	for _, b := range u.buckets {
		if _, ok := b.nonces[nonce]; ok {
			return true
		}
	}
	return false
}

// use is the result of used.first.
type use int

const (
	unused use = iota
	usedBefore
	// usedPerhaps: the clock was set back so far that the nonce may be one of those already dropped.
	usedPerhaps
	noRoom
)

// first checks whether a nonce is new and, if it is, stores it until the given time and NoncesKept
// longer. writeLoop writes it to disk later.
func (u *used) first(nonce [16]byte, until, now time.Time) use {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.sweepBuckets(now)
	if u.hasLocked(nonce) {
		return usedBefore
	}
	if bucketOf(until) <= u.forgotten {
		return usedPerhaps
	}
	if u.count >= maxNonces {
		return noRoom
	}
	u.addNonce(nonce, until)
	u.unkept[nonce] = until
	if len(u.unkept) >= maxUnkept {
		select {
		case u.full <- struct{}{}:
		default:
		}
	}
	return unused
}

// writeWaiting writes all nonces that are not on disk yet; on an error they stay queued.
func (u *used) writeWaiting(ctx context.Context) error {
	u.mu.Lock()
	list := u.unkept
	u.unkept = make(map[[16]byte]time.Time)
	u.mu.Unlock()
	if len(list) == 0 {
		return nil
	}
	err := u.disk.KeepNonces(ctx, list)
	if err != nil {
		u.mu.Lock()
		for n, until := range list {
			if until.Add(NoncesKept).After(clock.Now()) && len(u.unkept) < maxNonces {
				u.unkept[n] = until
			}
		}
		u.mu.Unlock()
	}
	return err
}

// writeLoop writes used nonces every keepEvery until ctx ends, then the remaining ones.
func (u *used) writeLoop(ctx context.Context) error {
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-u.full:
		case <-ctx.Done():
			ctx = context.WithoutCancel(ctx)
			if err := u.writeWaiting(ctx); err != nil {
				return err
			}
			return u.disk.EndNonces(ctx)
		}
		if err := u.writeWaiting(ctx); err != nil && ctx.Err() == nil {
			u.log.Error("keep the nonces of requests", "error", err)
		}
	}
}
