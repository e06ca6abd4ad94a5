//go:build clockoffset

package clock

import (
	"os"
	"time"
)

// readOffset reads the environment on every call, so that a test can change it while running.
func offset() time.Duration {
	d, err := time.ParseDuration(os.Getenv("AGENTSITE_CLOCK_OFFSET"))
	if err != nil {
		return 0
	}
	return d
}
