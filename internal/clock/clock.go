// Package clock gives the wall-clock time where it matters (signatures, expiry, rows). Code that only
// waits uses package time, which testing/synctest controls. Built with the tag clockoffset it adds the
// environment's AGENTSITE_CLOCK_OFFSET, so that fault tests can move it.
package clock

import (
	"context"
	"time"
)

// Clock returns the current time. It is Now in production, and a fixed or controlled time in tests.
type Clock func() time.Time

// Now returns the current UTC time, truncated to milliseconds, because times are stored and signed with
// that precision.
func Now() time.Time {
	return time.Now().Add(readOffset()).UTC().Truncate(time.Millisecond)
}

// Milli returns t as milliseconds since 1970, as stored in the database; the zero time is 0.
func Milli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// FromMilli is the inverse of Milli; 0 is the zero time. The result is in UTC.
func FromMilli(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// Sleep waits for d and returns true, or returns false as soon as ctx ends.
func Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
