package search

import (
	"sync/atomic"

	"agentsite/internal/federation"
)

// Tally counts the results of remote searches since the start.
type Tally struct {
	// Searches asked at least one portal, Late of them ended before all answered, Limited of them asked
	// fewer than they should.
	Searches, Late, Limited int64
	// Asked and Answered are portals, each time they were.
	Asked, Answered int64
}

type searchTally struct{ searches, late, limited, asked, answered atomic.Int64 }

// Tally returns the counts of results.
func (s *Searcher) Tally() Tally {
	t := &s.tally
	return Tally{t.searches.Load(), t.late.Load(), t.limited.Load(), t.asked.Load(), t.answered.Load()}
}

func (t *searchTally) note(c federation.Coverage, late bool) {
	t.searches.Add(1)
	t.asked.Add(int64(c.Asked))
	t.answered.Add(int64(c.Answered))
	if late {
		t.late.Add(1)
	}
	if c.Limited {
		t.limited.Add(1)
	}
}
