package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"agentsite/agentruntime/attach"
	"agentsite/agentruntime/equip"
	"agentsite/internal/fault"
	"agentsite/internal/linkwire"
	"agentsite/internal/task"
)

const (
	// maxHands is how often a task is given out to an agent that accepts it: twice, because a lease can
	// be lost without any fault of the agent.
	maxHands = 2
	// maxTries bounds all attempts, including those that the agent never answered.
	maxTries = 6
	// gatherTime is the pause in which small pieces of text are collected, so that each does not cause
	// its own event.
	gatherTime = 30 * time.Millisecond
)

// checkpoint is the stored state of a task: its lease, the message it was given out for, and its
// outcome, stored before it is confirmed to the agent.
type checkpoint struct {
	Lease   int64    `json:"lease"`
	Hands   int      `json:"hands"`
	Message string   `json:"message"`
	Done    *outcome `json:"done,omitempty"`
}

type outcome struct {
	State  task.State  `json:"state"`
	Parts  []task.Part `json:"parts,omitempty"`
	Reason string      `json:"reason,omitempty"`
}

// trouble is a failure with a sentence for users as its text.
type trouble struct{ text string }

func (t *trouble) Error() string { return t.text }

// errLost means that the connection ended during a lease. followTask then waits for the agent to
// reconnect.
var errLost = errors.New("the connection was lost")

// Run implements task.Agent. A call without a connected agent waits ConnectWait, and a lost connection
// Grace, before the task fails. When the portal stops, the agent keeps its lease and continues.
func (d *Driver) Run(ctx context.Context, call task.Call, out task.Sink) (task.Result, error) {
	var at checkpoint
	if len(call.Checkpoint) > 0 && json.Unmarshal(call.Checkpoint, &at) != nil {
		at = checkpoint{}
	}
	r := &run{d: d, call: call, agent: d.agentState(call.Agent.ID), out: equip.Wrap(out, call.Checkpoint),
		wake: make(chan struct{}, 1)}
	switch {
	case at.Message != call.MessageID: // The call is for another message, such as an answer to the agent's question.
		r.continued = at.Done != nil
		at = checkpoint{Lease: at.Lease, Message: call.MessageID}
	case at.Done != nil: // The portal stopped after it stored the outcome and before Run returned it.
		return task.Result{State: at.Done.State, Parts: at.Done.Parts, Reason: at.Done.Reason}, nil
	}
	r.at, r.held, r.first = at, at.Hands > 0, at.Lease
	if !r.addRun() {
		return task.Result{}, fmt.Errorf("task %s runs twice", call.TaskID)
	}
	result, err := r.equipTask(ctx)
	t, wrong := errors.AsType[*trouble](err)
	switch {
	case errors.Is(context.Cause(ctx), task.ErrShutdown):
		r.leaveAgent("") // An empty reason sends no cancel: the agent continues and resumes after the restart.
		return task.Result{}, context.Cause(ctx)
	case ctx.Err() != nil:
		r.leaveAgent("The task was stopped.")
		return task.Result{}, context.Cause(ctx)
	case wrong:
		r.leaveAgent(t.text)
		return task.Result{State: task.Failed, Parts: r.out.HideParts(r.shownParts()),
			Reason: r.out.HideToken(t.text)}, nil
	case err != nil:
		r.leaveAgent("The portal could not go on with the task.")
	default:
		r.leaveAgent(ended)
	}
	return result, err
}

// ended is the reason of a cancel for a task that is over. It is not sent to an agent after its
// final message was accepted.
const ended = "The task has ended here."

// equipTask runs the task with the portal's tools, if the agent has any.
func (r *run) equipTask(ctx context.Context) (task.Result, error) {
	ctx, err := r.out.Open(ctx, r.d.cfg.Tools, r.call)
	if err != nil {
		return task.Result{}, err
	}
	defer r.out.Close()
	r.trace = task.Trace(ctx)
	return r.followTask(ctx)
}

// followTask runs the task until it has an outcome, over as many connections as that takes. Its errors
// are *trouble for failures that users see, or errors of ctx or of storage.
func (r *run) followTask(ctx context.Context) (task.Result, error) {
	r.lostAt = time.Now()
	for {
		s, resume, err := r.waitForTurn(ctx)
		if err != nil {
			return task.Result{}, err
		}
		if !resume {
			if err := r.handOut(ctx); err != nil {
				return task.Result{}, err
			}
		}
		done, err := r.attendTask(ctx, s, resume)
		switch {
		case err == nil:
			return r.finishTask(ctx, done)
		case !errors.Is(err, errLost):
			return task.Result{}, err
		}
		r.lostAt = time.Now()
	}
}

// waitForTurn waits until the agent can take the task: until it reconnects if it holds the lease, or
// else until there is a slot. resume is true if the agent offered that lease again. It fails with a
// *trouble after the grace period, maxHands or maxTries.
func (r *run) waitForTurn(ctx context.Context) (s *session, resume bool, err error) {
	d, a, began := r.d, r.agent, time.Now()
	shown := "" // the status that readers see
	show := func(status string) {
		if status != shown {
			shown = status
			r.out.Status(status)
		}
	}
	for {
		a.mu.Lock()
		s = a.session
		var deadline time.Time
		if r.held {
			deadline = r.lostAt.Add(d.cfg.Grace)
			if s != nil {
				if lease, ok := s.offered[r.call.TaskID]; ok && lease == r.at.Lease {
					delete(s.offered, r.call.TaskID)
					s.runs[r.call.TaskID], r.s = r, s
					r.at.Hands = max(r.at.Hands, 1)
					a.mu.Unlock()
					show("")
					return s, true, nil
				}
				r.held = false // The agent reconnected without offering the lease, so the lease is lost.
			} else if !time.Now().Before(deadline) {
				a.mu.Unlock()
				return nil, false, &trouble{fmt.Sprintf("%s lost its connection while it worked on this and did "+
					"not come back.", r.agentName())}
			}
		}
		full := false
		if !r.held {
			if r.at.Hands >= maxHands || r.at.Lease-r.first >= maxTries {
				a.mu.Unlock()
				return nil, false, &trouble{fmt.Sprintf("%s lost its connection while it worked on this, twice, "+
					"and did not go on with it. Ask again, or later.", r.agentName())}
			}
			if !slices.Contains(a.queue, r) {
				a.queue = append(a.queue, r)
			}
			switch {
			case s != nil && a.queue[0] == r && len(s.runs)+len(s.offered) < s.max:
				a.queue = slices.Delete(a.queue, 0, 1)
				s.runs[r.call.TaskID], r.s = r, s
				a.notifyChange()
				a.mu.Unlock()
				show("")
				return s, false, nil
			case s != nil:
				full = len(s.runs)+len(s.offered) >= s.max
			default:
				since := began
				if a.away.After(since) {
					since = a.away
				}
				deadline = since.Add(d.cfg.ConnectWait)
				if start := d.started.Add(d.cfg.StartWait); a.seen.IsZero() && start.After(deadline) {
					deadline = start
				}
			}
		}
		changed := a.changed
		a.mu.Unlock()
		if s == nil && !time.Now().Before(deadline) {
			return nil, false, &trouble{fmt.Sprintf("%s is not connected just now; its owner runs it elsewhere. "+
				"Try again later.", r.agentName())}
		}
		switch {
		case full:
			show("Waiting for " + r.agentName() + " to finish other work.")
		case s == nil:
			show(fmt.Sprintf("%s is not connected. The portal waits up to %s for its program.", r.agentName(),
				max(time.Until(deadline).Round(time.Second), time.Second)))
		}
		if err := waitForChange(ctx, changed, s == nil, deadline); err != nil {
			return nil, false, err
		}
	}
}

// waitForChange returns nil when changed is closed or, if counts is set, at the deadline; else the error
// of ctx.
func waitForChange(ctx context.Context, changed <-chan struct{}, counts bool, deadline time.Time) error {
	var due <-chan time.Time
	if counts {
		t := time.NewTimer(time.Until(deadline))
		defer t.Stop()
		due = t.C
	}
	select {
	case <-changed:
	case <-due:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// handOut starts a new lease and stores it before the agent gets the task, so that a restart never gives
// out the same lease twice. Text shown under an earlier lease is discarded.
func (r *run) handOut(ctx context.Context) error {
	a := r.agent
	a.mu.Lock()
	r.at.Lease++
	r.at.Hands++
	r.have, r.accepted, r.refused, r.done, r.doneID, r.broken = 0, false, nil, nil, nil, ""
	r.pending, r.artifacts = nil, nil
	at := r.at
	a.mu.Unlock()
	if r.shown.Len() > 0 {
		r.shown.Reset()
		r.out.Replace("")
	}
	return r.saveCheckpoint(ctx, at)
}

func (r *run) saveCheckpoint(ctx context.Context, at checkpoint) error {
	if err := r.out.SaveRun(ctx, at); err != nil && ctx.Err() == nil {
		return fault.Wrap(fault.Internal, err, "The portal could not store where the task stands.")
	}
	return ctx.Err()
}

// attendTask asks the agent to start or resume the task and follows its messages, until it is done or
// the connection ends.
func (r *run) attendTask(ctx context.Context, s *session, resume bool) (linkwire.Done, error) {
	if err := r.sendRequest(ctx, s, resume); err != nil {
		return linkwire.Done{}, err
	}
	patience := time.NewTimer(r.d.cfg.AcceptWait)
	defer patience.Stop()
	accepted := false
	for {
		select {
		case <-r.wake:
		case <-patience.C:
			if !accepted {
				return linkwire.Done{}, &trouble{fmt.Sprintf("%s is connected but did not take the task within %s.",
					r.agentName(), r.d.cfg.AcceptWait)}
			}
			return linkwire.Done{}, &trouble{fmt.Sprintf("%s said nothing about this task for %s.", r.agentName(),
				r.d.cfg.Idle)}
		case <-ctx.Done():
			r.emitNews() // Received output is shown and kept even if the task fails.
			return linkwire.Done{}, ctx.Err()
		}
		got := r.emitNews()
		switch {
		case got.broken != "":
			return linkwire.Done{}, &trouble{got.broken}
		case got.done != nil:
			return *got.done, nil
		case got.refused != nil && resume:
			r.releaseLease() // The agent dropped the task, so the lease is lost.
			return linkwire.Done{}, errLost
		case got.refused != nil:
			why := linkwire.Sentence(got.refused.Message, linkwire.MaxReason)
			if why == "" {
				why = r.agentName() + " does not take this task."
			}
			return linkwire.Done{State: linkwire.Rejected, Reason: why}, nil
		case got.lost:
			return linkwire.Done{}, errLost
		}
		if accepted = accepted || got.accepted; accepted {
			patience.Reset(r.d.cfg.Idle)
		}
		if got.some { // Wait for more, because pieces of text often arrive close together.
			select {
			case <-time.After(gatherTime):
			case <-ctx.Done():
			}
		}
	}
}

// sendRequest sends the request to start the task, or to resume its lease. It returns errLost if the
// session ended meanwhile.
func (r *run) sendRequest(ctx context.Context, s *session, resume bool) error {
	a := r.agent
	method, params := linkwire.MethodResume, any(nil)
	if !resume {
		a.mu.Lock()
		lease, attempt := r.at.Lease, r.at.Hands
		a.mu.Unlock()
		t, err := r.buildTask(ctx, lease, attempt)
		if err != nil {
			return err
		}
		method, params = linkwire.MethodTask, t
	}
	a.mu.Lock()
	if r.s != s { // The session ended while the message was built.
		a.mu.Unlock()
		return errLost
	}
	if resume {
		params = linkwire.Held{Task: r.call.TaskID, Lease: r.at.Lease, Offset: r.have}
		r.done, r.doneID, r.refused, r.accepted = nil, nil, nil, false
	}
	r.asked = true
	s.nextID++
	id := s.nextID
	s.calls[id] = r
	a.mu.Unlock()
	b := linkwire.EncodeRequest(id, method, params)
	r.traceMessage(true, method, b)
	s.sendMessage(b)
	return nil
}

// maxInline is the largest file in bytes that is sent inline, because a message holds a few of them.
const maxInline = 128 << 10

// buildTask builds the task for the agent. It leaves out the oldest messages of the history if the
// message would be too large. Speakers are in fields of their own.
func (r *run) buildTask(ctx context.Context, lease int64, attempt int) (linkwire.Task, error) {
	c := r.call
	asked := c.Parts
	if reply := r.out.Reply(); reply != "" {
		asked = []task.Part{task.TextPart(reply)}
	}
	parts := attach.ForRemote(ctx, c.Files, asked, maxInline)
	by := linkwire.Caller{Kind: c.Caller.Kind, Handle: c.Caller.Handle}
	if c.AskedBy().Kind == "agent" {
		by = linkwire.Caller{Kind: "agent", Handle: c.AskedBy().Handle}
	}
	t := linkwire.Task{Task: c.TaskID, Lease: lease, Text: task.PlainText(asked), Parts: wireParts(parts),
		History: []linkwire.Turn{},
		Caller:  by, Conversation: c.ConversationID, Attempt: attempt, Continued: r.continued}
	if address, token, ok := r.out.Access(); ok {
		t.Tools = &linkwire.Tools{URL: address, Token: token}
	}
	b, err := json.Marshal(t)
	room := linkwire.MaxMessage - len(b) - 4<<10
	if err != nil || room < 0 {
		return t, &trouble{fmt.Sprintf("This is too large to be sent to %s: at most %d KiB with everything attached.",
			r.agentName(), linkwire.MaxMessage>>10)}
	}
	for _, h := range slices.Backward(c.History) {
		turn := linkwire.Turn{Speaker: h.Speaker, Mine: h.Mine,
			Parts: wireParts(attach.ForRemote(ctx, c.Files, h.Parts, 0))}
		b, err := json.Marshal(turn)
		if room -= len(b) + 1; err != nil || room < 0 {
			break
		}
		t.History = append(t.History, turn)
	}
	slices.Reverse(t.History)
	return t, nil
}
