package agentruntime

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/task"
)

// runAttempt calls the driver in a goroutine of its own, so that a driver that does not return cannot
// block the task.
func (w *Worker) runAttempt(ctx context.Context, s *sink) (task.Result, error) {
	t := s.t
	var call task.Call
	var driver task.Agent
	var own bool
	err := whileStoreFails(ctx, func() (err error) {
		call, driver, own, err = w.buildCall(ctx, t)
		return err
	})
	if h, ok := errors.AsType[errHalted](err); ok {
		return task.Result{State: task.Rejected, Reason: string(h)}, nil
	}
	if err != nil {
		return task.Result{}, err
	}
	// A program that is connected works on through restarts; its driver bounds how often it gets the task.
	if t.Attempt >= maxAttempts && call.Agent.Kind != string(hub.Link) {
		return task.Result{State: task.Failed,
			Reason: "The portal was restarted several times while this was worked on. Ask again."}, nil
	}
	// Agents of other portals do not count, because their own portal probes them.
	s.elsewhere = call.Agent.Kind != string(hub.Builtin) && call.Agent.Kind != string(hub.Link) &&
		call.Agent.Kind != string(hub.Peer) && call.Agent.Kind != string(hub.Wasm)
	if own {
		traces := &tracer{secret: call.Agent.Secret}
		defer func() { w.hub.Usage.AddTraces(context.WithoutCancel(ctx), t.AgentID, t.ID, traces.allTraces()) }()
		ctx = task.WithTrace(ctx, traces)
	}
	ctx = task.WithBehalf(ctx, call.OnBehalfOf())
	if call.Agent.Kind == string(hub.Peer) {
		s.peer = new(contact)
		ctx = s.peer.traceRequests(ctx)
	}
	type outcome struct {
		result task.Result
		err    error
	}
	// The attempt counts from here: a task that waits for its place takes none.
	err = whileStoreFails(ctx, func() (err error) {
		s.t, err = w.store.Begin(ctx, t.ID, w.fence)
		return err
	})
	if err != nil {
		s.t = t
		if fault.Is(err, fault.Conflict) || fault.Is(err, fault.NotFound) {
			return task.Result{}, errNotBegun
		}
		return task.Result{}, err
	}
	call.Attempt = s.t.Attempt
	w.chat.Working(s.t)
	done := make(chan outcome, 1)
	s.run.begun = true
	go func() {
		defer s.run.endDriver()
		var o outcome
		defer func() {
			if p := recover(); p != nil {
				o.err = fmt.Errorf("driver %s panicked: %v\n%s", call.Agent.Kind, p, debug.Stack())
			}
			done <- o
		}()
		o.result, o.err = driver.Run(ctx, call, s)
	}()
	select {
	case o := <-done:
		return o.result, o.err
	case <-ctx.Done():
	}
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case <-done:
	case <-grace.C:
		w.log.Warn("driver did not let go in time", "kind", call.Agent.Kind, "task", t.ID)
	}
	return task.Result{}, ctx.Err()
}

// Halts decides which agents take no work; halt.Service implements it.
type Halts interface {
	// ReasonOf returns the reason as a sentence, "" for an agent that works. provider is the host that runs it.
	ReasonOf(a hub.Agent, provider string) string
}

// errHalted is the error of a call of an agent that takes no work: the reason as a sentence.
type errHalted string

func (e errHalted) Error() string { return string(e) }

// buildCall collects the data that the driver may see. mine is true when the caller owns the agent,
// which allows traces of the call. It returns a NotFound fault for a deleted agent and an Unavailable
// one for a kind without a driver, and errHalted for an agent that takes no work.
func (w *Worker) buildCall(ctx context.Context, t task.Task) (call task.Call, driver task.Agent, mine bool, err error) {
	a, secret, err := w.hub.Open(ctx, t.AgentID)
	if fault.Is(err, fault.NotFound) {
		return call, nil, false, fault.New(fault.NotFound, "%s is not here any more.", t.AgentHandle)
	}
	if err != nil {
		return call, nil, false, err
	}
	if why := w.halts.ReasonOf(a, w.hub.TextGoesTo(a)); why != "" {
		return call, nil, false, errHalted(why)
	}
	driver = w.drivers[a.Kind]
	if driver == nil {
		return call, nil, false, fault.New(fault.Unavailable, "This portal cannot run agents of kind %q.", a.Kind)
	}
	h, err := w.chat.History(ctx, t)
	if err != nil {
		return call, nil, false, err
	}
	call = task.Call{
		TaskID: t.ID, ConversationID: t.ConversationID, MessageID: h.Ask.ID, MessageSeq: t.MessageSeq,
		Attempt:    t.Attempt,
		Checkpoint: t.Checkpoint,
		Agent:      agentTarget(a, secret),
		Caller:     task.Caller{Kind: t.CallerKind, Handle: t.CallerHandle, ID: t.CallerID},
		Speaker:    task.Speaker{Kind: h.Ask.Sender.Kind, Handle: h.Ask.Sender.Handle},
		Parts:      withoutOwnMention(h.Ask.Parts, t.AgentHandle),
		Via:        t.Via, Budget: t.Budget, Relayed: t.Face == chat.FaceRelay,
		Files: w.chat.Files.ForTask(t),
	}
	if h.Ask.Sender.Kind != "agent" {
		call.ClientID = storedClientID{w.chat, t}
	}
	// A new id for a regenerated answer, because some agents treat a repeated message id as the same
	// request.
	if t.Replaces > 0 {
		call.MessageID = t.ID
	}
	if a.Kind == hub.Peer {
		if call.Budget, err = w.chat.Allowance(ctx, t); err != nil {
			return call, nil, false, err
		}
	}
	for _, m := range h.Earlier {
		agent := m.Sender.Kind == "agent"
		call.History = append(call.History, task.Turn{Seq: m.Seq, Mine: agent && m.Sender.ID == a.ID, Asker: !agent &&
			m.Sender.ID == t.CallerID,
			Speaker: m.Sender.Handle, Kind: m.Sender.Kind, Parts: m.Parts})
	}
	// The previous checkpoint gives access to the agent's memory of the conversation. Without a limit
	// to one caller ("") any task of the conversation counts.
	whose := ""
	if h.Asker.FromSeq > 0 {
		whose = t.CallerID // The memory may contain messages from before the caller joined.
	}
	if chat.Share(t.Share) == chat.ShareNothing {
		return call, driver, callerOwns(a, t), nil
	}
	call.Scope = fmt.Sprintf("%s/%d", t.Share, h.Asker.FromSeq)
	if call.Previous, err = w.store.LastCheckpoint(ctx, t.ConversationID, t.AgentID, whose, t.ID); err != nil {
		return call, nil, false, err
	}
	return call, driver, callerOwns(a, t), nil
}

// callerOwns reports whether the caller is the owner or a co-owner of the agent; guests never are.
func callerOwns(a hub.Agent, t task.Task) bool {
	return t.CallerID != "" && (t.CallerID == a.OwnerID || slices.Contains(a.CoOwnerIDs, t.CallerID))
}

// checkResult makes any result of a driver valid for storage: an unknown state and an answer over the
// size limits become state failed, the latter with the parts that fit. An answer that stands as data and as text stays
// once.
func checkResult(r task.Result) task.Result {
	switch r.State {
	case task.Completed, task.Failed, task.Rejected, task.InputRequired, task.AuthRequired, task.Canceled:
	default:
		r.State, r.Reason = task.Failed, "The agent ended without an outcome."
	}
	size := 0
	for i, p := range r.Parts { // Files count by their URL only; their contents are bounded where they are stored.
		size += len(p.Text) + len(p.Data) + len(p.URL)
		if size > 8*chat.MaxAnswerBytes || i >= chat.MaxParts {
			r.Parts = r.Parts[:i]
			r.State, r.Reason = task.Failed, "The answer was too large and was cut."
			break
		}
	}
	r.Parts = task.DropRepeats(slices.Clone(r.Parts))
	return r
}

// cutToBudget cuts an answer to the bytes that the budget of the calling portal allows and marks it as
// failed. A budget that is not set allows any size.
func cutToBudget(b task.Budget, r task.Result) task.Result {
	if !b.IsSet() {
		return r
	}
	left := b.Bytes
	for i, p := range r.Parts {
		if left -= int64(len(p.Text) + len(p.Data)); left < 0 {
			r.Parts = r.Parts[:i:i]
			if p.Text != "" {
				r.Parts = append(r.Parts, task.TextPart(strings.ToValidUTF8(p.Text[:int64(len(p.Text))+left], "")))
			}
			r.State, r.Reason = task.Failed, "The answer is longer than its caller allows, and was cut."
			break
		}
	}
	return r
}
