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
	maxState     = 64 << 10 // bytes of the opaque state that the server gets back with the answers
	maxQuestion  = 2000     // runes of one question
)

// input is a tool call that waits for answers to the server's questions. Since 2026-07-28 a server asks
// by answering the call, and is called again with the answers, so no connection stays open in between.
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

// serverAsks stores the questions of the server and asks the caller the first one. Questions that this
// portal cannot show fail the task.
func (r *run) serverAsks(ctx context.Context, t *offered, params *sdk.CallToolParams,
	res *sdk.CallToolResult) (task.Result, error) {
	args, _ := params.Arguments.(json.RawMessage)
	in := &input{Tool: t.Name, Again: t.Again, Args: args, State: res.RequestState}
	if len(res.InputRequests) == 0 {
		return failedResult(nil, "The server is too busy for the call. Ask again in a while."), nil
	}
	if len(res.InputRequests) > maxQuestions || len(in.State) > maxState {
		return failedResult(nil, "The server asks for more than this portal passes on."), nil
	}
	for id, q := range res.InputRequests {
		e, ok := q.(*sdk.ElicitParams)
		if !ok || e.Mode == "url" || e.URL != "" {
			return failedResult(nil, "To go on the server asks for something that this portal does not offer to "+
				"servers, such as the use of a model or of files."), nil
		}
		raw, err := json.Marshal(e.RequestedSchema)
		if e.RequestedSchema == nil {
			raw = json.RawMessage(anySchema)
		}
		if err != nil || len(raw) > maxSchema || schema.Check(raw) != nil || len(id) > 200 {
			return failedResult(nil, "The server asks for something in a form that this portal cannot show."), nil
		}
		in.Questions = append(in.Questions, question{ID: id, Message: a2a.Text(e.Message, maxQuestion), Schema: raw})
	}
	slices.SortStableFunc(in.Questions, func(a, b question) int { return strings.Compare(a.ID, b.ID) })
	return r.askQuestion(ctx, in, nil, nil)
}

// nextQuestion returns the first question without an answer, or nil if all are answered.
func (in *input) nextQuestion() *question {
	for i := range in.Questions {
		if _, ok := in.Answers[in.Questions[i].ID]; !ok {
			return &in.Questions[i]
		}
	}
	return nil
}

// askQuestion asks the caller the next question. args and wrong are an earlier answer and the problems
// with its fields, nil for none.
func (r *run) askQuestion(ctx context.Context, in *input, args json.RawMessage, wrong map[string]string) (task.Result,
	error) {
	q := in.nextQuestion()
	if err := r.saveCheckpoint(ctx, checkpoint{Input: in}); err != nil {
		return task.Result{}, err
	}
	var b strings.Builder
	b.WriteString(q.Message)
	if q.Message == "" {
		fmt.Fprintf(&b, "The tool `%s` asks for more.", in.Tool)
	}
	b.WriteString("\n\n")
	if len(wrong) > 0 {
		b.WriteString(listProblems(wrong))
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
		Reason: reason + missingStop(reason),
	}, nil
}

// continueInput takes the caller's answer, and calls the tool again once no question is open.
func (r *run) continueInput(ctx context.Context) (task.Result, error) {
	in := r.at.Input
	q := in.nextQuestion()
	// q is nil after a restart that interrupted the call with all answers: send it again.
	if q != nil {
		a, wrong := q.readAnswer(r.call.Parts)
		if len(wrong) > 0 {
			return r.askQuestion(ctx, in, a.Content, wrong)
		}
		if in.Answers == nil {
			in.Answers = make(map[string]answerTo)
		}
		in.Answers[q.ID] = a
		if in.nextQuestion() != nil {
			return r.askQuestion(ctx, in, nil, nil)
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
	t := findTool(r.tools, in.Tool)
	if t == nil {
		t = &offered{Tool: hub.Tool{Name: in.Tool}, Again: in.Again}
	}
	return r.useTool(ctx, t, &sdk.CallToolParams{Name: in.Tool, Arguments: in.Args, InputResponses: responses,
		RequestState: in.State}, in)
}

// readAnswer reads an answer from the message: the data of a form, pairs, a no, or a plain text if the
// question has one field. The map holds problems by field; the answer counts only if it is empty.
func (q *question) readAnswer(parts []task.Part) (answerTo, map[string]string) {
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
	given, ok := parsePairs(t, text)
	lone := len(fields) == 1
	if !ok && lone {
		given, ok = map[string]string{fields[0].Path: text}, text != ""
	}
	if !ok && strings.HasPrefix(text, "{") && json.Valid([]byte(text)) {
		return answerTo{Action: "accept", Content: json.RawMessage(text)},
			schema.Validate(q.Schema, json.RawMessage(text))
	}
	// A no is the value of a question with one boolean or listed field, and declines any other question.
	if no := isRefusal(text); no && !(lone &&
		(fields[0].Type == schema.Boolean || slices.Contains(fields[0].Options, text))) {
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

func isRefusal(text string) bool {
	switch strings.ToLower(strings.Trim(text, " .!")) {
	case "no", "decline", "cancel", "no thanks", "stop":
		return true
	}
	return false
}
