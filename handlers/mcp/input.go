package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"agentsite/handlers/mcp/endpoint"
	"agentsite/handlers/request"
	"agentsite/internal/a2a"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/strictjson"
	"agentsite/internal/task"
)

// inputKey returns the key of the question in a message of an agent. It is unique within a task.
func inputKey(seq int64) string { return "input-" + strconv.FormatInt(seq, 10) }

// maxQuestion bounds the question that the client shows to its user, in runes.
const maxQuestion = 4000

// answerField is the form field for the answer to a question that has no form of its own.
const answerField = "answer"

// plainSchema is the form for a question that has none: one text field.
var plainSchema = json.RawMessage(`{"type":"object","properties":{"answer":{"type":"string","title":"Answer","minLength":1}},"required":["answer"]}`)

// elicitInput converts the question in an agent's message to an elicitation, which the client shows to
// its user.
func elicitInput(t task.Task, m chat.Message) endpoint.Request {
	form := formOf(m)
	if form == nil {
		form = plainSchema
	}
	text := a2a.Text(task.PlainText(wordsOf(m)), maxQuestion)
	return endpoint.Request{Method: "elicitation/create", Params: map[string]any{
		"mode": "form", "message": cmp.Or(text, t.Reason, t.AgentHandle+" waits for input."), "requestedSchema": form}}
}

func wordsOf(m chat.Message) []task.Part {
	return slices.DeleteFunc(slices.Clone(m.Parts), func(p task.Part) bool { return p.Text == "" })
}

// formOf returns the JSON schema of the form in an agent's message, nil if there is none or clients
// cannot show it (isFlat).
func formOf(m chat.Message) json.RawMessage {
	for _, p := range m.Parts {
		o, _ := strictjson.Split(p.Data)
		if tool, ok := o.Text("tool"); !ok || tool == "" {
			continue
		}
		if s, ok := strictjson.Split(o.Get("schema")); ok && isFlat(s) {
			return o.Get("schema")
		}
	}
	return nil
}

// isFlat reports whether elicitation supports a schema: an object with simple fields only.
func isFlat(s strictjson.Object) bool {
	for _, m := range s {
		if !slices.Contains([]string{"type", "properties", "required", "title", "description", "$schema"}, m.Name) {
			return false
		}
	}
	props, ok := s.Object("properties")
	if kind, _ := s.Text("type"); kind != "object" || !ok || len(props) == 0 || len(props) > 32 {
		return false
	}
	for _, p := range props {
		f, ok := strictjson.Split(p.Value)
		kind, _ := f.Text("type")
		if !ok || !slices.Contains([]string{"string", "number", "integer", "boolean"}, kind) {
			return false
		}
		for _, m := range f {
			if !slices.Contains([]string{"type", "title", "description", "default", "enum", "enumNames", "minLength",
				"maxLength", "minimum", "maximum", "format"}, m.Name) {
				return false
			}
		}
	}
	return true
}

// reply is a user's answer to an elicitation: the parts for the agent, or a refusal.
type reply struct {
	parts []task.Part
	no    bool
}

// readReply decodes the result of an elicitation for the question m. ok is false if the result contains
// no valid answer.
func readReply(raw json.RawMessage, m chat.Message) (r reply, ok bool) {
	o, ok := strictjson.Split(raw)
	if !ok {
		return r, false
	}
	action, _ := o.Text("action")
	form := formOf(m) != nil
	switch {
	case action == "decline" || action == "cancel":
		if !form {
			return reply{no: true}, true
		}
		r.parts = []task.Part{{Data: json.RawMessage(`{"action":"` + action + `"}`), MediaType: "application/json"}}
		return r, true
	case action != "accept":
		return r, false
	}
	content, ok := strictjson.Split(o.Get("content"))
	if !ok {
		return r, false
	}
	if form {
		data := append(append([]byte(`{"action":"accept","arguments":`), o.Get("content")...), '}')
		r.parts = []task.Part{{Data: data, MediaType: "application/json"}}
		return r, true
	}
	text, ok := content.Text(answerField)
	r.parts = []task.Part{task.TextPart(text)}
	return r, ok && strings.TrimSpace(text) != ""
}

// resumeCall continues a call that waited for input, with the answers that the client sent. The sealed
// state names the task and the question.
func (d *Handler) resumeCall(ctx context.Context, c *endpoint.Call) (endpoint.Result, error) {
	state, err := c.Unseal()
	if err != nil {
		return endpoint.Result{}, err
	}
	id, at, _ := strings.Cut(state, " ")
	seq, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return endpoint.Result{}, err // impossible, because the sealed state was made by this portal
	}
	asker, err := d.cfg.Callers.Identify(c.HTTP, c.Actor, id)
	if err != nil {
		return readableError(err)
	}
	ctx, leave, err := d.cfg.Callers.BeginWait(c.HTTP.WithContext(ctx), asker.Actor)
	if err != nil {
		return endpoint.Result{}, err
	}
	defer leave()
	t, err := d.cfg.Chat.OwnTask(ctx, asker.Actor, id)
	if err != nil {
		return readableError(err)
	}
	asked, err := d.giveAnswer(ctx, c, asker.Actor, t, seq, c.Inputs[inputKey(seq)])
	if err != nil {
		return readableError(err)
	}
	return d.followCall(ctx, c, asker.Actor, asked)
}

// giveAnswer sends a task the user's answer to the question in message seq. A missing answer, or one to a
// question that no longer waits, changes nothing. The same answer twice counts once.
func (d *Handler) giveAnswer(ctx context.Context, c *endpoint.Call, actor ident.Actor, t task.Task, seq int64,
	raw json.RawMessage) (task.Task, error) {
	if raw == nil || t.State.Terminal() {
		return t, nil
	}
	m, err := d.cfg.Chat.Message(ctx, actor, t.ConversationID, seq)
	if err != nil || m.TaskID != t.ID {
		return t, err
	}
	r, ok := readReply(raw, m)
	switch {
	case !ok:
		return t, nil // an unusable answer: the caller asks the question again
	case r.no:
		if t.AnswerSeq != seq || t.State.Active() {
			return t, nil
		}
		t.MessageSeq = seq // so that the result contains only messages after the question
		return t, d.cfg.Chat.StopTask(ctx, actor, t.ID, "The user gave no answer.")
	}
	via, err := request.ReadChain(c.HTTP)
	if err != nil {
		return t, err
	}
	budget, err := request.ReadBudget(c.HTTP, actor)
	if err != nil {
		return t, err
	}
	asked, err := d.cfg.Chat.Ask(ctx, actor, chat.Ask{Agent: t.AgentHandle, TaskID: t.ID, Via: via, Budget: budget,
		ClientID: "mcp-" + inputKey(seq), Parts: r.parts, Face: endpointName})
	if fault.Is(err, fault.Conflict) { // the question was answered at another place meanwhile
		return d.cfg.Chat.Task(ctx, actor, t.ID)
	}
	if err != nil {
		return t, err
	}
	return asked.Task, nil
}
