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

// WaitSeconds rounds a time to wait up to whole seconds, at least 1, so that no caller tries too early.
func WaitSeconds(wait time.Duration) int64 {
	return max(int64((wait+time.Second-1)/time.Second), 1)
}
