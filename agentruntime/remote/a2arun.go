package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"agentsite/agentruntime/attach"
	"agentsite/agentruntime/speech"
	"agentsite/internal/a2a"
	"agentsite/internal/clock"
	"agentsite/internal/egress"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/task"
)

const (
	// maxEvents bounds what one task may say, over all its connections.
	maxEvents = 10_000
	// maxReconnects is how often a stream is taken up again before asking
	// from time to time instead.
	maxReconnects = 20
)

// errSettled ends the reading of a stream: the outcome is known.
var errSettled = errors.New("settled")

// run is one call of one agent.
type run struct {
	d      *A2A
	way    way
	client *a2a.Client
	call   task.Call
	out    task.Sink
	stream bool

	at      checkpoint
	adopted bool // at.Task is confirmed to be this call's task
	saved   checkpoint
	answer  *answer
	events  int
	settled bool
	result  task.Result
}

// way is how an agent is reached and spoken of.
type way struct {
	rt http.RoundTripper
	// who is whom failures are about.
	who string
	// inline is the largest file in bytes that is sent as it is.
	inline int
	// peer says that errors before anything is sent may be faults of ours.
	peer bool
	// local, when set, makes files of the far side's own of the parts that only
	// refer to them.
	local func(ctx context.Context, parts []task.Part) []task.Part
}

// Run implements task.Agent.
func (d *A2A) Run(ctx context.Context, call task.Call, out task.Sink) (task.Result, error) {
	return d.run(ctx, way{rt: d.rt, who: "The agent", inline: attach.MaxInline}, call, out)
}

// Stop implements task.Stopper.
func (d *A2A) Stop(ctx context.Context, call task.Call) { d.stop(ctx, d.rt, call) }

func (d *A2A) stop(ctx context.Context, rt http.RoundTripper, call task.Call) {
	client, _, err := a2aClient(rt, call.Agent.Endpoint, call.Agent.Config, call.Agent.Secret)
	if err != nil {
		return // it was asked in another way, which is not known any more
	}
	d.stopRemote(ctx, client, readCheckpoint(call.Checkpoint).Task)
}

func (d *A2A) run(ctx context.Context, w way, call task.Call, out task.Sink) (task.Result, error) {
	client, cfg, err := a2aClient(w.rt, call.Agent.Endpoint, call.Agent.Config, call.Agent.Secret)
	if err != nil {
		return task.Result{}, fault.Wrap(fault.Unavailable, err, "The agent is not set up in a way this portal can use. Its owner should register it again.")
	}
	r := &run{d: d, way: w, client: client, call: call, out: out, stream: cfg.Streaming, answer: newAnswer(out)}
	r.at = readCheckpoint(call.Checkpoint)
	r.saved = r.at
	switch {
	case call.Attempt > 1 && r.at.Task == "":
		// It may have been sent, and nothing says whether it arrived.
		return failed(nil, "The portal was interrupted while it handed this to the agent. Whether the agent did the work is unknown; ask again if it should."), nil
	case call.Attempt > 1:
		r.adopted = true
		err = r.await(ctx)
	default:
		err = r.send(ctx)
	}
	if ctx.Err() != nil {
		// When the portal stops the task goes on there, and here after the
		// next start.
		if !r.settled && !errors.Is(context.Cause(ctx), task.ErrShutdown) {
			d.stopRemote(ctx, client, r.at.Task)
		}
		return task.Result{}, context.Cause(ctx)
	}
	if err != nil && !errors.Is(err, errSettled) {
		if r.adopted && !r.settled {
			d.stopRemote(ctx, client, r.at.Task)
		}
		if _, ok := errors.AsType[*fault.Error](err); ok {
			return task.Result{}, err
		}
		return failed(r.answer.parts(), redacted(w.sentence(err), call.Agent.Secret)), nil
	}
	r.result.Reason = redacted(r.result.Reason, call.Agent.Secret)
	return r.result, nil
}

// sentence makes a reason of an error of the far side.
func (w way) sentence(err error) string {
	if e, ok := errors.AsType[*trouble](err); ok {
		return e.text
	}
	if w.peer && errors.Is(err, federation.ErrImpostor) {
		return fmt.Sprintf("Another portal is at %s than the one that listed the agent, so nothing was sent.", w.who)
	}
	why := a2a.Reason(err)
	if egress.NeverSent(err) {
		return fmt.Sprintf("%s could not be reached: %s.", w.who, why)
	}
	return fmt.Sprintf("%s did not answer as it should: %s.", w.who, why)
}

// unsent reports whether an error shows that nothing was handed over: what
// signs requests found out who is there, or that nobody may ask.
func (w way) unsent(err error) bool {
	_, ours := errors.AsType[*fault.Error](err)
	return w.peer && (ours || errors.Is(err, federation.ErrImpostor))
}

// lower is whom failures are about within a sentence.
func (w way) lower() string {
	if w.who == "The agent" {
		return "the agent"
	}
	return w.who
}

// trouble is a failure with its own sentence.
type trouble struct{ text string }

// Error implements error.
func (t *trouble) Error() string { return t.text }

// send hands the message over and follows what comes of it.
func (r *run) send(ctx context.Context) error {
	m := a2a.UserMessage(r.call.MessageID, asked(ctx, r.call, r.at.Task != "", r.way.inline))
	if len(speech.Speakers(r.call)) > 1 {
		said := r.call.Said()
		by := a2a.NewSpeaker(said.Kind, said.Handle, r.d.cfg.Portal)
		m.Speaker = &by
	}
	if r.at.Task != "" { // it waited for input; this is the input
		m.TaskID, m.ContextID = r.at.Task, r.at.Context
	} else if m.ContextID = r.at.Context; m.ContextID == "" {
		before := readCheckpoint(r.call.Previous)
		m.ContextID = before.Context
		if before.Lost { // it was given up here, and would go first there
			r.d.stopRemote(ctx, r.client, before.Task)
		}
	}
	for {
		err := r.sendOnce(ctx, m)
		switch {
		case r.settled, ctx.Err() != nil:
			return err
		case r.events > 0 && r.adopted && r.at.Task != "" && !terminalTrouble(err):
			return r.await(ctx)
		case err == nil:
			return &trouble{"The agent ended the conversation without an answer."}
		case r.events > 0:
			return err
		case r.stream && (a2a.IsCode(err, a2a.CodeUnsupported) || a2a.IsCode(err, a2a.CodeMethodNotFound)) && m.TaskID == "":
			r.stream = false // its card promised more than it does
		case m.TaskID != "" && forgotten(err):
			// It refused, so it did nothing: begin anew without what it forgot.
			m.TaskID, r.at = "", checkpoint{}
		case m.ContextID != "" && forgotten(err):
			m.ContextID, r.at = "", checkpoint{}
		case egress.NeverSent(err) || refusedByAgent(err) || r.way.unsent(err):
			return err
		default:
			return &trouble{fmt.Sprintf("The connection to %s was lost before it named its task (%s). Whether it did the work is unknown.", r.way.lower(), a2a.Reason(err))}
		}
	}
}

// forgotten reports whether the agent no longer knows the context or task.
func forgotten(err error) bool {
	return a2a.IsCode(err, a2a.CodeTaskNotFound) || a2a.IsCode(err, a2a.CodeInvalidParams) ||
		a2a.IsCode(err, a2a.CodeUnsupported)
}

// refusedByAgent reports whether the far side answered and said no.
func refusedByAgent(err error) bool {
	e, ok := errors.AsType[*a2a.Error](err)
	return ok && e.Fault != a2a.FaultLimit
}

// terminalTrouble reports whether going on with the task makes no sense: it
// broke a limit.
func terminalTrouble(err error) bool {
	if e, ok := errors.AsType[*a2a.Error](err); ok && e.Fault == a2a.FaultLimit {
		return true
	}
	if egress.CodeOf(err) == egress.TooLarge {
		return true
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return true
	}
	_, ok := errors.AsType[*trouble](err)
	return ok
}

func (r *run) sendOnce(ctx context.Context, m a2a.Message) error {
	if !r.stream {
		ev, err := r.client.Send(ctx, m, false)
		if err != nil {
			return err
		}
		return r.handle(ctx, ev)
	}
	for ev, err := range r.client.Stream(ctx, m) {
		if err != nil {
			return err
		}
		if err := r.handle(ctx, ev); err != nil {
			return err
		}
	}
	return nil
}

// await follows a task the far side has until it settles: it asks for the
// task, listens where the agent streams, and asks again from time to time.
func (r *run) await(ctx context.Context) error {
	lost, reconnects, pause := 0, 0, r.d.cfg.PollMin
	for {
		t, err := r.client.GetTask(ctx, r.at.Task)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case a2a.IsCode(err, a2a.CodeTaskNotFound):
			r.adopted = false // nothing to stop there
			return &trouble{"The agent no longer knows the task. Whether it finished the work is unknown."}
		case err != nil:
			e, ok := errors.AsType[*a2a.Error](err)
			if lost++; lost > r.d.cfg.Lost || terminalTrouble(err) || ok && e.Fault == a2a.FaultAuth {
				r.at.Lost = true
				r.save(context.WithoutCancel(ctx))
				return &trouble{fmt.Sprintf("Contact with %s was lost while it worked: %s. Whether it finished is unknown.", r.way.lower(), a2a.Reason(err))}
			}
			if lost == 1 {
				r.out.Status("No contact with " + r.way.lower() + " now; it is asked again for a while.")
			}
		default:
			lost = 0
			if t.ID != r.at.Task {
				return &trouble{"The agent answered for another task than it was asked about."}
			}
			if err := r.handle(ctx, a2a.Event{Task: t}); err != nil {
				return err
			}
			if r.stream && reconnects < maxReconnects {
				reconnects++
				before := r.events
				if err := r.subscribe(ctx); err != nil {
					return err
				}
				if r.events == before {
					r.stream = false
				}
			}
		}
		if !clock.Sleep(ctx, pause) {
			return ctx.Err()
		}
		pause = min(pause*3/2, pollMax)
	}
}

// subscribe listens to the task until the stream ends. Only what ends the run
// is an error.
func (r *run) subscribe(ctx context.Context) error {
	for ev, err := range r.client.Subscribe(ctx, r.at.Task) {
		if err != nil {
			if terminalTrouble(err) {
				return err
			}
			return ctx.Err()
		}
		if err := r.handle(ctx, ev); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// handle takes one event. It returns errSettled when the outcome is known.
func (r *run) handle(ctx context.Context, ev a2a.Event) error {
	if r.events++; r.events > maxEvents {
		return &trouble{fmt.Sprintf("The agent sent more than %d events and was stopped.", maxEvents)}
	}
	taskID, contextID := ev.IDs()
	if !r.adopted && (taskID != "" || r.at.Task == "" && ev.Message != nil) {
		// The first to name a task names ours; a lone message names none.
		r.adopted = true
		r.at = checkpoint{Task: taskID, Context: contextID}
	} else if taskID != "" && taskID != r.at.Task {
		r.d.cfg.Log.Info("event of a foreign task ignored", "task_id", r.call.TaskID)
		return nil
	}
	if r.at.Context == "" {
		r.at.Context = contextID
	}
	if err := r.save(ctx); err != nil {
		return err
	}
	if r.way.local != nil {
		ev = r.fetched(ctx, ev)
	}
	var err error
	switch {
	case ev.Message != nil:
		err = r.answer.message(ev.Message.Parts)
		if err == nil {
			return r.settle(a2a.Status{State: task.Completed})
		}
	case ev.Artifact != nil:
		err = r.answer.update(ev.Artifact)
	case ev.Status != nil:
		return r.status(ev.Status.Status)
	case ev.Task != nil:
		if err = r.answer.snapshot(ev.Task.Artifacts); err == nil {
			r.answer.history(ev.Task.History)
			return r.status(ev.Task.Status)
		}
	}
	return err
}

// save stores where the task stands, if that is not stored.
func (r *run) save(ctx context.Context) error {
	if r.at == r.saved {
		return nil
	}
	b, err := json.Marshal(r.at)
	if err == nil {
		err = r.out.Checkpoint(ctx, b)
	}
	if err != nil {
		return fault.Wrap(fault.Internal, err, "The portal could not store where the task stands.")
	}
	r.saved = r.at
	return nil
}

// fetched is an event with the files it refers to, where they can be had.
func (r *run) fetched(ctx context.Context, ev a2a.Event) a2a.Event {
	list := func(in []task.Artifact) []task.Artifact {
		out := slices.Clone(in)
		for i := range out {
			out[i].Parts = r.way.local(ctx, out[i].Parts)
		}
		return out
	}
	switch {
	case ev.Message != nil:
		m := *ev.Message
		m.Parts = r.way.local(ctx, m.Parts)
		ev.Message = &m
	case ev.Artifact != nil:
		u := *ev.Artifact
		u.Artifact.Parts = r.way.local(ctx, u.Artifact.Parts)
		ev.Artifact = &u
	case ev.Task != nil:
		t := *ev.Task
		t.Artifacts = list(t.Artifacts)
		ev.Task = &t
	}
	return ev
}

func (r *run) status(s a2a.Status) error {
	if s.State.Terminal() || s.State == task.InputRequired || s.State == task.AuthRequired {
		return r.settle(s)
	}
	if s.Message != nil && s.Message.FromAgent {
		r.answer.note(s.Message.Parts)
	}
	return nil
}

// settle fixes the outcome.
func (r *run) settle(s a2a.Status) error {
	said := ""
	if s.Message != nil {
		said = a2a.Line(task.PlainText(s.Message.Parts), 500)
	}
	// Of a task that failed the message is the reason, not the answer.
	if s.Message != nil && (s.State == task.Completed || !s.State.Terminal()) {
		if err := r.answer.final(s.Message.Parts); err != nil {
			return err
		}
	}
	if s.State == task.Completed {
		if err := r.answer.complete(); err != nil {
			return err
		}
	}
	reason := reason
	if r.way.peer && said != "" { // a portal's own sentence
		reason = func(_, said string) string { return said }
	}
	r.settled = true
	r.result = task.Result{State: s.State, Parts: r.answer.finish()}
	switch s.State {
	case task.Completed:
		if len(r.result.Parts) == 0 {
			r.result.Reason = "The agent finished without an answer."
		}
	case task.Canceled:
		r.result.State = task.Failed
		r.result.Reason = reason("The agent stopped the task by itself", said)
	case task.Failed:
		r.result.Reason = reason("The agent reports that it failed", said)
	case task.Rejected:
		r.result.Reason = reason("The agent rejected the task", said)
	case task.InputRequired:
		r.result.Reason = reason("The agent needs an answer to go on", said)
	case task.AuthRequired:
		r.result.Reason = reason("The agent needs an authorization to go on", said)
	}
	return errSettled
}

func reason(ours, said string) string {
	if said == "" {
		return ours + "."
	}
	return ours + ": " + said
}
