package record

import (
	"sync/atomic"

	"agentsite/internal/meter"
)

// Tally is what a Gate decided since it was made.
type Tally struct {
	// Admitted were let in, Known were seen before. Refused are by Reason; those
	// that could not be decided are "failed".
	Admitted, Known int64
	Refused         map[string]int64
}

type tally struct {
	admitted, known atomic.Int64
	refused         meter.Kinds
}

// Tally returns what was decided.
func (g *Gate) Tally() Tally {
	return Tally{g.tally.admitted.Load(), g.tally.known.Load(), g.tally.refused.All()}
}

func (t *tally) note(fresh bool, err error) {
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
