package task

import (
	"fmt"
	"time"
)

// BusyReason is the reason of a task that was refused because its agent, or the portal of its agent, has
// no room for it now. name is the agent or the portal.
func BusyReason(name string, wait time.Duration) string {
	seconds := WaitSeconds(wait)
	if seconds < 120 {
		return fmt.Sprintf("%s is busy, about %d s. Try again then.", name, seconds)
	}
	return fmt.Sprintf("%s is busy, about %d min. Try again then.", name, (seconds+59)/60)
}

// Wait is the estimate of when a waiting task starts.
type Wait struct {
	Before int           // tasks of the same account that wait longer for the same agent
	Left   time.Duration // 0 if it is not known
}

// String returns the wait for people, such as "about 20 s; 12 before it", "" if nothing is known. The time
// is rough, so that the text changes only when the turn does so noticeably.
func (t Wait) String() string {
	if t.Left <= 0 {
		return ""
	}
	seconds, text := WaitSeconds(t.Left), ""
	switch {
	case seconds <= 5:
		text = fmt.Sprintf("about %d s", seconds)
	case seconds < 120:
		text = fmt.Sprintf("about %d s", (seconds+4)/5*5)
	default:
		text = fmt.Sprintf("about %d min", (seconds+59)/60)
	}
	if t.Before > 0 {
		text += fmt.Sprintf("; %d before it", t.Before)
	}
	return text
}

// WaitSeconds rounds a time to wait up to whole seconds, at least 1, so that no caller tries too early.
func WaitSeconds(wait time.Duration) int64 {
	return max(int64((wait+time.Second-1)/time.Second), 1)
}
