package notify

import (
	"math/rand/v2"
	"time"
)

// How long an address that does not take what it is told is tried again. The
// pauses grow from firstPause to longestPause.
const (
	firstPause   = 5 * time.Second
	longestPause = time.Hour
	growth       = 3
	// keepEvents is how old an event may get before the next one is tried.
	keepEvents = 24 * time.Hour
	// A webhook that took nothing for so long is stopped, and its owner told.
	webhookPatience = 3 * 24 * time.Hour
	// Who asked for one task waits less.
	pushPatience = 6 * time.Hour
)

// pause is how long to wait after a number of failures in a row, a fifth more
// or less so that many do not come back at once. at is in [0, 1).
func pause(failures int, at float64) time.Duration {
	d := firstPause
	for range min(failures, 12) - 1 {
		d = min(d*growth, longestPause)
	}
	return time.Duration(float64(d) * (0.8 + 0.4*at))
}

// next is when a hook is tried again; the far side may ask for a longer pause,
// up to the longest.
func next(now time.Time, failures int, asked time.Duration) time.Time {
	return now.Add(max(pause(failures, rand.Float64()), min(asked, longestPause)))
}

// patience is how long a hook may take nothing.
func (h Hook) patience() time.Duration {
	if h.Kind == Push {
		return pushPatience
	}
	return webhookPatience
}
