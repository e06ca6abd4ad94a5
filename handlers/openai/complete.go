package openai

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	wire "agentsite/internal/openai"
	"agentsite/internal/task"
)

// ConversationHeader names the conversation a call belongs to: the answer
// carries it, and a call that sends it back goes on there.
const ConversationHeader = "X-Conversation-Id"

// idempotencyHeader makes a call that is sent again in a conversation harmless.
const idempotencyHeader = "Idempotency-Key"

// longest is how long a call may take: the 15 minutes an agent has, and a
// while in the queue.
const longest = 20 * time.Minute

// stopTimeout bounds the stopping of work whose caller is gone.
const stopTimeout = 10 * time.Second

// call is one request on its way.
type call struct {
	*door
	in    completionRequest
	actor ident.Actor
	asked chat.Asked
	id    string
	since int64 // Unix seconds
	// told is about how many tokens the agent was told.
	told int
	over bool // the task has ended, or waits for the caller
}

// complete answers POST /chat/completions.
func (d *door) complete(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	c := call{door: d, since: clock.Now().Unix()}
	if err := request.DecodeJSON(w, r, maxBody, &c.in, false); err != nil {
		return err
	}
	if err := c.in.check(); err != nil {
		return err
	}
	parts, err := c.in.question()
	if err != nil {
		return err
	}
	via, err := request.ReadChain(r)
	if err != nil {
		return err
	}
	budget, err := request.ReadBudget(r, actor)
	if err != nil {
		return noRoom(err, "")
	}
	room := r.Header.Get(ConversationHeader)
	asker, err := d.Callers.Identify(r, actor, room)
	if err != nil {
		return noRoom(err, room)
	}
	c.actor = asker.Actor
	ctx, leave, err := d.Callers.BeginWait(r, c.actor)
	if err != nil {
		return err
	}
	defer leave()
	ask := chat.Ask{Agent: agentName(c.in.Model), Context: room, ClientID: cmp.Or(r.Header.Get(idempotencyHeader), ident.NewID()), Parts: parts, Face: "openai", Via: via, Budget: budget, Wait: true}
	if room == "" {
		ask.Before = c.in.before(c.actor)
	}
	c.told = tokens(ask.Before) + tokens(task.PlainText(parts))
	if c.asked, err = d.Chat.Ask(r.Context(), c.actor, ask); err != nil {
		return noRoom(err, room)
	}
	c.id = "chatcmpl-" + c.asked.Task.ID
	d.Callers.Remember(asker, c.asked.ConversationID)
	w.Header().Set(ConversationHeader, c.asked.ConversationID)
	return c.answer(ctx, w, r)
}

// noRoom says in the API's words what is not there: the conversation, if one
// was named, else the model.
func noRoom(err error, room string) error {
	f := fault.As(err)
	switch {
	case errors.Is(err, task.ErrLoop):
		return &problem{status: http.StatusBadRequest, once: true, body: wire.Error{Type: invalidRequest, Code: "loop_detected", Message: f.Safe}}
	case errors.Is(err, task.ErrBudget):
		return &problem{status: http.StatusBadRequest, once: true, body: wire.Error{Type: invalidRequest, Code: "budget_spent", Message: f.Safe}}
	case f.Kind == fault.NotFound && room != "":
		return &problem{status: http.StatusNotFound, body: wire.Error{Type: invalidRequest, Param: ConversationHeader, Code: "conversation_not_found", Message: f.Safe}}
	case f.Kind == fault.NotFound:
		return noModel(err)
	case f.Kind == fault.Invalid && (f.Fields["text"] != "" || f.Fields["parts"] != "" || f.Fields["before"] != ""):
		return wrong("messages", f.Safe)
	case f.Kind == fault.Invalid && f.Fields["client_id"] != "":
		return wrong(idempotencyHeader, f.Safe)
	}
	return err
}

// answer follows the task and tells the caller of it. Work whose caller went
// away is stopped: in this API the connection is all there is to stop it by.
// Calls that repeat one wait for the same work, which the last of them stops.
func (c *call) answer(ctx context.Context, w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	last := c.waiting.enter(c.asked.Task.ID)
	s, err := respond.FollowAsked(ctx, c.Chat, c.actor, c.asked)
	if err == nil {
		defer s.Close()
		if c.in.Stream {
			err = c.stream(ctx, w, r, s)
		} else {
			err = c.whole(ctx, w, r, s)
		}
	}
	if last() && !c.over && (errors.Is(err, errGone) || ctx.Err() != nil) {
		c.stop(r.Context())
	}
	if errors.Is(err, errGone) {
		return nil // there is nobody to tell
	}
	return err
}

// errGone says that nobody reads the answer any more.
var errGone = errors.New("the caller went away")

func (c *call) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := c.Chat.StopTask(ctx, c.actor, c.asked.Task.ID, "Stopped: who asked has closed the connection."); err != nil && !fault.Is(err, fault.NotFound) {
		c.Log.Warn("stop a task whose caller went away", "task", c.asked.Task.ID, "error", err)
	}
}

// ended is what the caller is told when following ended before the task did.
func (c *call) ended(ctx context.Context, r *http.Request, err error) error {
	switch {
	case r.Context().Err() != nil:
		return errGone
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &problem{status: http.StatusGatewayTimeout, once: true, body: wire.Error{Type: serverError, Code: "timeout", Message: "The agent did not answer within 20 minutes, so the work was stopped."}}
	case ctx.Err() != nil:
		return fault.New(fault.Unauthenticated, "The credential of this call has ended.")
	}
	return err
}

// failed is how a task ended that has no answer, nil for one that has. A
// question back to the caller is an answer here.
func failed(end respond.End) error {
	p := &problem{once: true, body: wire.Error{Type: serverError, Message: cmp.Or(end.Task.Reason, "The agent gave no answer.")}}
	switch end.Task.State {
	case task.Failed:
		p.status, p.body.Code = http.StatusBadGateway, "agent_failed"
	case task.Rejected:
		p.status, p.body.Code, p.body.Type = http.StatusUnprocessableEntity, "agent_refused", invalidRequest
	case task.Canceled:
		p.status, p.body.Code = http.StatusConflict, "task_canceled"
	default:
		return nil
	}
	if p.body.Code != "task_canceled" && end.Text != "" && end.Task.Reason == "" {
		p.body.Message = end.Text // it says why in its own words
	}
	return p
}

// whole answers with one object when the task has ended.
func (c *call) whole(ctx context.Context, w http.ResponseWriter, r *http.Request, s *respond.Stream) error {
	ready := respond.LiftDeadlines(w)
	end, err := s.Wait(ctx)
	ready()
	if err != nil {
		return c.ended(ctx, r, err)
	}
	c.over = true
	if err := failed(end); err != nil {
		return err
	}
	text := end.Text + c.extra(end)
	return respond.WriteJSON(w, http.StatusOK, wire.ChatResponse{ID: c.id, Object: "chat.completion", Created: c.since, Model: c.asked.Task.AgentHandle, Usage: c.usage(text),
		Choices: []wire.Choice{{Message: wire.Message{Role: wire.Assistant, Content: wire.Content(text)}, FinishReason: wire.FinishStop}}})
}

// extra is what an answer has beside its text, as text: artifacts, and where
// its files are: at the address that a browser opens for those who may.
func (c *call) extra(end respond.End) string {
	var out []string
	add := func(parts []task.Part) {
		for _, p := range parts {
			if strings.HasPrefix(p.URL, task.FilePath) {
				out = append(out, "["+label(cmp.Or(p.Filename, "file"))+"]("+c.URL+p.URL+")")
			}
		}
	}
	var answer []task.Part
	if end.Message.Kind == chat.Text {
		answer = end.Message.Parts
	}
	add(answer)
	for _, a := range task.WithoutAnswer(end.Task.Artifacts, answer) {
		if a.Name != "" {
			out = append(out, "**"+label(a.Name)+"**")
		}
		var words []task.Part
		for _, p := range a.Parts {
			if !strings.HasPrefix(p.URL, task.FilePath) {
				words = append(words, p)
			}
		}
		if text := task.PlainText(words); text != "" {
			out = append(out, text)
		}
		add(a.Parts)
	}
	if len(out) == 0 {
		return ""
	}
	text := strings.Join(out, "\n\n")
	if end.Text != "" {
		text = "\n\n" + text
	}
	return text
}

// label is a name where Markdown would read marks.
func label(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune("[]()*_<>`\\", r) {
			return '-'
		}
		return r
	}, s)
}

// usage is an estimate: what runs an agent does not say what it used, and may
// be no model at all.
func (c *call) usage(text string) *wire.Usage {
	said := tokens(text)
	return &wire.Usage{PromptTokens: c.told, CompletionTokens: said, TotalTokens: c.told + said}
}

// tokens is about how many tokens a text has: one for four bytes.
func tokens(s string) int { return (len(s) + 3) / 4 }
