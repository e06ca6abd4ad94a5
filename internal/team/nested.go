package team

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/team/flow"
)

// runTeam forms a team for a task, or goes on to wait for it, and reports its end. The team is a goal of the same
// person with the rest of the limits.
func (w work) runTeam(ctx context.Context) {
	t := w.state.Tasks[w.effect.Task-1]
	below, err := w.formTeam(ctx, t)
	if err != nil {
		if ctx.Err() == nil {
			w.endTask(flow.Broken, fault.As(err).Safe)
		}
		return
	}
	if t.Status == flow.Ready {
		w.reportEvent(flow.Event{Kind: flow.Started, Task: t.N, Attempt: t.Attempt, Ref: &flow.Ref{Goal: below.ID}})
	}
	costs := []flow.Cost{{Talk: true}, {}}
	state, err := w.awaitGoal(ctx, below.ID, func(s flow.State) {
		if now := []flow.Cost{withTalk(s.Talk), s.Work}; !slices.Equal(now, costs) {
			costs = now
			w.reportEvent(flow.Event{Kind: flow.Spent, Task: t.N, Attempt: t.Attempt, Costs: now})
		}
	})
	if ctx.Err() != nil {
		return
	}
	e := flow.Event{Kind: flow.Ended, Task: t.N, Attempt: t.Attempt, Status: flow.Completed, Text: state.Conclusion,
		Costs: []flow.Cost{withTalk(state.Talk), state.Work}}
	switch {
	case err != nil:
		e.Status, e.Text, e.Costs = flow.Broken, fault.As(err).Safe, nil
	case state.Phase == flow.Canceled:
		e.Status, e.Text = flow.Dropped, firstOf(state.Reason, "Its team was stopped.")
	case state.Phase != flow.Concluded:
		e.Status, e.Text = flow.Broken, "Its team failed: "+state.Reason
	}
	w.reportEvent(e)
}

func withTalk(c flow.Cost) flow.Cost { c.Talk = true; return c }

// formTeam starts the team of a task. A team that was started before is returned.
func (w work) formTeam(ctx context.Context, t flow.Task) (g Goal, err error) {
	if t.Status == flow.Working {
		return Goal{ID: t.Ref.Goal}, nil
	}
	open, err := w.openingBelow(t)
	if err != nil {
		return g, err
	}
	now := clock.Now()
	e := flow.Event{Seq: 1, At: now, Kind: flow.Opened, Open: &open}
	state, err := flow.Next(flow.State{}, e)
	if err != nil {
		return g, asFault(err)
	}
	g = newGoal(w.actor, open, state, now)
	g.ParentID, g.ParentTask = w.goal.ID, t.N
	g.Key = teamKey(w.goal.ID, t.N, t.Attempt)
	err = retryCall(ctx, func() error {
		if err := w.checkActor(ctx); err != nil {
			return err
		}
		stored, _, err := w.s.Store.CreateGoal(context.WithoutCancel(ctx), g, e, w.s.cfg.Running)
		if err == nil {
			g = stored
		}
		return err
	})
	if err != nil {
		return g, err
	}
	r, err := w.s.holdRunner(ctx, g)
	if err == nil {
		w.s.releaseRunner(r)
	}
	if errors.Is(err, errStopped) {
		err = nil
	}
	return g, err
}

// teamKey is the idempotency key of the team for an attempt of a task.
func teamKey(goalID string, n, attempt int) string {
	return fmt.Sprintf("team/%s/%d/%d", goalID, n, attempt)
}

// openingBelow returns the opening of the team for a task. Its limits are the rest of those here, shared with other
// teams of this one, and its depth is smaller; agents that wait for it cannot be members.
func (w work) openingBelow(t flow.Task) (flow.Opening, error) {
	o := w.state.Open
	o.Goal, o.Members, o.RequireAll = taskText(w.state, t), nil, false
	if len(o.Goal) > flow.MaxGoal {
		o.Goal = t.Text
	}
	if o.Recruit == flow.RecruitMembers {
		o.Members = slices.DeleteFunc(slices.Clone(w.state.Open.Members), func(h string) bool { return h == t.Owner })
	}
	o.Parent, o.ParentTask, o.Above = w.goal.ID, t.N, append(slices.Clip(w.state.Open.Above), t.Owner)
	teams := 0
	for _, k := range w.state.Tasks {
		if k.Team && !k.Status.Final() {
			teams++
		}
	}
	l, shared := w.state.Limits, int64(max(teams, 1))
	l.Depth--
	l.Turns = (l.Turns - w.state.Turns) / int(shared)
	l.Time = min(w.state.Until.Sub(clock.Now()).Truncate(time.Millisecond), l.TaskTime)
	if l.Tokens > 0 {
		l.Tokens = max((l.Tokens-w.state.Talk.Tokens-w.state.Work.Tokens)/shared, 1)
	}
	if l.Money > 0 {
		l.Money = max((l.Money-w.state.Talk.Money-w.state.Work.Money)/shared, 1)
	}
	o.Limits = l
	if l.Depth < 0 || l.Turns < 1 || l.Time <= 0 {
		return o, fault.New(fault.Conflict, "Nothing is left of the limits for a team of its own.")
	}
	return o, nil
}

// awaitGoal waits until a goal has ended and returns its state. It calls seen with states before.
func (w work) awaitGoal(ctx context.Context, id string, seen func(flow.State)) (flow.State, error) {
	k := w.s.addWatcher(id)
	defer w.s.removeWatcher(id, k)
	for {
		g, err := w.s.Store.GoalByID(ctx, id)
		if err != nil {
			return flow.State{}, err
		}
		if !g.Open {
			return w.s.replayLog(ctx, id)
		}
		w.s.mu.Lock()
		r := w.s.runners[id]
		w.s.mu.Unlock()
		if r != nil {
			seen(*r.shown.Load())
		}
		select {
		case <-k.wake:
		case <-ctx.Done():
			return flow.State{}, ctx.Err()
		}
	}
}

// stopTeam cancels the team of a task.
func (w work) stopTeam(ctx context.Context, id string) error {
	g, err := w.s.Store.GoalByID(ctx, id)
	if err != nil {
		return err
	}
	err = w.s.passEvent(ctx, g, flow.Event{Kind: flow.Stopped, Agent: flow.Lead,
		Text: "The team above no longer needs it."})
	if fault.Is(err, fault.Conflict) {
		return nil // it has ended
	}
	return err
}
