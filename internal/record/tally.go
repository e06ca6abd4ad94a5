package record

import (
	"sync/atomic"

	"agentsite/internal/meter"
)

// Tally counts the decisions of a Gate since its start.
type Tally struct {
	// Admitted counts new records, Known repeated ones. Refused counts by Reason; errors of the
	// memory count as "failed".
	Admitted, Known int64
	Refused         map[string]int64
}

type tally struct {
	admitted, known atomic.Int64
	refused         meter.Kinds
}

// Tally returns the counts.
func (g *Gate) Tally() Tally {
	return Tally{g.tally.admitted.Load(), g.tally.known.Load(), g.tally.refused.All()}
}

func (t *tally) countResult(fresh bool, err error) {
	switch reason := ReasonOf(err); {
	case reason != "":
		t.refused.Add(string(reason), 1)
	case err != nil:
		t.refused.Add("failed", 1)
	case fresh:
		t.admitted.Add(1)
	default:
		t.known.Add(1)
	}
}
