package team

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/team/flow"
	"agentsite/internal/team/rules"
)

// runner works on one goal. One goroutine owns the state; effects run beside it and report events.
type runner struct {
	s     *Service
	goal  Goal
	actor ident.Actor
	// shown is the state for readers.
	shown   atomic.Pointer[flow.State]
	inbox   chan request
	results chan result
	closed  chan struct{}
	// released wakes the runner when no request holds it any more.
	released chan struct{}
	holds    int // requests that need the runner; guarded by Service.mu

	state   flow.State
	running map[string]context.CancelCauseFunc
	done    map[string]bool // keys of stops that were made
}

// request is an event of a person.
type request struct {
	event flow.Event
	reply chan error
}

// result is a report of an effect: an event or, with last, its end.
type result struct {
	key   string
	event flow.Event
	last  bool
}

// errCut is the cause of the end of an effect that the state no longer needs.
var errCut = errors.New("the team no longer waits for this")

func newRunner(s *Service, g Goal, state flow.State) *runner {
	r := &runner{s: s, goal: g, state: state,
		actor: ident.Actor{Kind: ident.Person, ID: g.OwnerID, Name: g.OwnerName, Through: true},
		inbox: make(chan request), results: make(chan result), closed: make(chan struct{}),
		released: make(chan struct{}, 1), running: make(map[string]context.CancelCauseFunc), done: make(map[string]bool)}
	r.shown.Store(&state)
	return r
}

// run works until the goal has ended and nothing is left to do, or until ctx ends.
func (r *runner) run(ctx context.Context) {
	defer close(r.closed)
	for settled := int64(0); ctx.Err() == nil; r.takeNext(ctx) {
		r.decideByRules(ctx)
		r.startEffects(ctx)
		if !r.state.Phase.Final() || len(r.running) > 0 {
			continue
		}
		if settled != r.state.Seq && !r.settleGoal(ctx) {
			break
		}
		settled = r.state.Seq
		if r.s.endRunner(r, false) {
			return
		}
	}
	r.s.endRunner(r, true)
	for _, cancel := range r.running {
		cancel(task.ErrShutdown)
	}
	for len(r.running) > 0 {
		if res := <-r.results; res.last {
			delete(r.running, res.key)
		}
	}
}

// settleGoal marks that the goal needs no more work. It returns false if ctx ends before.
func (r *runner) settleGoal(ctx context.Context) bool {
	for {
		err := r.s.Store.SettleGoal(ctx, r.goal.ID)
		if err == nil {
			r.s.wakeWatchers(r.goal.ID, false)
			return true
		}
		r.s.cfg.Log.Error("settle a goal", "goal", r.goal.ID, "error", err)
		if !clock.Sleep(ctx, storePause) {
			return false
		}
	}
}

// storePause is the pause after an error of the store.
const storePause = time.Second

// takeNext takes one event.
func (r *runner) takeNext(ctx context.Context) {
	var tick <-chan time.Time
	if at := flow.WakeAt(r.state); !at.IsZero() {
		timer := time.NewTimer(max(time.Until(at), 0))
		defer timer.Stop()
		tick = timer.C
	}
	select {
	case q := <-r.inbox:
		q.reply <- r.applyEvent(ctx, q.event)
	case res := <-r.results:
		r.takeResult(ctx, res)
	case <-r.released:
	case <-tick:
		r.keepEvent(ctx, flow.Event{Kind: flow.Ticked})
	case <-ctx.Done():
	}
}

// takeResult handles a report of an effect.
func (r *runner) takeResult(ctx context.Context, res result) {
	if res.last {
		delete(r.running, res.key)
		return
	}
	decided := res.event.Kind == flow.Moved || res.event.Kind == flow.Rejected
	if decided && !r.needsEffect(res.key) {
		return // the turn went on meanwhile, or a person said something that the speaker had not heard
	}
	r.keepEvent(ctx, res.event)
}

// needsEffect reports whether the state needs the effect.
func (r *runner) needsEffect(key string) bool {
	for _, e := range flow.Effects(r.state) {
		if e.Key == key {
			return true
		}
	}
	return false
}

// keepEvent applies an event that must not be lost, and tries again while the store fails. An illegal move is stored as
// rejected; other events that the state no longer allows are left out.
func (r *runner) keepEvent(ctx context.Context, e flow.Event) {
	for {
		err := r.applyEvent(ctx, e)
		bad, illegal := errors.AsType[*flow.Illegal](err)
		switch {
		case err == nil:
			return
		case illegal && e.Kind == flow.Moved:
			e = flow.Event{Kind: flow.Rejected, Agent: e.Agent, Turn: e.Turn, Text: bad.Reason}
			continue
		case illegal && e.Kind == flow.Recruits:
			e = flow.Event{Kind: flow.Ended, Task: e.Task, Attempt: e.Attempt, Status: flow.Broken,
				Text: "Its move was refused: " + bad.Reason + "."}
			continue
		case illegal:
			r.s.cfg.Log.Debug("event of a goal left out", "goal", r.goal.ID, "kind", e.Kind, "reason", bad.Reason)
			return
		case fault.Is(err, fault.NotFound): // the goal was deleted
			r.state.Phase, r.state.Cuts = flow.Canceled, nil
			return
		}
		r.s.cfg.Log.Error("store an event of a goal", "goal", r.goal.ID, "error", err)
		if !clock.Sleep(ctx, storePause) {
			return
		}
	}
}

// applyEvent computes the next state and stores the event.
func (r *runner) applyEvent(ctx context.Context, e flow.Event) error {
	e.Seq, e.At = r.state.Seq+1, clock.Now()
	next, err := flow.Next(r.state, e)
	if err != nil {
		return err
	}
	g := describeGoal(r.goal, next)
	g.Open = true
	// A committed event must reach the state also if the portal stops at this moment.
	if err := r.s.Store.AppendEvent(context.WithoutCancel(ctx), g, e); err != nil {
		return err
	}
	r.state = next
	shown := next
	r.shown.Store(&shown)
	r.s.wakeWatchers(r.goal.ID, false)
	r.s.wakeAbove(r.goal.ParentID)
	return nil
}

// decideByRules makes the moves of the lead that rules decide, because they take no time.
func (r *runner) decideByRules(ctx context.Context) {
	for ctx.Err() == nil {
		t := r.state.Turn
		if t == nil || t.Speaker != flow.Lead || r.state.Open.ByModel && !t.Fallback {
			return
		}
		move := rules.Decide(r.state)
		r.keepEvent(ctx, flow.Event{Kind: flow.Moved, Agent: flow.Lead, Turn: t.N, Move: &move})
	}
}

// startEffects starts the effects that the state needs and stops the others.
func (r *runner) startEffects(ctx context.Context) {
	want := make(map[string]bool)
	for _, e := range flow.Effects(r.state) {
		want[e.Key] = true
		if _, ok := r.running[e.Key]; ok || r.done[e.Key] {
			continue
		}
		r.startEffect(ctx, e)
	}
	for key, cancel := range r.running {
		if !want[key] {
			cancel(errCut)
		}
	}
}

func (r *runner) startEffect(ctx context.Context, e flow.Effect) {
	ctx, cancel := context.WithCancelCause(ctx)
	r.running[e.Key] = cancel
	if e.Kind == flow.DoStop {
		r.done[e.Key] = true
	}
	state := r.state
	go func() {
		defer cancel(nil)
		w := work{r.s, r.goal, r.actor, state, e, r.results}
		w.runEffect(ctx)
		r.results <- result{key: e.Key, last: true}
	}()
}
