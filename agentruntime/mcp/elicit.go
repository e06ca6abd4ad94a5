package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentsite/internal/a2a"
	"agentsite/internal/hub"
	"agentsite/internal/schema"
	"agentsite/internal/task"
)

const (
	maxQuestions = 8
	maxState     = 64 << 10 // bytes the server wants back
	maxQuestion  = 2000     // runes
)

// input is a tool call that waits for answers to what the server asked. Since
// 2026-07-28 a server asks by answering, and is called again with what it
// wants to know, so nothing is held open meanwhile.
type input struct {
	Tool      string              `json:"tool"`
	Again     bool                `json:"again,omitempty"`
	Args      json.RawMessage     `json:"args"`
	State     string              `json:"state,omitempty"`
	Questions []question          `json:"questions"`
	Answers   map[string]answerTo `json:"answers,omitempty"`
}

type question struct {
	ID      string          `json:"id"`
	Message string          `json:"message"`
	Schema  json.RawMessage `json:"schema"`
}

type answerTo struct {
	Action  string          `json:"action"`
	Content json.RawMessage `json:"content,omitempty"`
}

// serverAsks turns the server's questions into ours.
func (r *run) serverAsks(ctx context.Context, t *offered, params *sdk.CallToolParams, res *sdk.CallToolResult) (task.Result, error) {
	args, _ := params.Arguments.(json.RawMessage)
	in := &input{Tool: t.Name, Again: t.Again, Args: args, State: res.RequestState}
	if len(res.InputRequests) == 0 {
		return failed(nil, "The server is too busy for the call. Ask again in a while."), nil
	}
	if len(res.InputRequests) > maxQuestions || len(in.State) > maxState {
		return failed(nil, "The server asks for more than this portal passes on."), nil
	}
	for id, q := range res.InputRequests {
		e, ok := q.(*sdk.ElicitParams)
		if !ok || e.Mode == "url" || e.URL != "" {
			return failed(nil, "To go on the server asks for something that this portal does not offer to servers, such as the use of a model or of files."), nil
		}
		raw, err := json.Marshal(e.RequestedSchema)
		if e.RequestedSchema == nil {
			raw = json.RawMessage(anySchema)
		}
		if err != nil || len(raw) > maxSchema || schema.Check(raw) != nil || len(id) > 200 {
			return failed(nil, "The server asks for something in a form that this portal cannot show."), nil
		}
		in.Questions = append(in.Questions, question{ID: id, Message: a2a.Text(e.Message, maxQuestion), Schema: raw})
	}
	slices.SortStableFunc(in.Questions, func(a, b question) int { return strings.Compare(a.ID, b.ID) })
	return r.ask(ctx, in, nil, nil)
}

// next is the first question without an answer, or nil.
func (in *input) next() *question {
	for i := range in.Questions {
		if _, ok := in.Answers[in.Questions[i].ID]; !ok {
			return &in.Questions[i]
		}
	}
	return nil
}

// ask puts the next question to the caller.
func (r *run) ask(ctx context.Context, in *input, args json.RawMessage, wrong map[string]string) (task.Result, error) {
	q := in.next()
	if err := r.save(ctx, checkpoint{Input: in}); err != nil {
		return task.Result{}, err
	}
	var b strings.Builder
	b.WriteString(q.Message)
	if q.Message == "" {
		fmt.Fprintf(&b, "The tool `%s` asks for more.", in.Tool)
	}
	b.WriteString("\n\n")
	if len(wrong) > 0 {
		b.WriteString(list(wrong))
	} else if fields, err := schema.Fields(q.Schema); err == nil {
		for _, f := range fields {
			fmt.Fprintf(&b, "- `%s`", strings.ReplaceAll(a2a.Line(f.Path, 60), "`", "'"))
			if f.Description != "" {
				b.WriteString(": " + a2a.Line(f.Description, 160))
			}
			if len(f.Options) > 0 {
				b.WriteString(" (" + a2a.Line(strings.Join(f.Options, ", "), 200) + ")")
			}
			b.WriteByte('\n')
		}
	}
	b.WriteString("\nAnswer with `name=value`, fill in the form, or say no.")
	reason := a2a.Line(q.Message, 300)
	if reason == "" {
		reason = "The tool " + in.Tool + " asks for more"
	}
	return task.Result{
		State:  task.InputRequired,
		Parts:  []task.Part{task.TextPart(b.String()), asForm(in.Tool, q.ID, q.Schema, args, wrong)},
		Reason: reason + ended(reason),
	}, nil
}

// replied goes on with a call whose question was answered.
func (r *run) replied(ctx context.Context) (task.Result, error) {
	in := r.at.Input
	q := in.next()
	// After a restart the answers are all there: the call was sent with them.
	if q != nil {
		a, wrong := q.read(r.call.Parts)
		if len(wrong) > 0 {
			return r.ask(ctx, in, a.Content, wrong)
		}
		if in.Answers == nil {
			in.Answers = make(map[string]answerTo)
		}
		in.Answers[q.ID] = a
		if in.next() != nil {
			return r.ask(ctx, in, nil, nil)
		}
	}
	responses := make(sdk.InputResponseMap)
	for id, a := range in.Answers {
		res := &sdk.ElicitResult{Action: a.Action}
		if a.Action == "accept" && json.Unmarshal(a.Content, &res.Content) != nil {
			res.Action = "cancel"
		}
		responses[id] = res
	}
	t := find(r.tools, in.Tool)
	if t == nil {
		t = &offered{Tool: hub.Tool{Name: in.Tool}, Again: in.Again}
	}
	return r.use(ctx, t, &sdk.CallToolParams{Name: in.Tool, Arguments: in.Args, InputResponses: responses, RequestState: in.State}, in)
}

// read takes an answer out of what was said: a form's data, pairs, a no, or
// a text where one thing was asked for.
func (q *question) read(parts []task.Part) (answerTo, map[string]string) {
	for _, p := range parts {
		var d struct {
			Action    string          `json:"action"`
			Arguments json.RawMessage `json:"arguments"`
		}
		if len(p.Data) == 0 || json.Unmarshal(p.Data, &d) != nil {
			continue
		}
		if d.Action == "decline" || d.Action == "cancel" {
			return answerTo{Action: d.Action}, nil
		}
		if len(d.Arguments) > 0 {
			return answerTo{Action: "accept", Content: d.Arguments}, schema.Validate(q.Schema, d.Arguments)
		}
	}
	text := textOf(parts)
	t := &offered{Tool: hub.Tool{InputSchema: q.Schema}}
	fields, err := schema.Fields(q.Schema)
	if err != nil {
		return answerTo{Action: "cancel"}, nil
	}
	given, ok := pairs(t, text)
	lone := len(fields) == 1
	if !ok && lone {
		given, ok = map[string]string{fields[0].Path: text}, text != ""
	}
	if !ok && strings.HasPrefix(text, "{") && json.Valid([]byte(text)) {
		return answerTo{Action: "accept", Content: json.RawMessage(text)}, schema.Validate(q.Schema, json.RawMessage(text))
	}
	// No is an answer to a question of yes or no, and else a refusal.
	if no := declined(text); no && !(lone && (fields[0].Type == schema.Boolean || slices.Contains(fields[0].Options, text))) {
		return answerTo{Action: "decline"}, nil
	}
	if len(fields) == 0 {
		return answerTo{Action: "accept", Content: json.RawMessage("{}")}, nil
	}
	if !ok {
		given = nil
	}
	args, wrong, err := schema.FromForm(q.Schema, func(p string) (string, bool) { return given[p], true })
	if err != nil {
		return answerTo{Action: "cancel"}, nil
	}
	if len(given) == 0 && len(wrong) == 0 {
		wrong = map[string]string{"": "write the answers as name=value"}
	}
	return answerTo{Action: "accept", Content: args}, wrong
}

func declined(text string) bool {
	switch strings.ToLower(strings.Trim(text, " .!")) {
	case "no", "decline", "cancel", "no thanks", "stop":
		return true
	}
	return false
}
