package notify

import (
	"math/rand/v2"
	"time"
)

// Pauses between attempts for an address that does not accept events. They grow from firstPause to
// longestPause.
const (
	firstPause   = 5 * time.Second
	longestPause = time.Hour
	growth       = 3
	// keepEvents is the age at which a waiting event is dropped and the next one tried.
	keepEvents = 24 * time.Hour
	// webhookPatience is the time without a success after which a webhook is stopped and its owner
	// notified.
	webhookPatience = 3 * 24 * time.Hour
	// pushPatience is shorter than webhookPatience, because the caller asked for the events of one
	// task only.
	pushPatience = 6 * time.Hour
)

// retryPause returns the pause after a number of failures in a row. at is a random number in [0, 1)
// that varies the pause by a fifth, so that many hooks do not retry at the same time.
func retryPause(failures int, at float64) time.Duration {
	d := firstPause
	for range min(failures, 12) - 1 {
		d = min(d*growth, longestPause)
	}
	return time.Duration(float64(d) * (0.8 + 0.4*at))
}

// nextAttempt returns the time of the next attempt after failures in a row. asked is the pause that
// the receiver demands, 0 for none; a longer pause is used if asked is longer, up to longestPause.
func nextAttempt(now time.Time, failures int, asked time.Duration) time.Time {
	return now.Add(max(retryPause(failures, rand.Float64()), min(asked, longestPause)))
}

// maxFailingTime returns the time without a success after which the hook is stopped.
func (h Hook) maxFailingTime() time.Duration {
	if h.Kind == Push {
		return pushPatience
	}
	return webhookPatience
}
