//go:build clockoffset

package clock

import (
	"os"
	"time"
)

// offset returns the configured offset, 0 if it is unset or malformed. It reads the environment on every
// call, so that a test can change the offset while the process runs.
func offset() time.Duration {
	d, err := time.ParseDuration(os.Getenv("AGENTSITE_CLOCK_OFFSET"))
	if err != nil {
		return 0
	}
	return d
}
