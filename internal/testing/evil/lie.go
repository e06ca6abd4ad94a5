package evil

import (
	"context"
	"fmt"
	"slices"
	"time"

	"agentsite/internal/record"
)

// Lie is one way in which a portal can be wrong on purpose.
type Lie struct {
	// Name is unique; Class is its class in SAFETY.md F21 and FEDERATION.md.
	Name, Class string
	// Want is what an honest portal does.
	Want Want
	// Goal is what the liar is after.
	Goal Goal
	// Stops are the checks that keep it from the goal, by the names they have in
	// bench/evil. Each of them does so alone, so all must be gone for the lie to
	// succeed. Where there is none, Unshown says why.
	Stops   []string
	Unshown string
	// Tell tells it to the victim, by s.Evil, which has said hello unless
	// Stranger.
	Tell     func(ctx context.Context, s *Stage) (Result, error)
	Stranger bool
	// Heard, when set, waits until an honest portal has dealt with it.
	Heard func(s *Stage) error
	// Heavy lies use up what an honest portal shares among all, or much time.
	// Those that are Alone do harm to the stage when they succeed.
	Heavy, Alone bool
	// Patience is how much longer its goal may take than that of others.
	Patience time.Duration
}

// Want is how an honest portal deals with a lie. What is empty is not looked
// at; besides, nothing of what the lie says is ever found or kept.
type Want struct {
	Refusal []string // the request is refused for one of these reasons
	Unfit   []string // a record in it is
	Fault   []string // one of these is counted against the liar
	State   string   // that the liar comes into
	// Truncated: nothing is held of the liar.
	Truncated bool
	// Held: what the liar signed about itself may be kept, unseen, until its
	// log is whole.
	Held bool
}

// Result is what came of a lie at once.
type Result struct {
	Answer
	// Told is the record that was told, and Of whose it says it is.
	Told []byte
	Of   record.PortalID
	// Succeeded says what Tell saw the lie achieve.
	Succeeded string
}

// Look is how a victim sees a portal.
type Look struct {
	Known     bool
	State     string
	URL       string
	Proved    bool
	Truncated bool
	Faults    map[string]int
}

// Victim is an honest portal, as it is seen from outside and by its operator.
type Victim interface {
	Origin() string
	ID() record.PortalID
	// Look says how it sees a portal, by its id.
	Look(portal record.PortalID) Look
	// Known counts the portals and addresses it knows that have the word.
	Known(word string) int
	// Finds reports whether its search has an agent with the word.
	Finds(word string) bool
	// Agent is the name of an agent of its own that anybody may use.
	Agent() string
	// Called reports whether that agent was given the word.
	Called(word string) bool
	// Keeps reports whether a record on its disk has the word.
	Keeps(word string) bool
	// Restart stops it like a crash and starts it again.
	Restart()
}

// Stage is where one lie is told.
type Stage struct {
	Network string
	Evil    *Portal
	Victim  Victim
	// Honest is another portal that the victim knows.
	Honest Victim
	// Word is in all that must not be believed, and nowhere else. Bait is in
	// what is true, and found when it was read.
	Word, Bait string
	// More starts another portal of the liar.
	More func() *Portal
	// Until waits until ok is true, and fails when it takes too long.
	Until func(what string, ok func() bool) error
	// witness asks what the victim says of others.
	witness *Portal
}

// Found waits until the bait is.
func (s *Stage) Found() error {
	return s.Until("the bait is found", func() bool { return s.Victim.Finds(s.Bait) })
}

// Faulted waits until something is held against the liar.
func (s *Stage) Faulted() error {
	return s.Until("a fault is counted", func() bool { return len(s.Victim.Look(s.Evil.ID).Faults) > 0 })
}

// Judge says what an honest portal did otherwise than was wanted, "" when
// nothing. It waits for what takes its time. Whether the lie reached its goal is
// another question, which Goal answers.
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

// All returns every lie.
func All() []Lie {
	list := slices.Concat(requests(), heads(), identities(), logs(), words(), calls(), floods())
	for i := range list {
		list[i].stopped()
	}
	return list
}
