package notify

import (
	"math/rand/v2"
	"time"
)

// Retries for an address that does not accept events. The pauses grow from firstPause to longestPause.
const (
	firstPause   = 5 * time.Second
	longestPause = time.Hour
	growth       = 3
	// keepEvents is the age at which an event is dropped and the next one tried.
	keepEvents = 24 * time.Hour
	// A webhook that accepted nothing for this long is stopped and its owner notified.
	webhookPatience = 3 * 24 * time.Hour
	// A push hook is given up earlier, because its caller asked for one task only.
	pushPatience = 6 * time.Hour
)

// retryPause returns the pause after a number of failures in a row. It varies by a fifth so that many
// hooks do not retry at the same time. at is in [0, 1).
func retryPause(failures int, at float64) time.Duration {
	d := firstPause
	for range min(failures, 12) - 1 {
		d = min(d*growth, longestPause)
	}
	return time.Duration(float64(d) * (0.8 + 0.4*at))
}

// nextAttempt returns the time of the next attempt. The receiver may ask for a longer pause, up to
// longestPause.
func nextAttempt(now time.Time, failures int, asked time.Duration) time.Time {
	return now.Add(max(retryPause(failures, rand.Float64()), min(asked, longestPause)))
}

// maxFailingTime returns how long a hook may accept nothing before it is stopped.
func (h Hook) maxFailingTime() time.Duration {
	if h.Kind == Push {
		return pushPatience
	}
	return webhookPatience
}
