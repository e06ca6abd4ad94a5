package guard

import "agentsite/internal/federation"

// Tally counts the decisions of a Guard since its creation, and its kept state.
type Tally struct {
	// Verified counts requests with a valid signature that were admitted; Refused counts refusals
	// by Reason, "failed" for requests that could not be decided.
	Verified int64
	Refused  map[string]int64
	// Nonces are those that are remembered, of at most MaxNonces.
	Nonces, MaxNonces int
	// Busy is how many requests are worked on now.
	Busy int
}

// Tally returns the counts.
func (g *Guard) Tally() Tally {
	out := Tally{Verified: g.verified.Load(), Refused: g.refused.All(), MaxNonces: maxNonces}
	g.used.mu.Lock()
	out.Nonces = g.used.count
	g.used.mu.Unlock()
	g.places.mu.Lock()
	out.Busy = g.places.all
	g.places.mu.Unlock()
	return out
}

// note counts a refusal, nothing for nil.
func (g *Guard) countRefusal(err error) {
	if err == nil {
		return
	}
	reason := "failed"
	if why := federation.RefusalOf(err); why != nil && why.Reason != "" {
		reason = string(why.Reason)
	}
	g.refused.Add(reason, 1)
}
