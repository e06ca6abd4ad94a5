package a2a

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/a2a"
	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// methodCall is one call of an A2A method, in either binding. It lives as long as its request.
type methodCall struct {
	w       http.ResponseWriter
	r       *http.Request
	handler *Handler
	method  a2a.Method
	write   a2a.Writer
	params  json.RawMessage
	// binding encodes the events of a stream.
	binding binding
	// proven is the actor that the credential proves, or a guest with an empty id.
	// request.Callers.Identify turns such a guest into a known one.
	proven ident.Actor
	agent  hub.Agent
	// extensions are the extensions that the caller requested and this request supports.
	extensions []string
}

// binding encodes the events of a stream for JSON-RPC or for HTTP+JSON.
type binding interface {
	// wrapEvent returns the value to send for the result v.
	wrapEvent(v any) any
	// wrapFailure returns the value to send for an error, after which the stream ends.
	wrapFailure(f *a2a.Failure) any
}

// errStreamed is returned by a method that has already written its answer as a stream. The caller must
// write nothing more.
var errStreamed = errors.New("answered with a stream")

// maxWait bounds a call that waits for its task; after it the answer is the present task.
const maxWait = 10 * time.Minute

// answerCall finds the agent, authenticates the caller and runs the method. It returns the result to
// encode, or errStreamed. tenant is the agent's name in the parameters, "" for the agent of the path.
func (q *methodCall) answerCall(tenant string) (any, error) {
	name := agentName(q.r)
	if tenant != "" {
		// A request to an agent's own base may name only that agent; at the portal's base the tenant
		// selects the agent.
		if name != tenant && chi.URLParam(q.r, "name") != "" {
			return nil, a2a.Fail(a2a.CodeInvalidParams,
				"This base is of one agent, which has no tenants. Leave tenant out.")
		}
		name = tenant
	}
	q.readExtensions()
	var err error
	if q.agent, err = q.handler.cfg.Hub.Addressed(q.r.Context(), q.proven, name); err != nil {
		return nil, err
	}
	switch q.method {
	case a2a.SendMessage, a2a.StreamMessage:
		return q.sendMessage()
	case a2a.GetTask:
		return q.getTask()
	case a2a.ListTasks:
		return q.listTasks()
	case a2a.CancelTask:
		return q.cancelTask()
	case a2a.SubscribeTask:
		return q.subscribeTask()
	case a2a.ExtendedCard:
		return q.handler.extendedCard(q.r, q.proven, q.agent)
	case a2a.CreatePush:
		return q.createPush()
	case a2a.GetPush, a2a.ListPush:
		return q.readPush()
	case a2a.DeletePush:
		return q.deletePush()
	}
	return nil, a2a.Fail(a2a.CodeMethodNotFound, "There is no such method.")
}

func errNoTask() error {
	return a2a.Fail(a2a.CodeTaskNotFound, "You have no such task with this agent.")
}

// sendMessage sends a message to the agent as a new task, or as the input that an existing task of the
// caller waits for.
func (q *methodCall) sendMessage() (any, error) {
	in, f := a2a.ReadSend(q.params, q.write.Version)
	if f != nil {
		return nil, f
	}
	if in.Push != nil { // refused before the agent gets the message
		if q.proven.Kind == ident.Portal {
			return nil, a2a.Fail(a2a.CodeForbidden,
				"Portals get no push notifications of tasks; they follow tasks by streams. Leave the push configuration out.")
		}
		if err := q.handler.cfg.Hooks.CheckPush(q.pushDraft(*in.Push)); err != nil {
			return nil, err
		}
	}
	ctx, d, m := q.r.Context(), q.handler, in.Message
	asker, err := d.cfg.Callers.Identify(q.r, q.proven, m.TaskID, m.ContextID)
	if err != nil {
		return nil, noSuch(m, err)
	}
	via, err := request.ReadChain(q.r)
	if err != nil {
		return nil, err
	}
	budget, err := request.ReadBudget(q.r, q.proven)
	if err != nil {
		return nil, budgetError(err)
	}
	var unfit error // the error to return unless the message repeats an earlier one
	if m.TaskID != "" {
		t, err := q.findTask(asker.Actor, m.TaskID)
		if err != nil {
			return nil, err
		}
		if m.ContextID != "" && m.ContextID != t.ConversationID {
			return nil, &a2a.Failure{Code: a2a.CodeInvalidParams,
				Text:     "message.contextId: is not that of the task. Leave it out, or send the task's.",
				Metadata: map[string]string{"field": "message.contextId"}}
		}
		unfit = unfitFor(t)
	}
	if waits := q.method == a2a.StreamMessage || !in.Immediate; waits {
		var leave func()
		if ctx, leave, err = d.cfg.Callers.BeginWait(q.r, asker.Actor); err != nil {
			return nil, err
		}
		defer leave()
		// reading the body may have taken so long that the credential was revoked meanwhile
	} else if _, err := d.cfg.Callers.Authenticate(q.r); err != nil {
		return nil, err
	}
	asked, err := d.cfg.Chat.Ask(ctx, asker.Actor,
		chat.Ask{Agent: q.agent.Handle(), Context: m.ContextID, ClientID: m.ID, Parts: m.Parts, TaskID: m.TaskID,
			Face: endpointName,
			// with a push configuration the call returns at once, because the client gets each state by
			// push
			Wait: q.method == a2a.SendMessage && !in.Immediate && in.Push == nil, Via: via, Budget: budget,
			Once: q.usesExtension(a2a.ExtOnce), Relayed: q.proven.OwnWords})
	if errors.Is(err, task.ErrLoop) {
		return nil, &a2a.Failure{Code: a2a.CodeInvalidRequest, Reason: "LOOP_DETECTED", Text: fault.As(err).Safe}
	}
	if errors.Is(err, task.ErrBudget) {
		return nil, budgetError(err)
	}
	if unfit != nil && fault.Is(err, fault.Conflict) {
		return nil, unfit
	}
	if err != nil {
		return nil, noSuch(m, err)
	}
	d.cfg.Callers.Remember(asker, asked.ConversationID)
	d.cfg.Callers.Remember(asker, asked.Task.ID)
	// A repeated message belongs to the agent and task it was first sent to; another one is an error.
	if asked.Task.AgentID != q.agent.ID || m.TaskID != "" && m.TaskID != asked.Task.ID {
		return nil, errNoTask()
	}
	if in.Push != nil { // the client also gets the state changes up to now
		c := *in.Push
		c.TaskID = asked.Task.ID
		// derived from the task, so that a repeated message creates no second configuration
		c.ID = cmp.Or(c.ID, c.TaskID)
		if _, err := d.cfg.Hooks.SetPush(ctx, asker.Actor, q.pushDraft(c)); err != nil {
			return nil, err
		}
	}
	how := q.readDetail(in.HistoryLength, true)
	switch {
	case q.method == a2a.StreamMessage:
		return nil, q.streamTask(ctx, asker.Actor, asked.Task, how)
	case asked.Said != nil && !asked.Task.Direct:
		v := d.viewWith(ctx, asked.Task, asked.Said, how)
		return q.write.Event(q.addCost(a2a.Event{Task: &v})), nil
	case in.Immediate || !asked.Task.State.Active():
		return q.answerTask(asker.Actor, asked.Task, how)
	}
	t, err := q.waitTask(ctx, asker.Actor, asked.Task)
	if err != nil {
		return nil, err
	}
	return q.answerTask(asker.Actor, t, how)
}

// budgetError returns the A2A failure for a used-up task budget, and any other error unchanged.
func budgetError(err error) error {
	if !errors.Is(err, task.ErrBudget) {
		return err
	}
	return &a2a.Failure{Code: a2a.CodeInvalidRequest, Reason: "BUDGET_SPENT", Text: fault.As(err).Safe}
}

// unfitFor returns the failure for sending a message to a task that takes no input now; nil if the task
// waits for input.
func unfitFor(t task.Task) error {
	switch {
	case t.State.Terminal():
		return a2a.Fail(a2a.CodeUnsupported, "The task has ended. Send the message without taskId, in the same context, to ask for more.")
	case t.State.Active():
		return a2a.Fail(a2a.CodeUnsupported, "The task is being worked on and waits for nothing. Wait until it asks for input, or send the message without taskId.")
	}
	return nil
}

// noSuch returns the protocol's failure if err says that the task or context of m is unknown, otherwise
// err.
func noSuch(m a2a.Message, err error) error {
	switch {
	case !fault.Is(err, fault.NotFound):
		return err
	case m.TaskID != "":
		return errNoTask()
	case m.ContextID != "":
		return &a2a.Failure{Code: a2a.CodeInvalidParams,
			Text: "message.contextId: is not a context of yours with this agent. The portal creates contexts: leave it out to start one.", Metadata: map[string]string{"field": "message.contextId"}}
	}
	return err
}

// answerTask returns the result of SendMessage: the task, or a plain message if the agent answered
// without work.
func (q *methodCall) answerTask(actor ident.Actor, t task.Task, how detail) (any, error) {
	if t.Direct {
		m, err := q.handler.replyMessage(q.r.Context(), actor, t, q.usesExtension(a2a.ExtSpeaker))
		if err != nil || m != nil {
			return q.write.Event(a2a.Event{Message: m}), err
		}
	}
	v, err := q.handler.viewTask(q.r.Context(), actor, t, how)
	if err != nil {
		return nil, err
	}
	return q.write.Event(q.addCost(a2a.Event{Task: &v})), nil
}

// findTask returns a task if it belongs to the actor and to this call's agent, otherwise the failure for
// an unknown task.
func (q *methodCall) findTask(actor ident.Actor, id string) (task.Task, error) {
	t, err := q.handler.cfg.Chat.OwnTask(q.r.Context(), actor, id)
	if fault.Is(err, fault.NotFound) || err == nil && t.AgentID != q.agent.ID {
		return task.Task{}, errNoTask()
	}
	return t, err
}

// readTask decodes parameters that consist of a task id, and returns the task and the actor it belongs
// to.
func (q *methodCall) readTask() (in a2a.TaskRequest, actor ident.Actor, t task.Task, err error) {
	in, f := a2a.ReadTask(q.params)
	if f != nil {
		return in, actor, t, f
	}
	asker, err := q.handler.cfg.Callers.Identify(q.r, q.proven, in.ID)
	if fault.Is(err, fault.NotFound) {
		err = errNoTask()
	}
	if err == nil {
		t, err = q.findTask(asker.Actor, in.ID)
	}
	return in, asker.Actor, t, err
}

func (q *methodCall) getTask() (any, error) {
	in, actor, t, err := q.readTask()
	if err != nil {
		return nil, err
	}
	v, err := q.handler.viewTask(q.r.Context(), actor, t, q.readDetail(in.HistoryLength, true))
	if err != nil {
		return nil, err
	}
	return q.write.Task(*q.addCost(a2a.Event{Task: &v}).Task), nil
}

// listTasks returns a page of the caller's tasks with this agent. A caller without a credential has
// tasks only within a context that it names.
func (q *methodCall) listTasks() (any, error) {
	in, f := a2a.ReadList(q.params)
	if f != nil {
		return nil, f
	}
	from, ok := readToken(in.PageToken)
	if !ok {
		return nil, &a2a.Failure{Code: a2a.CodeInvalidParams, Text: "pageToken: is not one of this list.",
			Metadata: map[string]string{"field": "pageToken"}}
	}
	actor := q.proven
	if actor.ID == "" && in.ContextID != "" {
		asker, err := q.handler.cfg.Callers.Identify(q.r, actor, in.ContextID)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return nil, err
		}
		actor = asker.Actor
	}
	if actor.ID == "" {
		return q.write.Tasks(nil, "", in.PageSize, 0), nil
	}
	ctx := q.r.Context()
	if err := respond.Reserve(ctx, q.w, actor); err != nil {
		return nil, err
	}
	page, err := q.handler.cfg.Tasks.Find(ctx, actor,
		task.Query{AgentID: q.agent.ID, ConversationID: in.ContextID, State: in.State, After: in.After, From: from,
			Limit: in.PageSize})
	if err != nil {
		return nil, err
	}
	how := q.readDetail(in.HistoryLength, in.Artifacts)
	if how.history == nil {
		// without a history length in the request, lists contain no messages, because lists serve to find
		// tasks
		how.history = new(int)
	}
	var views []a2a.Task
	for size := 0; len(views) < len(page.Tasks) && size < maxListBytes; {
		v, err := q.handler.viewTask(ctx, actor, page.Tasks[len(views)], how)
		if err != nil {
			return nil, err
		}
		views, size = append(views, v), size+taskSize(v)
	}
	next := ""
	if n := len(views); n > 0 && (page.More || n < len(page.Tasks)) {
		next = pageToken(page.Tasks[n-1])
	}
	return q.write.Tasks(views, next, in.PageSize, page.Total), nil
}

// maxListBytes is the size of tasks at which a page of a list ends early: a hundred tasks with all
// messages could be gigabytes.
const maxListBytes = 1 << 20

// taskSize returns the approximate size of a task in bytes, without encoding the task.
func taskSize(t a2a.Task) int {
	n := 0
	add := func(parts []task.Part) {
		for _, p := range parts {
			n += len(p.Text) + len(p.Raw) + len(p.URL) + len(p.Data) + len(p.Metadata)
		}
	}
	if t.Status.Message != nil {
		add(t.Status.Message.Parts)
	}
	for _, m := range t.History {
		add(m.Parts)
	}
	for _, a := range t.Artifacts {
		add(a.Parts)
	}
	return n
}

// pageToken returns the opaque token for the page that starts after task t.
func pageToken(t task.Task) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(clock.Milli(t.UpdatedAt), 10) + "." + t.ID))
}

func readToken(s string) (task.Point, bool) {
	if s == "" {
		return task.Point{}, true
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	at, id, _ := strings.Cut(string(b), ".")
	ms, nerr := strconv.ParseInt(at, 10, 64)
	return task.Point{At: clock.FromMilli(ms), ID: id}, err == nil && nerr == nil && ms > 0 && ident.ValidID(id)
}

// cancelWait is the time that a cancel waits for an agent to stop; agents must stop within 500 ms.
const cancelWait = 2 * time.Second

func (q *methodCall) cancelTask() (any, error) {
	_, actor, t, err := q.readTask()
	if err != nil {
		return nil, err
	}
	ended := a2a.Fail(a2a.CodeTaskNotCancelable, "The task has ended already, so there is nothing to cancel.")
	if t.State.Terminal() {
		return nil, ended
	}
	ctx, d := q.r.Context(), q.handler
	s, err := respond.Follow(ctx, d.cfg.Chat, actor, t)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	wctx, stop := context.WithTimeout(ctx, cancelWait)
	defer stop()
	for range 2 { // a task that began to wait for input between the two calls is canceled by the second
		if err := d.cfg.Chat.StopTask(ctx, actor, t.ID, "Canceled by its caller."); err != nil {
			return nil, err
		}
		if _, err := s.Wait(wctx); err != nil && ctx.Err() != nil {
			return nil, err
		}
		if t, err = q.findTask(actor, t.ID); err != nil {
			return nil, err
		}
		if t.State.Terminal() {
			break
		}
	}
	if t.State.Terminal() && t.State != task.Canceled {
		return nil, ended // the task ended before the cancellation reached its agent
	}
	v, err := d.viewTask(ctx, actor, t, q.readDetail(nil, true))
	return q.write.Task(v), err
}

func (q *methodCall) subscribeTask() (any, error) {
	_, actor, t, err := q.readTask()
	if err != nil {
		return nil, err
	}
	if t.State.Terminal() && !q.canReplay(t) {
		return nil, a2a.Fail(a2a.CodeUnsupported, "The task has ended, so nothing more comes. Ask for it with GetTask.")
	}
	ctx, leave, err := q.handler.cfg.Callers.BeginWait(q.r, actor)
	if err != nil {
		return nil, err
	}
	defer leave()
	return nil, q.streamTask(ctx, actor, t, q.readDetail(nil, true))
}

// waitTask waits until a task ends or needs input and returns its state then. ctx must be from
// request.Callers.BeginWait, which limits the waiting calls.
func (q *methodCall) waitTask(ctx context.Context, actor ident.Actor, t task.Task) (task.Task, error) {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	respond.LiftDeadlines(q.w)
	defer respond.SetWriteDeadline(q.w)
	s, err := respond.Follow(ctx, q.handler.cfg.Chat, actor, t)
	if err != nil {
		return t, err
	}
	defer s.Close()
	end, err := s.Wait(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return q.findTask(actor, t.ID)
	}
	if err != nil {
		return t, err
	}
	return end.Task, nil
}
