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

// ConversationHeader names the conversation of a call: the answer carries it, and a call that sends
// it back continues there.
const ConversationHeader = "X-Conversation-Id"

// idempotencyHeader is the key of a call. A second call with the same key and conversation waits for the
// first call's answer instead of asking again.
const idempotencyHeader = "Idempotency-Key"

// longest bounds a call: 15 minutes, the limit of agents, plus some time in the queue.
const longest = 20 * time.Minute

// stopTimeout bounds the cancellation of a task after its caller has disconnected.
const stopTimeout = 10 * time.Second

// call is one chat completion that is being answered.
type call struct {
	*server
	in    completionRequest
	actor ident.Actor
	asked chat.Asked
	id    string
	since int64 // time of the call in Unix seconds
	// promptTokens is the estimated number of tokens that the agent received.
	promptTokens int
	over         bool // the task has ended or waits for input, so that it need not be canceled
}

func (d *server) completeChat(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	c := call{server: d, since: clock.Now().Unix()}
	if err := request.DecodeJSON(w, r, maxBody, &c.in, false); err != nil {
		return err
	}
	if err := c.in.check(); err != nil {
		return err
	}
	parts, err := c.in.questionParts()
	if err != nil {
		return err
	}
	via, err := request.ReadChain(r)
	if err != nil {
		return err
	}
	budget, err := request.ReadBudget(r, actor)
	if err != nil {
		return notFound(err, "")
	}
	room := r.Header.Get(ConversationHeader)
	asker, err := d.Callers.Identify(r, actor, room)
	if err != nil {
		return notFound(err, room)
	}
	c.actor = asker.Actor
	ctx, leave, err := d.Callers.BeginWait(r, c.actor)
	if err != nil {
		return err
	}
	defer leave()
	ask := chat.Ask{Agent: agentName(c.in.Model), Context: room,
		ClientID: cmp.Or(r.Header.Get(idempotencyHeader), ident.NewID()), Parts: parts, Face: "openai", Via: via,
		Budget: budget, Wait: true}
	if room == "" {
		ask.Before = c.in.textBefore(c.actor)
	}
	c.promptTokens = countTokens(ask.Before) + countTokens(task.PlainText(parts))
	if c.asked, err = d.Chat.Ask(r.Context(), c.actor, ask); err != nil {
		return notFound(err, room)
	}
	c.id = "chatcmpl-" + c.asked.Task.ID
	d.Callers.Remember(asker, c.asked.ConversationID)
	w.Header().Set(ConversationHeader, c.asked.ConversationID)
	return c.sendAnswer(ctx, w, r)
}

// notFound converts an error of asking the agent to the API's form. room is the conversation that the
// request named, "" for none: it decides whether NotFound means the conversation or the model.
func notFound(err error, room string) error {
	f := fault.As(err)
	switch {
	case errors.Is(err, task.ErrLoop):
		return &problem{status: http.StatusBadRequest, once: true,
			body: wire.Error{Type: invalidRequest, Code: "loop_detected", Message: f.Safe}}
	case errors.Is(err, task.ErrBudget):
		return &problem{status: http.StatusBadRequest, once: true,
			body: wire.Error{Type: invalidRequest, Code: "budget_spent", Message: f.Safe}}
	case f.Kind == fault.NotFound && room != "":
		return &problem{status: http.StatusNotFound,
			body: wire.Error{Type: invalidRequest, Param: ConversationHeader, Code: "conversation_not_found",
				Message: f.Safe}}
	case f.Kind == fault.NotFound:
		return noModel(err)
	case f.Kind == fault.Invalid && (f.Fields["text"] != "" || f.Fields["parts"] != "" || f.Fields["before"] != ""):
		return wrong("messages", f.Safe)
	case f.Kind == fault.Invalid && f.Fields["client_id"] != "":
		return wrong(idempotencyHeader, f.Safe)
	}
	return err
}

// sendAnswer follows the task and sends the answer. If the caller disconnects, the task is stopped,
// because this API has no other way to stop it. Repeated calls wait for the same task, which the
// last of them stops.
func (c *call) sendAnswer(ctx context.Context, w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	last := c.waiting.enterCall(c.asked.Task.ID)
	s, err := respond.FollowAsked(ctx, c.Chat, c.actor, c.asked)
	if err == nil {
		defer s.Close()
		if c.in.Stream {
			err = c.sendStream(ctx, w, r, s)
		} else {
			err = c.sendWhole(ctx, w, r, s)
		}
	}
	if last() && !c.over && (errors.Is(err, errGone) || ctx.Err() != nil) {
		c.stopTask(r.Context())
	}
	if errors.Is(err, errGone) {
		return nil // the caller has disconnected, so no answer can be sent
	}
	return err
}

// errGone means that the caller has disconnected before the answer ended.
var errGone = errors.New("the caller went away")

func (c *call) stopTask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := c.Chat.StopTask(ctx, c.actor, c.asked.Task.ID,
		"Stopped: the caller has closed the connection."); err != nil && !fault.Is(err, fault.NotFound) {
		c.Log.Warn("stop a task whose caller went away", "task", c.asked.Task.ID, "error", err)
	}
}

// endError returns the error for the caller if the task could not be followed to its end: a timeout, a
// revoked credential, or err.
func (c *call) endError(ctx context.Context, r *http.Request, err error) error {
	switch {
	case r.Context().Err() != nil:
		return errGone
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &problem{status: http.StatusGatewayTimeout, once: true,
			body: wire.Error{Type: serverError, Code: "timeout",
				Message: "The agent did not answer within 20 minutes, so the work was stopped."}}
	case ctx.Err() != nil:
		return fault.New(fault.Unauthenticated, "The credential of this call has ended.")
	}
	return err
}

// taskError returns the error for a task that ended without an answer, nil for a task with one. A task
// that waits for input counts as answered, because its question is the answer's text.
func taskError(end respond.End) error {
	p := &problem{once: true, body: wire.Error{Type: serverError,
		Message: cmp.Or(end.Task.Reason, "The agent gave no answer.")}}
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
		p.body.Message = end.Text // the agent's explanation
	}
	return p
}

// sendWhole answers with one object after the task has ended, for clients that do not stream.
func (c *call) sendWhole(ctx context.Context, w http.ResponseWriter, r *http.Request, s *respond.Stream) error {
	respond.LiftDeadlines(w)
	end, err := s.Wait(ctx)
	respond.SetWriteDeadline(w)
	if err != nil {
		return c.endError(ctx, r, err)
	}
	c.over = true
	if err := taskError(end); err != nil {
		return err
	}
	text := end.Text + c.extraText(end)
	return respond.WriteJSON(w, http.StatusOK,
		wire.ChatResponse{ID: c.id, Object: "chat.completion", Created: c.since, Model: c.asked.Task.AgentHandle,
			Usage: c.estimateUsage(text),
			Choices: []wire.Choice{{Message: wire.Message{Role: wire.Assistant, Content: wire.Content(text)},
				FinishReason: wire.FinishStop}}})
}

// extraText returns the parts of an answer besides its text: artifacts as text, and links to files, which
// need a browser session with permission.
func (c *call) extraText(end respond.End) string {
	var out []string
	add := func(parts []task.Part) {
		for _, p := range parts {
			if strings.HasPrefix(p.URL, task.FilePath) {
				out = append(out, "["+linkLabel(cmp.Or(p.Filename, "file"))+"]("+c.URL+p.URL+")")
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
			out = append(out, "**"+linkLabel(a.Name)+"**")
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

func linkLabel(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune("[]()*_<>`\\", r) {
			return '-'
		}
		return r
	}, s)
}

// estimateUsage returns estimated token counts, because agents do not report theirs and may not use a
// model.
func (c *call) estimateUsage(text string) *wire.Usage {
	said := countTokens(text)
	return &wire.Usage{PromptTokens: c.promptTokens, CompletionTokens: said, TotalTokens: c.promptTokens + said}
}

// countTokens estimates the number of tokens of a text: one for four bytes.
func countTokens(s string) int { return (len(s) + 3) / 4 }
