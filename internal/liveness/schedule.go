package liveness

import (
	"agentsite/internal/agentkind"
	"agentsite/internal/hub"
	"time"
)

// The times between contacts. All functions here depend on stored data only, so a restart does not
// change the plan.
const (
	// confirmAfter is the time after which an unexpected result is checked again, before owners are
	// notified.
	confirmAfter = 45 * time.Second
	// slowEvery is the minimum interval of probes of drafts and deprecated agents, because few
	// people use them.
	slowEvery = time.Hour
	// jitter is the largest change of a planned wait, as a fraction, so that agents that were
	// registered together are not probed together for ever.
	jitter = 0.1
	// hastyAfter is the minimum time between the last contact and the probe that a failed call
	// causes.
	hastyAfter = 30 * time.Second
	// calledEvery is the minimum time between two calls that are stored as contacts, so that a busy
	// agent does not fill its history.
	calledEvery = time.Minute
)

// aliveEvery is the time until the next probe of an agent that was alive at so many contacts in a
// row.
var aliveEvery = []struct {
	run   int
	every time.Duration
}{{13, 30 * time.Minute}, {7, 20 * time.Minute}, {4, 10 * time.Minute}, {0, 5 * time.Minute}}

// failedEvery is the time until the next probe after the first failure, the second and so on. The
// last value applies to all further failures.
var failedEvery = []time.Duration{time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 4 * time.Hour, 6 * time.Hour}

// planNext returns the time of the next contact after one with the result state, and the number of
// failures in a row. The zero time means never. c is the agent's state before; random is in [0, 1).
func planNext(c hub.Checkup, state hub.Live, now time.Time, random float64) (next time.Time, failures int) {
	if agentkind.Of(c.Agent.Kind).Unprobed {
		return time.Time{}, 0 // such agents are never probed
	}
	run := countSteady(c.History)
	var wait time.Duration
	if state == hub.Alive {
		if n := len(c.History); n == 0 || c.History[n-1].State != hub.Alive {
			run = 0
		}
		for _, step := range aliveEvery {
			if run+1 >= step.run {
				wait = step.every
				break
			}
		}
	} else {
		failures = c.Failures + 1
		wait = failedEvery[min(failures, len(failedEvery))-1]
	}
	switch slow := c.Agent.Status.State == hub.StatusDraft || c.Agent.Status.State == hub.Deprecated; {
	case slow:
		wait = max(wait, slowEvery)
	case isSurprising(c.History, state):
		wait = min(wait, confirmAfter)
	}
	return now.Add(addJitter(wait, random)), failures
}

// addJitter changes a wait by up to a tenth in either direction. random is in [0, 1).
func addJitter(wait time.Duration, random float64) time.Duration {
	return time.Duration(float64(wait) * (1 - jitter + 2*jitter*random))
}

// countSteady returns the number of contacts at the end of a history that have the same state.
func countSteady(h []hub.Contact) int {
	n := 0
	for n < len(h) && h[len(h)-1-n].State == h[len(h)-1].State {
		n++
	}
	return n
}

// isSurprising reports whether state differs from the steady state of an agent's history. If the
// state changes at every contact, there is no steady state and nothing is surprising.
func isSurprising(h []hub.Contact, state hub.Live) bool {
	if len(h) == 0 || h[len(h)-1].State == state {
		return false
	}
	run := countSteady(h)
	return run >= 2 || run == len(h)
}

// isDaily reports whether now is the first contact of an agent on its day. before is the time of
// the previous contact. The start of the day depends on the agent's id, so that daily work of all
// agents is spread over the day.
func isDaily(agentID string, before, now time.Time) bool {
	var shift uint32
	for i := range len(agentID) {
		shift = shift*31 + uint32(agentID[i])
	}
	day := func(t time.Time) int64 { return (t.Unix() + int64(shift%86400)) / 86400 }
	return day(before) != day(now)
}
