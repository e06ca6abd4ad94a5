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

// methodCall is one call of a method, of whatever binding.
type methodCall struct {
	w      http.ResponseWriter
	r      *http.Request
	door   *Door
	method a2a.Method
	write  a2a.Writer
	params json.RawMessage
	// events is what the binding makes of an event of a stream, and broken of
	// the error that ends one.
	events func(v any) any
	broken func(f *a2a.Failure) any
	// proven is who shows a credential, else a visitor without an id.
	proven ident.Actor
	agent  hub.Agent
	// extensions are those that the caller asked for and gets.
	extensions []string
}

// errStreamed is returned by a method that has answered with a stream.
var errStreamed = errors.New("answered with a stream")

// maxWait is how long a call that waits for its task is kept waiting; then it
// is answered with the task as it is.
const maxWait = 10 * time.Minute

// answer finds the agent and does what is asked. It returns what the binding
// is to write.
func (q *methodCall) answer(tenant string) (any, error) {
	name := agentName(q.r)
	if tenant != "" {
		// At the portal's base the tenant is the agent that is meant.
		if name != tenant && chi.URLParam(q.r, "name") != "" {
			return nil, a2a.Fail(a2a.CodeInvalidParams, "This base is of one agent, which has no tenants. Leave tenant out.")
		}
		name = tenant
	}
	q.activate()
	var err error
	if q.agent, err = q.door.cfg.Hub.Addressed(q.r.Context(), q.proven, name); err != nil {
		return nil, err
	}
	switch q.method {
	case a2a.SendMessage, a2a.StreamMessage:
		return q.send()
	case a2a.GetTask:
		return q.get()
	case a2a.ListTasks:
		return q.list()
	case a2a.CancelTask:
		return q.cancel()
	case a2a.SubscribeTask:
		return q.subscribe()
	case a2a.ExtendedCard:
		return q.door.extended(q.r, q.proven, q.agent)
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

// send asks the agent, or gives a task of the caller the input it waits for.
func (q *methodCall) send() (any, error) {
	in, f := a2a.ReadSend(q.params, q.write.Version)
	if f != nil {
		return nil, f
	}
	if in.Push != nil { // before anything is asked
		if q.proven.Kind == ident.Portal {
			return nil, a2a.Fail(a2a.CodeForbidden, "Portals are not told of tasks; they follow them. Leave the push configuration out.")
		}
		if err := q.door.cfg.Hooks.CheckPush(q.pushDraft(*in.Push)); err != nil {
			return nil, err
		}
	}
	ctx, d, m := q.r.Context(), q.door, in.Message
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
		return nil, spent(err)
	}
	var unfit error // what the message is told that is not one sent again
	if m.TaskID != "" {
		t, err := q.task(asker.Actor, m.TaskID)
		if err != nil {
			return nil, err
		}
		if m.ContextID != "" && m.ContextID != t.ConversationID {
			return nil, &a2a.Failure{Code: a2a.CodeInvalidParams, Text: "message.contextId: is not that of the task. Leave it out, or send the task's.", Metadata: map[string]string{"field": "message.contextId"}}
		}
		unfit = unfitFor(t)
	}
	if waits := q.method == a2a.StreamMessage || !in.Immediate; waits {
		var leave func()
		if ctx, leave, err = d.cfg.Callers.BeginWait(q.r, asker.Actor); err != nil {
			return nil, err
		}
		defer leave()
	} else if _, err := d.cfg.Callers.Authenticate(q.r); err != nil { // the body may have come slowly
		return nil, err
	}
	asked, err := d.cfg.Chat.Ask(ctx, asker.Actor, chat.Ask{Agent: q.agent.Handle(), Context: m.ContextID, ClientID: m.ID, Parts: m.Parts, TaskID: m.TaskID, Face: doorName,
		Wait: q.method == a2a.SendMessage && !in.Immediate && in.Push == nil, Via: via, Budget: budget, Once: q.follows(a2a.ExtOnce)}) // who is pushed to is told each state
	if errors.Is(err, task.ErrLoop) {
		return nil, &a2a.Failure{Code: a2a.CodeInvalidRequest, Reason: "LOOP_DETECTED", Text: fault.As(err).Safe}
	}
	if errors.Is(err, task.ErrBudget) {
		return nil, spent(err)
	}
	if unfit != nil && fault.Is(err, fault.Conflict) {
		return nil, unfit
	}
	if err != nil {
		return nil, noSuch(m, err)
	}
	d.cfg.Callers.Remember(asker, asked.ConversationID)
	d.cfg.Callers.Remember(asker, asked.Task.ID)
	if asked.Task.AgentID != q.agent.ID || m.TaskID != "" && m.TaskID != asked.Task.ID { // the message was another's, said before
		return nil, errNoTask()
	}
	if in.Push != nil { // if the task has got somewhere meanwhile, that is told, too
		c := *in.Push
		c.TaskID = asked.Task.ID
		c.ID = cmp.Or(c.ID, c.TaskID) // the same when the message is sent again
		if _, err := d.cfg.Hooks.SetPush(ctx, asker.Actor, q.pushDraft(c)); err != nil {
			return nil, err
		}
	}
	how := q.detail(in.HistoryLength, true)
	switch {
	case q.method == a2a.StreamMessage:
		return nil, q.stream(ctx, asker.Actor, asked.Task, how)
	case asked.Said != nil && !asked.Task.Direct:
		v := d.told(ctx, asked.Task, asked.Said, how)
		return q.write.Event(a2a.Event{Task: &v}), nil
	case in.Immediate || !asked.Task.State.Active():
		return q.shown(asker.Actor, asked.Task, how)
	}
	t, err := q.wait(ctx, asker.Actor, asked.Task)
	if err != nil {
		return nil, err
	}
	return q.shown(asker.Actor, t, how)
}

// spent says that nothing is left of what was allowed for a question.
func spent(err error) error {
	if !errors.Is(err, task.ErrBudget) {
		return err
	}
	return &a2a.Failure{Code: a2a.CodeInvalidRequest, Reason: "BUDGET_SPENT", Text: fault.As(err).Safe}
}

// unfitFor says why a task takes no input, nil if it does.
func unfitFor(t task.Task) error {
	switch {
	case t.State.Terminal():
		return a2a.Fail(a2a.CodeUnsupported, "The task has ended. Send the message without taskId, in the same context, to ask for more.")
	case t.State.Active():
		return a2a.Fail(a2a.CodeUnsupported, "The task is being worked on and waits for nothing. Wait until it asks for input, or send the message without taskId.")
	}
	return nil
}

// noSuch tells an unknown task or context by the code of the protocol.
func noSuch(m a2a.Message, err error) error {
	switch {
	case !fault.Is(err, fault.NotFound):
		return err
	case m.TaskID != "":
		return errNoTask()
	case m.ContextID != "":
		return &a2a.Failure{Code: a2a.CodeInvalidParams, Text: "message.contextId: is no context of yours with this agent. Contexts are made here: leave it out to begin one.", Metadata: map[string]string{"field": "message.contextId"}}
	}
	return err
}

// shown is a task as SendMessage answers it.
func (q *methodCall) shown(actor ident.Actor, t task.Task, how detail) (any, error) {
	if t.Direct {
		m, err := q.door.reply(q.r.Context(), actor, t, q.follows(a2a.ExtSpeaker))
		if err != nil || m != nil {
			return q.write.Event(a2a.Event{Message: m}), err
		}
	}
	v, err := q.door.view(q.r.Context(), actor, t, how)
	if err != nil {
		return nil, err
	}
	return q.write.Event(a2a.Event{Task: &v}), nil
}

// task is a task of the actor's with this agent.
func (q *methodCall) task(actor ident.Actor, id string) (task.Task, error) {
	t, err := q.door.cfg.Chat.OwnTask(q.r.Context(), actor, id)
	if fault.Is(err, fault.NotFound) || err == nil && t.AgentID != q.agent.ID {
		return task.Task{}, errNoTask()
	}
	return t, err
}

// named reads which task is meant, and finds it and who asks.
func (q *methodCall) named() (in a2a.TaskRequest, actor ident.Actor, t task.Task, err error) {
	in, f := a2a.ReadTask(q.params)
	if f != nil {
		return in, actor, t, f
	}
	asker, err := q.door.cfg.Callers.Identify(q.r, q.proven, in.ID)
	if fault.Is(err, fault.NotFound) {
		err = errNoTask()
	}
	if err == nil {
		t, err = q.task(asker.Actor, in.ID)
	}
	return in, asker.Actor, t, err
}

func (q *methodCall) get() (any, error) {
	in, actor, t, err := q.named()
	if err != nil {
		return nil, err
	}
	v, err := q.door.view(q.r.Context(), actor, t, q.detail(in.HistoryLength, true))
	return q.write.Task(v), err
}

// list shows a page of the caller's tasks with this agent. Who has shown no
// credential and names no context of theirs has none.
func (q *methodCall) list() (any, error) {
	in, f := a2a.ReadList(q.params)
	if f != nil {
		return nil, f
	}
	from, ok := readToken(in.PageToken)
	if !ok {
		return nil, &a2a.Failure{Code: a2a.CodeInvalidParams, Text: "pageToken: is not one of this list.", Metadata: map[string]string{"field": "pageToken"}}
	}
	actor := q.proven
	if actor.ID == "" && in.ContextID != "" {
		asker, err := q.door.cfg.Callers.Identify(q.r, actor, in.ContextID)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return nil, err
		}
		actor = asker.Actor
	}
	if actor.ID == "" {
		return q.write.Tasks(nil, "", in.PageSize, 0), nil
	}
	ctx := q.r.Context()
	list, total, err := q.door.cfg.Tasks.Find(ctx, actor, task.Query{AgentID: q.agent.ID, ConversationID: in.ContextID, State: in.State, After: in.After, From: from, Limit: in.PageSize})
	if err != nil {
		return nil, err
	}
	how := q.detail(in.HistoryLength, in.Artifacts)
	if how.history == nil {
		how.history = new(int) // a list is for finding tasks
	}
	var views []a2a.Task
	for size := 0; len(views) < len(list) && size < maxListBytes; {
		v, err := q.door.view(ctx, actor, list[len(views)], how)
		if err != nil {
			return nil, err
		}
		views, size = append(views, v), size+weight(v)
	}
	next := ""
	if n := len(views); n > 0 && (n == in.PageSize || n < len(list)) {
		next = pageToken(list[n-1])
	}
	return q.write.Tasks(views, next, in.PageSize, total), nil
}

// maxListBytes is how much of tasks a page of a list holds before it ends
// early: with all that was said in them, a hundred could be gigabytes.
const maxListBytes = 4 << 20

// weight is about how many bytes what a task holds takes in memory.
func weight(t a2a.Task) int {
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

// pageToken says where the page after a task begins.
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

// cancelWait is how long a cancel waits for an agent to let go, which must
// within 500 ms.
const cancelWait = 2 * time.Second

func (q *methodCall) cancel() (any, error) {
	_, actor, t, err := q.named()
	if err != nil {
		return nil, err
	}
	ended := a2a.Fail(a2a.CodeTaskNotCancelable, "The task has ended already, so there is nothing to cancel.")
	if t.State.Terminal() {
		return nil, ended
	}
	ctx, d := q.r.Context(), q.door
	s, err := respond.Follow(ctx, d.cfg.Chat, actor, t)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	wctx, stop := context.WithTimeout(ctx, cancelWait)
	defer stop()
	for range 2 { // it may begin to wait for input at this very moment
		if err := d.cfg.Chat.StopTask(ctx, actor, t.ID, "Canceled by its caller."); err != nil {
			return nil, err
		}
		if _, err := s.Wait(wctx); err != nil && ctx.Err() != nil {
			return nil, err
		}
		if t, err = q.task(actor, t.ID); err != nil {
			return nil, err
		}
		if t.State.Terminal() {
			break
		}
	}
	if t.State.Terminal() && t.State != task.Canceled {
		return nil, ended // it was faster
	}
	v, err := d.view(ctx, actor, t, q.detail(nil, true))
	return q.write.Task(v), err
}

func (q *methodCall) subscribe() (any, error) {
	_, actor, t, err := q.named()
	if err != nil {
		return nil, err
	}
	if t.State.Terminal() && !q.replays(t) {
		return nil, a2a.Fail(a2a.CodeUnsupported, "The task has ended, so nothing more comes. Ask for it with GetTask.")
	}
	ctx, leave, err := q.door.cfg.Callers.BeginWait(q.r, actor)
	if err != nil {
		return nil, err
	}
	defer leave()
	return nil, q.stream(ctx, actor, t, q.detail(nil, true))
}

// wait follows a task until it ends or asks for something; ctx is of
// request.Callers.BeginWait.
func (q *methodCall) wait(ctx context.Context, actor ident.Actor, t task.Task) (task.Task, error) {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	answer := respond.LiftDeadlines(q.w)
	defer answer()
	s, err := respond.Follow(ctx, q.door.cfg.Chat, actor, t)
	if err != nil {
		return t, err
	}
	defer s.Close()
	end, err := s.Wait(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return q.task(actor, t.ID)
	}
	if err != nil {
		return t, err
	}
	return end.Task, nil
}
