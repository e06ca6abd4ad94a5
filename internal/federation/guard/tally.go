package guard

import "agentsite/internal/federation"

// GuardTally is what a Guard decided since it was made, and what it remembers.
type Tally struct {
	// Verified are requests whose signature held and that were let in; Refused
	// are by the Reason, "failed" for those that could not be decided.
	Verified int64
	Refused  map[string]int64
	// Nonces are those that are remembered, of at most MaxNonces.
	Nonces, MaxNonces int
	// Busy is how many requests are worked on now.
	Busy int
}

// Tally returns what was decided.
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
