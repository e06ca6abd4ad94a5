package federation

import (
	"time"

	"agentsite/internal/record"
)

// Published is how an agent of this portal stands in the network.
type Published struct {
	// Why explains in a sentence why the agent is not published; empty when it is.
	Why string
	// Version, At and Hash are of its newest record. Listed is true when the
	// portal's newest head covers it: only then does it count elsewhere.
	Version record.Version
	At      time.Time
	Hash    record.Hash
	Listed  bool
	// Cut describes the parts of the agent that were left out of the record because of its size
	// limit.
	Cut []string
}
