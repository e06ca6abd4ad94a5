package federation

import (
	"time"

	"agentsite/internal/record"
)

// Facts are the stored facts about another portal. Its State follows from them, its rule and the policy.
type Facts struct {
	// ID is the portal's network id; empty for an address that has not answered yet.
	ID                           record.PortalID
	URL, Name, Operator, Contact string
	Version, Tier                string
	Keys                         []record.KeyID // operational keys listed in its card
	Rule                         Rule
	// portal that reported the address; empty if an operator added it
	From                    record.PortalID
	Known, Proved, Seen     time.Time
	Failed                  time.Time // time of the last failed request
	Failures                int       // failed requests in a row
	Why                     string    // error of the last failed request
	RTT                     time.Duration
	Agents, Listed          int
	Truncated               bool
	Head                    record.Version
	HeadIssued, HeadExpires time.Time
	// time since which a newer head waits for its records; zero for none
	Waits        time.Time
	RefusedUntil time.Time
	RefusedWhy   string
	Quarantined  bool
	// Bars is the reason with which the portal refuses all requests of this one, empty if it does not
	// refuse; BarsWhy is its explanation.
	Bars    Reason `json:",omitempty"`
	BarsWhy string `json:",omitempty"`
}

// Key is the key of the entry in Peers and in the store: the portal id, else the address.
func (f *Facts) Key() string {
	if f.ID != "" {
		return string(f.ID)
	}
	return f.URL
}

// isAddress reports whether this is an address whose portal is not known yet.
func (f *Facts) isAddress() bool { return f.ID == "" }

// entry is Facts with the state that is lost at a restart. It is owned by Peers and guarded by its mu.
type entry struct {
	Facts
	at     string         // host of URL, set by Peers.addPlace
	site   string         // site of the host, see SiteOf
	faults map[string]int // refused records and answers since the start, by reason
	forged []time.Time    // times of the recent faults that can only be deliberate
	next   time.Time      // time of the next status request
	asked  time.Time      // time of the last status request or answer
	asking bool
	state  State // state at the last updateState, to detect changes
	reason string
	mute   time.Time // start of the silence of a portal that was active before; zero otherwise
	dirty  bool      // to be saved soon
	later  bool      // to be saved rarely: only the time of the last answer changed
}

const (
	// silentAfter is how many failures in a row make a portal Silent: a single one may be a lost packet.
	silentAfter = 2
	// leafSilentAfter is the time without a request after which a leaf portal, which accepts no requests, is Silent.
	leafSilentAfter = 30 * time.Minute
	// rttWeight smooths round-trip times: each new one counts one eighth, as in TCP.
	rttWeight = 8
)

// forgedKind reports whether a fault with this reason can only be deliberate. Faults that a wrong clock,
// a restart or another version can cause are counted too, but do not lead to the penalty box.
func forgedKind(reason string) bool {
	return reason == string(record.BadSignature) || reason == string(record.BadEvidence) ||
		reason == string(record.NotConsistent)
}

const (
	forgedMost   = 3
	forgedWithin = 10 * time.Minute
	refusedFor   = time.Hour
	// maxFaultKinds is how many reasons are counted for one portal, because reasons come from many packages.
	maxFaultKinds = 32
)

// answersNot separates the public reason of a state from the error text behind it, which only operators see.
const answersNot = ": "

// healthState returns the state and its reason for an admitted portal: Active, Joining, Silent or Stale.
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

// formatTime formats a time for people, in UTC.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// countFault counts a fault and reports whether it puts the portal into the penalty box (forgedMost
// deliberate faults within forgedWithin).
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
