package evil

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"agentsite/internal/clock"
)

// Goal is the state that a lie tries to cause. A wrong refusal alone is no goal: a lie succeeds only
// when the goal is observed.
type Goal struct {
	// What describes the goal in messages, as if the lie had succeeded.
	What string
	// Reached reports whether the goal is true at this moment.
	Reached func(ctx context.Context, s *Stage, r Result) (bool, error)
	// For is the time for which the goal must stay true. A state that an honest portal shows for a
	// moment and corrects is no success, and a goal that something does not happen needs time.
	For time.Duration
}

// steady is the value of For for goals about what a portal shows.
const steady = time.Second

// answered is reached when the request got a normal answer.
var answered = Goal{"the request is done", func(_ context.Context, _ *Stage, r Result) (bool, error) {
	return r.Status == http.StatusOK && r.Reason == "" && len(r.Body) > 0, nil
}, 0}

// counted is reached when the answer to hello has the victim's card, which means that the sent card
// was admitted.
var counted = Goal{"the card counts", func(_ context.Context, _ *Stage, r Result) (bool, error) {
	return r.Status == http.StatusOK && bytes.Contains(r.Body, []byte(`"card"`)), nil
}, 0}

// taken is reached when the victim accepted all records that were sent.
var taken = Goal{"what was told is taken in", func(_ context.Context, _ *Stage, r Result) (bool, error) {
	return r.Status == http.StatusOK && len(r.Unfit) == 0 && bytes.Contains(r.Body, []byte(`"refused"`)), nil
}, 0}

// held is reached when the victim stores the head and gives it to other portals.
var held = Goal{"the victim holds the head and hands it on", func(ctx context.Context, s *Stage, r Result) (bool, error) {
	of := r.Of
	if of == "" {
		of = s.Evil.ID
	}
	// Another portal asks for the head, because the victim may refuse the lying portal by now.
	if s.witness == nil {
		s.witness = s.More()
		if a, err := s.witness.Hello(ctx, s.Victim.Origin()); err != nil || a.Status != http.StatusOK {
			return false, fmt.Errorf("no hello: %d %s %w", a.Status, a.Body, err)
		}
	}
	head, err := s.witness.heldOf(ctx, s.Victim.Origin(), of)
	return err == nil && len(r.Told) > 0 && bytes.Equal(head, r.Told), err
}, 0}

// found is reached when the victim's search shows an agent that does not exist.
var found = Goal{"what it made up is found", func(_ context.Context, s *Stage, _ Result) (bool, error) {
	return s.Victim.Finds(s.Word), nil
}, steady}

// kept is reached when the victim's database contains a false record.
var kept = Goal{"what it made up is kept", func(_ context.Context, s *Stage, _ Result) (bool, error) {
	return s.Victim.Keeps(s.Word), nil
}, steady}

// proved is reached when the victim believes that the lying portal is at an origin where it is not.
var proved = Goal{"its origin counts as proved", func(_ context.Context, s *Stage, _ Result) (bool, error) {
	return s.Victim.Look(s.Evil.ID).Proved, nil
}, 0}

// convicted is reached when the victim blames the honest portal.
var convicted = Goal{"an innocent portal is blamed", func(_ context.Context, s *Stage, _ Result) (bool, error) {
	l := s.Victim.Look(s.Honest.ID())
	return l.State == "quarantined" || len(l.Faults) > 0, nil
}, 0}

// seen returns a goal that Tell itself observes and reports in the result.
func seen(what string) Goal {
	return Goal{what, func(_ context.Context, _ *Stage, r Result) (bool, error) { return r.Succeeded != "", nil }, 0}
}

// unblamed returns a goal that the victim asked for path and counted no fault, so that its operator
// does not learn of the lie.
func unblamed(path string) Goal {
	return Goal{"nothing is held against it", func(_ context.Context, s *Stage, _ Result) (bool, error) {
		return s.Evil.Asked(path) > 0 && len(s.Victim.Look(s.Evil.ID).Faults) == 0, nil
	}, 2 * time.Second}
}

// readOut returns a goal that the victim counted a fault that only the end of an answer contains, which
// proves that it read more than it should.
func readOut(reason string) Goal {
	return Goal{"the victim works through more than it should take", func(_ context.Context, s *Stage, _ Result) (bool, error) {
		return s.Victim.Look(s.Evil.ID).Faults[reason] > 0, nil
	}, 0}
}

// busied returns a goal that the victim asked for path at least n times, which shows that it does not
// give up.
func busied(path string, n int) Goal {
	return Goal{"the victim asks without an end", func(_ context.Context, s *Stage, _ Result) (bool, error) {
		return s.Evil.Asked(path) >= n, nil
	}, 0}
}

// crowded is reached when the victim knows more invented portals than its limit for one portal allows.
var crowded = Goal{"the victim looks for hundreds of portals that one made up", func(_ context.Context, s *Stage, _ Result) (bool, error) {
	return s.Victim.Known(s.Word) > 110, nil
}, 0}

// believed returns a goal that two different records of one version were sent and neither was refused
// nor the portal quarantined for the time after.
func believed(after time.Duration) Goal {
	return Goal{"two statements of one version stand", func(_ context.Context, s *Stage, r Result) (bool, error) {
		return r.Status == http.StatusOK && len(r.Unfit) == 0 && s.Victim.Look(s.Evil.ID).State == "active", nil
	}, after}
}

// Won waits until the goal of a lie is reached, at most for the duration wait and the goal's own time,
// and reports whether it was.
func (s *Stage) Won(ctx context.Context, l Lie, r Result, wait time.Duration) (bool, error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	end := time.NewTimer(wait + l.Goal.For)
	defer end.Stop()
	var since time.Time
	for {
		ok, err := l.Goal.Reached(ctx, s, r)
		switch {
		case !ok:
			since = time.Time{}
		case since.IsZero():
			since = clock.Now()
		}
		if ok && clock.Now().Sub(since) >= l.Goal.For {
			return true, nil
		}
		select {
		case <-tick.C:
		case <-end.C:
			return false, err
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}
