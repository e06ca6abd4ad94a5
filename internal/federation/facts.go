package federation

import (
	"time"

	"agentsite/internal/record"
)

// Facts are the stored facts about a portal. Its State follows from them, the rule and the policy.
type Facts struct {
	// ID is the portal id; empty for an address that has not answered.
	ID                           record.PortalID
	URL, Name, Operator, Contact string
	Version, Tier                string
	Keys                         []record.KeyID // of its card
	Rule                         Rule
	From                         record.PortalID // portal that reported the address; empty for an operator
	Known, Proved, Seen          time.Time
	Failed                       time.Time // when it last did not answer
	Failures                     int       // in a row
	Why                          string    // of the last one
	RTT                          time.Duration
	Agents, Listed               int
	Truncated                    bool
	Head                         record.Version
	HeadIssued, HeadExpires      time.Time
	Waits                        time.Time // since when a newer head waits
	RefusedUntil                 time.Time
	RefusedWhy                   string
	Quarantined                  bool
	// Bars is why it refuses whatever this portal asks, empty when it does not;
	// BarsWhy are its words.
	Bars    Reason `json:",omitempty"`
	BarsWhy string `json:",omitempty"`
}

// Key is the key under which facts are stored: the portal id, else the address.
func (f *Facts) Key() string {
	if f.ID != "" {
		return string(f.ID)
	}
	return f.URL
}

// isAddress reports whether the entry is an address that has not answered.
func (f *Facts) isAddress() bool { return f.ID == "" }

// entry is Facts with the state that a restart loses. Peers owns it.
type entry struct {
	Facts
	at     string         // the host of URL, see Peers.place
	site   string         // of that host
	faults map[string]int // by reason, since the start
	forged []time.Time    // of the last few that count
	next   time.Time      // when it is asked again how it is
	asked  time.Time      // when it was asked, or answered, last
	asking bool
	state  State // as it was last found, to see changes
	reason string
	mute   time.Time // since when it is silent that was there before; zero for not
	dirty  bool      // it is to be saved
	later  bool      // it is to be saved when there is time: it was seen, and nothing else
}

const (
	// silentAfter is how many failures in a row make a portal silent: one
	// may be a lost packet.
	silentAfter = 2
	// leafSilentAfter is for portals that cannot be asked.
	leafSilentAfter = 30 * time.Minute
	// rttWeight smooths round trips: an eighth of each new one, as TCP does.
	rttWeight = 8
)

// forgedKind reports whether a fault of this kind can only be deliberate. A fault that a wrong
// clock, a restart or another version can cause is counted, but causes no quarantine.
func forgedKind(reason string) bool {
	return reason == string(record.BadSignature) || reason == string(record.BadEvidence) ||
		reason == string(record.NotConsistent)
}

const (
	forgedMost   = 3
	forgedWithin = 10 * time.Minute
	refusedFor   = time.Hour
	// maxFaultKinds bounds the counted reasons of one portal: they come from
	// many places.
	maxFaultKinds = 32
)

// answersNot is between a reason and the error behind it, which is for operators.
const answersNot = ": "

// healthState is how a portal that is let in is doing.
func (f *Facts) healthState(now time.Time) (State, string) {
	switch {
	case !f.HeadExpires.IsZero() && !f.HeadExpires.After(now):
		return Stale, "Its word for its agents ended at " + formatTime(f.HeadExpires) +
			". They are folded away until it renews it."
	case f.isAddress(), f.Seen.IsZero() && f.Head == (record.Version{}):
		if f.Why != "" {
			return Joining, "It has not answered yet" + answersNot + f.Why
		}
		return Joining, "It has not answered yet."
	case f.Tier == record.TierLeaf:
		if now.Sub(f.Seen) > leafSilentAfter {
			return Silent, "It cannot be asked from here, and has not asked since " + formatTime(f.Seen) + "."
		}
	case f.Failures >= silentAfter:
		if f.Seen.After(f.Failed) {
			return Silent, "It asks here, but does not answer" + answersNot + f.Why
		}
		return Silent, "It does not answer" + answersNot + f.Why
	}
	return Active, ""
}

// formatTime writes a time for people, in UTC.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// countFault counts one and reports whether the portal is refused from now on.
func (e *entry) countFault(reason string, now time.Time) bool {
	if e.faults == nil {
		e.faults = make(map[string]int)
	}
	if _, ok := e.faults[reason]; !ok && (len(e.faults) >= maxFaultKinds || len(reason) > 40) {
		reason = "other"
	}
	e.faults[reason]++
	if !forgedKind(reason) {
		return false
	}
	recent := e.forged[:0]
	for _, t := range e.forged {
		if now.Sub(t) < forgedWithin {
			recent = append(recent, t)
		}
	}
	e.forged = append(recent, now)
	if len(e.forged) < forgedMost {
		return false
	}
	e.forged = e.forged[:0]
	e.RefusedUntil, e.RefusedWhy = now.Add(refusedFor), reason
	return true
}
