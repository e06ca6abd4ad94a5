package evil

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"agentsite/internal/clock"
)

// Goal is what a liar is after. That it was refused in another way than was
// wanted, or not at all, is no goal: it has to be seen reached.
type Goal struct {
	// What says it, as of a lie that succeeded.
	What string
	// Reached reports whether it is so now.
	Reached func(ctx context.Context, s *Stage, r Result) (bool, error)
	// For is how long it must stay so to count. What an honest portal shows
	// for a moment and takes back is no success, and where the goal is that
	// something does not happen, time must be given to it.
	For time.Duration
}

// steady is For of what is shown.
const steady = time.Second

// answered: the request was done as if it were good.
var answered = Goal{"the request is done", func(_ context.Context, _ *Stage, r Result) (bool, error) {
	return r.Status == http.StatusOK && r.Reason == "" && len(r.Body) > 0, nil
}, 0}

// counted: hello was answered, which it is when the card was admitted.
var counted = Goal{"the card counts", func(_ context.Context, _ *Stage, r Result) (bool, error) {
	return r.Status == http.StatusOK && bytes.Contains(r.Body, []byte(`"card"`)), nil
}, 0}

// taken: the record was taken in, of one or more that were told.
var taken = Goal{"what was told is taken in", func(_ context.Context, _ *Stage, r Result) (bool, error) {
	return r.Status == http.StatusOK && len(r.Unfit) == 0 && bytes.Contains(r.Body, []byte(`"refused"`)), nil
}, 0}

// held: the victim holds the head and hands it on.
var held = Goal{"the victim holds the head and hands it on", func(ctx context.Context, s *Stage, r Result) (bool, error) {
	of := r.Of
	if of == "" {
		of = s.Evil.ID
	}
	// It is asked by another: the liar may be kept out by now.
	if s.witness == nil {
		s.witness = s.More()
		if a, err := s.witness.Hello(ctx, s.Victim.Origin()); err != nil || a.Status != http.StatusOK {
			return false, fmt.Errorf("no hello: %d %s %w", a.Status, a.Body, err)
		}
	}
	head, err := s.witness.heldOf(ctx, s.Victim.Origin(), of)
	return err == nil && len(r.Told) > 0 && bytes.Equal(head, r.Told), err
}, 0}

// found: search shows what is not true.
var found = Goal{"what it made up is found", func(_ context.Context, s *Stage, _ Result) (bool, error) {
	return s.Victim.Finds(s.Word), nil
}, steady}

// kept: what is not true is on the victim's disk.
var kept = Goal{"what it made up is kept", func(_ context.Context, s *Stage, _ Result) (bool, error) {
	return s.Victim.Keeps(s.Word), nil
}, steady}

// proved: the liar counts as seen where it is not.
var proved = Goal{"its origin counts as proved", func(_ context.Context, s *Stage, _ Result) (bool, error) {
	return s.Victim.Look(s.Evil.ID).Proved, nil
}, 0}

// convicted: the honest portal is thought to lie.
var convicted = Goal{"an innocent portal is blamed", func(_ context.Context, s *Stage, _ Result) (bool, error) {
	l := s.Victim.Look(s.Honest.ID())
	return l.State == "quarantined" || len(l.Faults) > 0, nil
}, 0}

// seen: Tell saw it.
func seen(what string) Goal {
	return Goal{what, func(_ context.Context, _ *Stage, r Result) (bool, error) { return r.Succeeded != "", nil }, 0}
}

// unblamed: the victim asked and nothing is held against the liar, so its
// operator does not hear of it.
func unblamed(path string) Goal {
	return Goal{"nothing is held against it", func(_ context.Context, s *Stage, _ Result) (bool, error) {
		return s.Evil.Asked(path) > 0 && len(s.Victim.Look(s.Evil.ID).Faults) == 0, nil
	}, 2 * time.Second}
}

// readOut: the victim worked through more than it takes: what is held against the
// liar is what stood in there.
func readOut(reason string) Goal {
	return Goal{"the victim works through more than it should take", func(_ context.Context, s *Stage, _ Result) (bool, error) {
		return s.Victim.Look(s.Evil.ID).Faults[reason] > 0, nil
	}, 0}
}

// busied: the victim asks for a path again and again.
func busied(path string, n int) Goal {
	return Goal{"the victim asks without an end", func(_ context.Context, s *Stage, _ Result) (bool, error) {
		return s.Evil.Asked(path) >= n, nil
	}, 0}
}

// crowded: the victim knows more portals of the liar's making than one may name.
var crowded = Goal{"the victim looks for hundreds of portals that one made up", func(_ context.Context, s *Stage, _ Result) (bool, error) {
	return s.Victim.Known(s.Word) > 110, nil
}, 0}

// believed: two statements of one version were told and nobody minds.
func believed(after time.Duration) Goal {
	return Goal{"two statements of one version stand", func(_ context.Context, s *Stage, r Result) (bool, error) {
		return r.Status == http.StatusOK && len(r.Unfit) == 0 && s.Victim.Look(s.Evil.ID).State == "active", nil
	}, after}
}

// Won waits at most until the goal of a lie is reached, and reports whether it
// is.
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
