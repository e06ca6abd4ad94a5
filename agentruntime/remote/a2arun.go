package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"agentsite/agentruntime/attach"
	"agentsite/agentruntime/equip"
	"agentsite/agentruntime/speech"
	"agentsite/internal/a2a"
	"agentsite/internal/clock"
	"agentsite/internal/egress"
	"agentsite/internal/fault"
	"agentsite/internal/federation/guard"
	"agentsite/internal/hub"
	"agentsite/internal/task"
)

const (
	// maxEvents bounds the events of one task, over all its connections.
	maxEvents = 10_000
	// maxReconnects is how often a stream is resumed before the task is only polled, because some
	// servers close every stream at once.
	maxReconnects = 20
)

// errSettled ends the reading of a stream because the outcome is known. It never leaves runTask.
var errSettled = errors.New("settled")

// run is one call of one agent. Only the goroutine of Run uses it.
type run struct {
	d      *A2A
	way    way
	client *a2a.Client
	call   task.Call
	out    task.Sink
	stream bool

	keep   *equip.Kit
	access *a2a.Tools // of the portal's tools; nil if the agent gets none

	at      checkpoint
	adopted bool // the remote side has confirmed that at.Task is the task of this call
	saved   checkpoint
	answer  *answer
	events  int
	settled bool
	result  task.Result
	cost    *task.Claim // the newest statement of the agent
}

// way describes the route to an agent and its name in error messages.
type way struct {
	rt http.RoundTripper
	// subject is the subject of sentences about failures, such as "The agent".
	subject string
	// inline is the largest file in bytes that is sent inline; larger ones are sent as an address.
	inline int
	// peer is true for agents of other portals: an error before a request is sent may then come from
	// this portal's own signing or permissions.
	peer bool
	// files, when set, downloads the remote side's files that parts refer to.
	files *fetcher
}

// Run implements task.Agent. It stores the remote task's id before it shows any output, so that a
// restart resumes that task and never sends the message twice.
func (d *A2A) Run(ctx context.Context, call task.Call, out task.Sink) (task.Result, error) {
	return d.runTask(ctx, way{rt: d.rt, subject: "The agent", inline: attach.MaxInline}, call, out)
}

// Stop implements task.Stopper. It cancels the remote task in the background, and tries again until Close.
func (d *A2A) Stop(ctx context.Context, call task.Call) { d.stopTask(ctx, d.rt, call, false) }

func (d *A2A) stopTask(ctx context.Context, rt http.RoundTripper, call task.Call, peer bool) {
	client, _, err := a2aClient(rt, call.Agent.Endpoint, call.Agent.Config, call.Agent.Secret, peer)
	if err != nil {
		return // The registration was changed, so the endpoint of the task is unknown.
	}
	d.stopRemote(ctx, client, readCheckpoint(call.Checkpoint).Task)
}

func (d *A2A) runTask(ctx context.Context, w way, call task.Call, out task.Sink) (task.Result, error) {
	rt := w.rt
	var wants hub.A2AConfig
	if d.cfg.Tools != nil && !w.peer && json.Unmarshal(call.Agent.Config, &wants) == nil && wants.TakesTools {
		rt = withExtension{rt, a2a.ExtTools}
	}
	client, cfg, err := a2aClient(rt, call.Agent.Endpoint, call.Agent.Config, call.Agent.Secret, w.peer)
	if err != nil {
		return task.Result{}, fault.Wrap(fault.Unavailable, err,
			"The agent is not set up in a way this portal can use. Its owner should register it again.")
	}
	keep := equip.Wrap(out, call.Checkpoint)
	at := readCheckpoint(call.Checkpoint)
	r := &run{d: d, way: w, client: client, call: call, keep: keep, out: keep, stream: cfg.Streaming,
		answer: newAnswer(keep), at: at, saved: at}
	if ctx, err = r.openTools(ctx); err != nil {
		return task.Result{}, err
	}
	defer keep.Close()
	switch {
	case call.Attempt > 1 && r.at.Task == "":
		// A message without a stored task id may or may not have arrived before the restart; sending it
		// again could do the work twice.
		return failedResult(nil, "The portal was interrupted while it handed this to the agent. Whether the "+
			"agent did the work is unknown; ask again if it should."), nil
	case call.Attempt > 1:
		r.adopted = true
		err = r.awaitTask(ctx)
	default:
		err = r.sendMessage(ctx)
	}
	if ctx.Err() != nil {
		// If the portal stops, the remote task continues, and the next start of the portal follows it.
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
		if wait, busy := a2a.Busy(err); busy && !r.adopted {
			return w.busyResult(err, wait), nil
		}
		return failedResult(r.keep.HideParts(r.answer.finalParts()),
			r.keep.HideToken(redactSecret(w.failureSentence(err), call.Agent.Secret))), nil
	}
	r.result = r.keep.AskPermission(r.result)
	r.result.Reason = r.keep.HideToken(redactSecret(r.result.Reason, call.Agent.Secret))
	r.result.Parts = r.keep.HideParts(r.result.Parts)
	return r.result, nil
}

// failureSentence makes a sentence for users of an error of the remote side. It may contain a credential
// that the caller must redact.
func (w way) failureSentence(err error) string {
	if e, ok := errors.AsType[*trouble](err); ok {
		return e.text
	}
	if w.peer && errors.Is(err, guard.ErrImpostor) {
		return fmt.Sprintf("Another portal is at %s than the one that listed the agent, so nothing was sent.",
			w.subject)
	}
	why := a2a.Reason(err)
	if egress.NeverSent(err) && egress.CodeOf(err) != egress.Redirect {
		return fmt.Sprintf("%s could not be reached: %s.", w.subject, why)
	}
	return fmt.Sprintf("%s did not answer as it should: %s.", w.subject, why)
}

// busyResult is the result of a message that the remote side refused because of too many requests, so that it did
// not start to work. Another portal gives a whole sentence as the reason.
func (w way) busyResult(err error, wait time.Duration) task.Result {
	r := task.Result{State: task.Rejected, Reason: task.BusyReason(w.subject, wait), RetryAfter: wait}
	if e, ok := errors.AsType[*a2a.Error](err); ok && w.peer && e.Fault == a2a.FaultRefused && e.Text != "" {
		r.Reason = e.Text
	}
	return r
}

// provesUnsent reports whether an error proves that the task was not sent: the signing transport found
// another portal at the address, or a missing permission.
func (w way) provesUnsent(err error) bool {
	_, ours := errors.AsType[*fault.Error](err)
	return w.peer && (ours || errors.Is(err, guard.ErrImpostor))
}

// nameInSentence returns the subject in lower case where it is not a name, for use within a sentence.
func (w way) nameInSentence() string {
	if w.subject == "The agent" {
		return "the agent"
	}
	return w.subject
}

// trouble is a failure with a sentence for users as its text.
type trouble struct{ text string }

// Error implements error. The text is safe to show to users.
func (t *trouble) Error() string { return t.text }

// sendMessage sends the message and follows its task until the outcome. It starts over, without
// streaming or without the old task or context, only after a refusal, which proves that nothing was
// done.
func (r *run) sendMessage(ctx context.Context) error {
	m := a2a.UserMessage(r.call.MessageID, r.replyParts(ctx))
	m.Tools = r.access
	if len(speech.ListSpeakers(r.call)) > 1 {
		said := r.call.AskedBy()
		by := a2a.NewSpeaker(said.Kind, said.Handle, r.d.cfg.Portal)
		m.Speaker = &by
	}
	if r.at.Task != "" { // The task waited for input, and this message is the input.
		m.TaskID, m.ContextID = r.at.Task, r.at.Context
	} else if m.ContextID = r.at.Context; m.ContextID == "" {
		before := readCheckpoint(r.call.Previous)
		m.ContextID = before.Context
		// The portal gave up that task when contact was lost. It is canceled, or the remote side could
		// finish it before this message.
		if before.Lost {
			r.d.stopRemote(ctx, r.client, before.Task)
		}
	}
	for {
		err := r.sendOnce(ctx, m)
		switch {
		case r.settled, ctx.Err() != nil:
			return err
		case r.events > 0 && r.way.endsTask(err):
			return err
		case r.events > 0 && r.adopted && r.at.Task != "" && !terminalTrouble(err):
			return r.awaitTask(ctx)
		case err == nil:
			return &trouble{"The agent ended the conversation without an answer."}
		case r.events > 0:
			return err
		case r.stream && (a2a.IsCode(err, a2a.CodeUnsupported) || a2a.IsCode(err, a2a.CodeMethodNotFound)) &&
			m.TaskID == "":
			r.stream = false // The agent's card claims streaming, but the agent refuses it.
		case m.TaskID != "" && isForgotten(err):
			// A refusal proves that nothing was done, so start again without the task that the agent
			// forgot.
			m.TaskID, r.at = "", checkpoint{}
		case m.ContextID != "" && isForgotten(err):
			m.ContextID, r.at = "", checkpoint{}
		case egress.NeverSent(err) || refusedByAgent(err) || r.way.provesUnsent(err):
			return err
		default:
			return &trouble{fmt.Sprintf("The connection to %s was lost before it named its task (%s). Whether "+
				"it did the work is unknown.", r.way.nameInSentence(), a2a.Reason(err))}
		}
	}
}

// isForgotten reports whether the agent no longer knows the context or task that a message names, so
// that the message can be sent without.
func isForgotten(err error) bool {
	return a2a.IsCode(err, a2a.CodeTaskNotFound) || a2a.IsCode(err, a2a.CodeInvalidParams) ||
		a2a.IsCode(err, a2a.CodeUnsupported)
}

// refusedByAgent reports whether the remote side answered with an error, which proves that it received
// the message and did not accept it.
func refusedByAgent(err error) bool {
	e, ok := errors.AsType[*a2a.Error](err)
	return ok && e.Fault != a2a.FaultLimit
}

// terminalTrouble reports whether the task cannot continue because a limit was exceeded. Other errors
// are worth a new connection.
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

// endsTask reports whether an error in a stream is the agent's own, which ends the task with its reason,
// whatever the agent says of the task later. Another portal that stops says so with CodeServer, and
// continues the task when it is back.
func (w way) endsTask(err error) bool {
	e, ok := errors.AsType[*a2a.Error](err)
	return ok && e.Fault == a2a.FaultRefused && !(w.peer && e.Code == a2a.CodeServer)
}

// sendOnce sends the message once and handles its events. If ctx ends before the agent has named the task, it returns
// at once; the request then stays open in the background, because without a name the agent could not be asked to cancel.
func (r *run) sendOnce(ctx context.Context, m a2a.Message) error {
	in := r.openInbox(ctx, m)
	for !r.named() {
		in.startRead()
		select {
		case <-in.done:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			r.d.cancelUnnamed(ctx, r.client, in)
			return ctx.Err()
		}
		if in.last.panicked != "" {
			in.close()
			panic(in.last.panicked)
		}
		if err := r.handleReceived(ctx, in.last); err != nil || !in.last.ok {
			in.close()
			return err
		}
	}
	defer in.close()
	for {
		in.read(ctx)
		if err := r.handleReceived(ctx, in.last); err != nil || !in.last.ok {
			return err
		}
	}
}

// handleReceived handles a result of a read. After the last event it returns nil.
func (r *run) handleReceived(ctx context.Context, e received) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case e.err != nil:
		return e.err
	case !e.ok:
		return nil
	}
	return r.handleEvent(ctx, e.ev)
}

// awaitTask follows a task of the remote side until its outcome: it gets the task, listens if the agent
// streams, and polls otherwise. It gives up after Config.Lost failures in a row, and marks the
// checkpoint as lost.
func (r *run) awaitTask(ctx context.Context) error {
	lost, reconnects, pause := 0, 0, r.d.cfg.PollMin
	for {
		t, err := r.client.GetTask(ctx, r.at.Task)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case a2a.IsCode(err, a2a.CodeTaskNotFound):
			r.adopted = false // A task that is unknown to the agent needs no cancel.
			return &trouble{"The agent no longer knows the task. Whether it finished the work is unknown."}
		case err != nil:
			e, ok := errors.AsType[*a2a.Error](err)
			if lost++; lost > r.d.cfg.Lost || terminalTrouble(err) || ok && e.Fault == a2a.FaultAuth {
				r.at.Lost = true
				// The task fails with the same reason even if the checkpoint is not stored.
				_ = r.saveCheckpoint(context.WithoutCancel(ctx))
				return &trouble{fmt.Sprintf("Contact with %s was lost while it worked: %s. Whether it finished "+
					"is unknown.", r.way.nameInSentence(), a2a.Reason(err))}
			}
			if lost == 1 {
				r.out.Status("No contact with " + r.way.nameInSentence() + " now; it is tried again for a while.")
			}
		default:
			lost = 0
			if t.ID != r.at.Task {
				return &trouble{"The agent answered for another task."}
			}
			if err := r.handleEvent(ctx, a2a.Event{Task: t}); err != nil {
				return err
			}
			if r.stream && reconnects < maxReconnects {
				reconnects++
				before := r.events
				if err := r.subscribeTask(ctx); err != nil {
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

// subscribeTask listens to the task until the stream ends. It returns an error only if the run must
// end.
func (r *run) subscribeTask(ctx context.Context) error {
	before := r.events
	for ev, err := range r.client.Subscribe(ctx, r.at.Task) {
		if err != nil {
			if terminalTrouble(err) || r.events > before && r.way.endsTask(err) {
				return err
			}
			return ctx.Err()
		}
		if err := r.handleEvent(ctx, ev); err != nil {
			return err
		}
	}
	return ctx.Err()
}
