package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"agentsite/agentruntime/attach"
	"agentsite/internal/fault"
	"agentsite/internal/linkwire"
	"agentsite/internal/task"
)

const (
	// maxHands is how often a task is handed to an agent that takes it: once
	// more after a lease was lost.
	maxHands = 2
	// maxTries bounds hand-outs that were never answered, too.
	maxTries = 6
	// gather is how long small pieces of text wait for each other.
	gather = 30 * time.Millisecond
)

// checkpoint is what the driver stores of a task: under which lease it was
// handed out for which question, and its outcome before the agent is told that
// it was taken.
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

// trouble is a failure with its own sentence.
type trouble struct{ text string }

func (t *trouble) Error() string { return t.text }

// errLost says that the connection ended under a lease.
var errLost = errors.New("the connection was lost")

// Run implements task.Agent.
func (d *Driver) Run(ctx context.Context, call task.Call, out task.Sink) (task.Result, error) {
	var at checkpoint
	if len(call.Checkpoint) > 0 && json.Unmarshal(call.Checkpoint, &at) != nil {
		at = checkpoint{}
	}
	r := &run{d: d, call: call, agent: d.agent(call.Agent.ID), out: out, trace: task.Trace(ctx),
		wake: make(chan struct{}, 1)}
	switch {
	case at.Message != call.MessageID: // another question of the task
		r.continued = at.Done != nil
		at = checkpoint{Lease: at.Lease, Message: call.MessageID}
	case at.Done != nil: // the portal ended between taking the answer and storing it
		return task.Result{State: at.Done.State, Parts: at.Done.Parts, Reason: at.Done.Reason}, nil
	}
	r.at, r.held, r.first = at, at.Hands > 0, at.Lease
	if !r.enter() {
		return task.Result{}, fmt.Errorf("task %s runs twice", call.TaskID)
	}
	result, err := r.follow(ctx)
	t, wrong := errors.AsType[*trouble](err)
	switch {
	case errors.Is(context.Cause(ctx), task.ErrShutdown):
		r.leave("") // the agent works on and comes back
		return task.Result{}, context.Cause(ctx)
	case ctx.Err() != nil:
		r.leave("The task was stopped.")
		return task.Result{}, context.Cause(ctx)
	case wrong:
		r.leave(t.text)
		return task.Result{State: task.Failed, Parts: r.parts(), Reason: t.text}, nil
	case err != nil:
		r.leave("The portal could not go on with the task.")
	default:
		r.leave(ended)
	}
	return result, err
}

// ended is what an agent hears of a task that it holds and that is over.
const ended = "The task has ended here."

// follow takes the task to its outcome, over as many connections as it needs.
func (r *run) follow(ctx context.Context) (task.Result, error) {
	r.lostAt = time.Now()
	for {
		s, resume, err := r.place(ctx)
		if err != nil {
			return task.Result{}, err
		}
		if !resume {
			if err := r.handOut(ctx); err != nil {
				return task.Result{}, err
			}
		}
		done, err := r.attend(ctx, s, resume)
		switch {
		case err == nil:
			return r.finish(ctx, done)
		case !errors.Is(err, errLost):
			return task.Result{}, err
		}
		r.lostAt = time.Now()
	}
}

// place waits until the agent is there to take the task: again, when it holds
// the lease, else when its turn has come.
func (r *run) place(ctx context.Context) (s *session, resume bool, err error) {
	d, a, began := r.d, r.agent, time.Now()
	told := false
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
					return s, true, nil
				}
				r.held = false // it came back without
			} else if !time.Now().Before(deadline) {
				a.mu.Unlock()
				return nil, false, &trouble{fmt.Sprintf("%s lost its connection while it worked on this and did not come back.", r.name())}
			}
		}
		full := false
		if !r.held {
			if r.at.Hands >= maxHands || r.at.Lease-r.first >= maxTries {
				a.mu.Unlock()
				return nil, false, &trouble{fmt.Sprintf("%s lost its connection while it worked on this, twice, and did not go on with it. Ask again, or later.", r.name())}
			}
			if !slices.Contains(a.queue, r) {
				a.queue = append(a.queue, r)
			}
			switch {
			case s != nil && a.queue[0] == r && len(s.runs)+len(s.offered) < s.max:
				a.queue = slices.Delete(a.queue, 0, 1)
				s.runs[r.call.TaskID], r.s = r, s
				a.notify()
				a.mu.Unlock()
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
			return nil, false, &trouble{fmt.Sprintf("%s is not connected just now; its owner runs it elsewhere. Try again later.", r.name())}
		}
		if full && !told {
			told = true
			r.out.Status("Waiting for " + r.name() + " to finish other work.")
		}
		if err := wait(ctx, changed, s == nil, deadline); err != nil {
			return nil, false, err
		}
	}
}

// wait returns when changed is closed, when the deadline counts and has come,
// or with the error of ctx.
func wait(ctx context.Context, changed <-chan struct{}, counts bool, deadline time.Time) error {
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

// handOut begins a new lease: it is stored before the agent hears of it.
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
	return r.save(ctx, at)
}

func (r *run) save(ctx context.Context, at checkpoint) error {
	b, err := json.Marshal(at)
	if err == nil {
		err = r.out.Checkpoint(ctx, b)
	}
	if err != nil && ctx.Err() == nil {
		return fault.Wrap(fault.Internal, err, "The portal could not store where the task stands.")
	}
	return ctx.Err()
}

// attend asks the agent to begin or resume and follows what it says, until it
// says that it is done or the connection ends.
func (r *run) attend(ctx context.Context, s *session, resume bool) (linkwire.Done, error) {
	if err := r.ask(ctx, s, resume); err != nil {
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
					r.name(), r.d.cfg.AcceptWait)}
			}
			return linkwire.Done{}, &trouble{fmt.Sprintf("%s said nothing about this task for %s.", r.name(),
				r.d.cfg.Idle)}
		case <-ctx.Done():
			r.emit() // what came in is shown and kept
			return linkwire.Done{}, ctx.Err()
		}
		got := r.emit()
		switch {
		case got.broken != "":
			return linkwire.Done{}, &trouble{got.broken}
		case got.done != nil:
			return *got.done, nil
		case got.refused != nil && resume:
			r.release() // it has forgotten: the lease is lost
			return linkwire.Done{}, errLost
		case got.refused != nil:
			why := linkwire.Sentence(got.refused.Message, linkwire.MaxReason)
			if why == "" {
				why = r.name() + " does not take this task."
			}
			return linkwire.Done{State: linkwire.Rejected, Reason: why}, nil
		case got.lost:
			return linkwire.Done{}, errLost
		}
		if accepted = accepted || got.accepted; accepted {
			patience.Reset(r.d.cfg.Idle)
		}
		if got.some { // more comes soon
			select {
			case <-time.After(gather):
			case <-ctx.Done():
			}
		}
	}
}

// ask sends the request to begin or to resume.
func (r *run) ask(ctx context.Context, s *session, resume bool) error {
	a := r.agent
	method, params := linkwire.MethodResume, any(nil)
	if !resume {
		a.mu.Lock()
		lease, attempt := r.at.Lease, r.at.Hands
		a.mu.Unlock()
		t, err := r.message(ctx, lease, attempt)
		if err != nil {
			return err
		}
		method, params = linkwire.MethodTask, t
	}
	a.mu.Lock()
	if r.s != s { // it ended meanwhile
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
	b := linkwire.Request(id, method, params)
	r.traced(true, method, b)
	s.tell(b)
	return nil
}

// maxInline is the largest file that goes along as it is: a message holds a
// few of them.
const maxInline = 128 << 10

// message is the task as the agent gets it, without the oldest of what was
// said before where all of it would be too much. Who said what stands in
// fields of its own.
func (r *run) message(ctx context.Context, lease int64, attempt int) (linkwire.Task, error) {
	c := r.call
	parts := attach.Elsewhere(ctx, c.Files, c.Parts, maxInline)
	by := linkwire.Caller{Kind: c.Caller.Kind, Handle: c.Caller.Handle}
	if c.Said().Kind == "agent" {
		by = linkwire.Caller{Kind: "agent", Handle: c.Said().Handle}
	}
	t := linkwire.Task{Task: c.TaskID, Lease: lease, Text: task.PlainText(c.Parts), Parts: wireParts(parts),
		History: []linkwire.Turn{},
		Caller:  by, Conversation: c.ConversationID, Attempt: attempt, Continued: r.continued}
	b, err := json.Marshal(t)
	room := linkwire.MaxMessage - len(b) - 4<<10
	if err != nil || room < 0 {
		return t, &trouble{fmt.Sprintf("This is too large to be sent to %s: at most %d KiB with everything attached.",
			r.name(), linkwire.MaxMessage>>10)}
	}
	for _, h := range slices.Backward(c.History) {
		turn := linkwire.Turn{Speaker: h.Speaker, Mine: h.Mine,
			Parts: wireParts(attach.Elsewhere(ctx, c.Files, h.Parts, 0))}
		b, err := json.Marshal(turn)
		if room -= len(b) + 1; err != nil || room < 0 {
			break
		}
		t.History = append(t.History, turn)
	}
	slices.Reverse(t.History)
	return t, nil
}
