package evil

import (
	"context"
	"fmt"
	"slices"
	"time"

	"agentsite/internal/record"
)

// Lie is one kind of false statement or request, with the behaviour that a test expects of an honest
// portal.
type Lie struct {
	// Name is unique. Class groups lies of one kind in the tables of bench/evil.
	Name, Class string
	// Want is the reaction of an honest portal.
	Want Want
	// Goal is the state that the lie tries to cause.
	Goal Goal
	// Stops are the names of checks in bench/evil that keep the lie from its goal. Each does so alone,
	// so the lie succeeds only without all of them. If there are none, Unshown says why.
	Stops   []string
	Unshown string
	// Tell tells the lie to the victim through s.Evil. Before that the test introduces s.Evil to the
	// victim with hello, unless Stranger is set.
	Tell     func(ctx context.Context, s *Stage) (Result, error)
	Stranger bool
	// Heard waits until an honest portal has processed the lie. It is nil if Tell is enough.
	Heard func(s *Stage) error
	// Heavy lies take long or use up limits that all portals share. Alone lies damage the stage when
	// they succeed, so each needs a new one.
	Heavy, Alone bool
	// Patience is added to the usual time in which the goal may be reached.
	Patience time.Duration
}

// Want is how an honest portal deals with a lie. Empty fields are not checked. In any case no false
// agent may be found or stored.
type Want struct {
	Refusal []string // the request is refused with one of these reasons
	Unfit   []string // a record in the request is refused with one of these reasons
	Fault   []string // a fault with one of these reasons is counted against the lying portal
	State   string   // the lying portal gets this state
	// Truncated means that the lying portal is over quota and none of its agents are stored.
	Truncated bool
	// Held means that records which the lying portal signed about itself may be stored, without being
	// shown, until its log is complete.
	Held bool
}

// Result is the immediate result of a lie.
type Result struct {
	Answer
	// Told is the false record, and Of the portal that it claims to be about; Of is "" for the lying
	// portal itself.
	Told []byte
	Of   record.PortalID
	// Succeeded describes a success that Tell observed, "" if it observed none.
	Succeeded string
}

// Look is a victim's view of another portal. The zero value is that of an unknown portal.
type Look struct {
	Known     bool
	State     string
	URL       string
	Proved    bool
	Truncated bool
	Faults    map[string]int
}

// Victim is an honest portal under test, with methods that observe it from outside and as its operator.
type Victim interface {
	Origin() string
	ID() record.PortalID
	// Look returns the victim's view of a portal.
	Look(portal record.PortalID) Look
	// Known returns the number of portals and addresses known to the victim that contain the word.
	Known(word string) int
	// Finds reports whether the victim's search finds an agent with the word.
	Finds(word string) bool
	// Agent returns the name of an agent of the victim that everyone may call.
	Agent() string
	// Called reports whether that agent received a message with the word.
	Called(word string) bool
	// Keeps reports whether a record in the victim's database contains the word.
	Keeps(word string) bool
	// Restart ends the victim as a crash would, and starts it again.
	Restart()
}

// Stage is the environment in which one lie is told.
type Stage struct {
	Network string
	Evil    *Portal
	Victim  Victim
	// Honest is another honest portal, which the victim knows.
	Honest Victim
	// All false statements contain Word, and nothing else does. A true statement that is sent with the
	// lie contains Bait: when the victim shows it, the victim has processed both.
	Word, Bait string
	// More starts another lying portal, which the stage ends.
	More func() *Portal
	// Until waits until ok returns true, or returns an error after a time limit. what names the
	// condition in the error.
	Until func(what string, ok func() bool) error
	// witness is another portal that asks the victim about the lying portal; nil until it is needed.
	witness *Portal
}

// Found waits until the victim's search finds the bait.
func (s *Stage) Found() error {
	return s.Until("the bait is found", func() bool { return s.Victim.Finds(s.Bait) })
}

// Faulted waits until the victim has counted a fault against the lying portal.
func (s *Stage) Faulted() error {
	return s.Until("a fault is counted", func() bool { return len(s.Victim.Look(s.Evil.ID).Faults) > 0 })
}

// Judge returns the first difference between the victim's reaction and the expected one, "" if there is
// none. It waits for reactions that take time. It does not test the goal; Won does.
func (s *Stage) Judge(l Lie, r Result) (wrong string) {
	w := l.Want
	switch {
	case w.Refusal != nil && r.Status < 300 && r.Reason == "":
		return fmt.Sprintf("it was answered with status %d", r.Status)
	case w.Refusal != nil && !slices.Contains(w.Refusal, r.Reason):
		return fmt.Sprintf("it was refused as %q with status %d, not as %q: %.200s", r.Reason, r.Status, w.Refusal, r.Body)
	case w.Unfit != nil && len(r.Unfit) == 0:
		return fmt.Sprintf("the record was not refused: status %d %.200s", r.Status, r.Body)
	case w.Unfit != nil && !slices.Contains(w.Unfit, r.Unfit[0]):
		return fmt.Sprintf("the record was refused as %q, not as %q", r.Unfit[0], w.Unfit)
	}
	if w.Fault != nil {
		has := func() bool {
			f := s.Victim.Look(s.Evil.ID).Faults
			return slices.ContainsFunc(w.Fault, func(why string) bool { return f[why] > 0 })
		}
		if err := s.Until("the fault", has); err != nil {
			return fmt.Sprintf("none of %q is held against it: %v", w.Fault, s.Victim.Look(s.Evil.ID).Faults)
		}
	}
	if w.State != "" {
		if err := s.Until("the state", func() bool { return s.Victim.Look(s.Evil.ID).State == w.State }); err != nil {
			return fmt.Sprintf("it is %q, not %q", s.Victim.Look(s.Evil.ID).State, w.State)
		}
	}
	if w.Truncated {
		if err := s.Until("the quota", func() bool { return s.Victim.Look(s.Evil.ID).Truncated }); err != nil {
			return "its quota does not count"
		}
	}
	return ""
}

// All returns every lie, with the checks that stop it.
func All() []Lie {
	list := slices.Concat(requests(), heads(), identities(), logs(), words(), calls(), floods())
	for i := range list {
		list[i].stopped()
	}
	return list
}
