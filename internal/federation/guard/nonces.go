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

// Nonces keeps on disk which signatures were used.
type NonceStore interface {
	// KeepNonces keeps each until its time, and is done when they are on disk.
	KeepNonces(ctx context.Context, list map[[16]byte]time.Time) error
	// LoadNonces calls yield with each that still counts. clean is true when
	// EndNonces was called since the last time, or there was none.
	LoadNonces(ctx context.Context, yield func(nonce [16]byte, until time.Time)) (clean bool, err error)
	// EndNonces records that all used nonces are on disk.
	EndNonces(ctx context.Context) error
}

const (
	// maxNonces bounds those that are remembered, at about 30 MB.
	maxNonces = 1_000_000
	// nonceSpan is how much time one bucket of them holds: they are forgotten
	// by the bucket.
	nonceSpan = 30 * time.Second
	// keepEvery is how long used nonces wait to be written together. If the process dies in this
	// time they are lost, and the portal then refuses requests signed before its next start.
	keepEvery = 5 * time.Second
	maxUnkept = 4096
	// NoncesKept is how much longer than its validity a nonce is kept, in memory and on disk: when
	// a fast clock is set back, expired signatures become valid again. A clock that is set back
	// further is handled by used.forgotten.
	NoncesKept = 15 * time.Minute
)

// used remembers nonces. It is safe for concurrent use.
type used struct {
	disk NonceStore
	log  *slog.Logger

	mu      sync.Mutex // guards the rest
	buckets map[int64]*bucket
	// forgotten is the newest bucket that was dropped, by either clock: nonces that belong there
	// may have been used.
	forgotten int64
	count     int
	unkept    map[[16]byte]time.Time
	full      chan struct{} // wakes the writer when many wait
}

// countNonces returns the number of nonces that are remembered.
func (u *used) countNonces() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.count
}

// bucket holds the nonces that expire in one nonceSpan.
type bucket struct {
	nonces map[[16]byte]struct{}
	last   time.Time // time of the last addition, also by the monotonic clock
}

// newUsed loads the nonces on disk; clean is true when they are complete.
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
		// The disk forgot the others, by the clock there was.
		u.forgotten = max(u.forgotten, bucketOf(newest.Add(-NoncesKept)))
	}
	return u, clean, err
}

// mark names a nonce of a key.
func nonceKey(keyID, nonce string) [16]byte {
	b := make([]byte, 0, 160)
	b = append(append(append(b, keyID...), 0), nonce...)
	sum := sha256.Sum256(b)
	return [16]byte(sum[:16])
}

func bucketOf(until time.Time) int64 { return until.UnixMilli() / nonceSpan.Milliseconds() }

// addNonce remembers a nonce; the caller holds mu.
func (u *used) addNonce(nonce [16]byte, until time.Time) {
	b := u.buckets[bucketOf(until)]
	if b == nil {
		b = &bucket{nonces: make(map[[16]byte]struct{})}
		u.buckets[bucketOf(until)] = b
	}
	b.nonces[nonce], b.last = struct{}{}, time.Now()
	u.count++
}

// sweepBuckets drops expired buckets: by the wall clock, and by the monotonic clock unless there
// are very many. The caller holds mu.
func (u *used) sweepBuckets(now time.Time) {
	for at, b := range u.buckets { // about thirty
		if at < bucketOf(now) && (time.Since(b.last) > NoncesKept || u.count > maxNonces/2) {
			u.forgotten = max(u.forgotten, at)
			u.count -= len(b.nonces)
			delete(u.buckets, at)
		}
	}
}

// has reports whether a nonce is remembered.
func (u *used) has(nonce [16]byte) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.hasLocked(nonce)
}

// hasLocked is has; the caller holds mu.
func (u *used) hasLocked(nonce [16]byte) bool {
	for _, b := range u.buckets {
		if _, ok := b.nonces[nonce]; ok {
			return true
		}
	}
	return false
}

// use is the state of a nonce.
type use int

const (
	unused use = iota
	usedBefore
	// usedPerhaps: the clock was set back so far that it may be one of those that
	// were forgotten.
	usedPerhaps
	noRoom
)

// first reports whether a nonce is new, and then keeps it until then and NoncesKept longer. It is
// written to disk soon.
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

// writeWaiting writes the waiting nonces, with the one that was just used.
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

// writeLoop writes used nonces until ctx ends, and then those that are left.
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
