package federation

import (
	"time"

	"agentsite/internal/record"
)

// Published is the publication state of an agent of this portal.
type Published struct {
	// Why explains in a sentence why the agent is not published; empty when it is.
	Why string
	// Version, At and Hash are those of its newest record. Listed is true if the portal's newest head
	// covers that record; other portals accept it only then.
	Version record.Version
	At      time.Time
	Hash    record.Hash
	Listed  bool
	// Cut describes the parts of the agent that were left out of the record because of its size limit.
	Cut []string
}
