package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"agentsite/internal/strictjson"
)

// maxRounds bounds how often one call may request input from its client on a stream.
const maxRounds = 32

// maxInputs bounds the answers that a client sends with one call.
const maxInputs = 32

// outcome is the result of a function of an Offer: the encoded answer, the input that is needed first, or
// a task that continues.
type outcome struct {
	body  json.RawMessage
	wants *Wants
	task  *Task
}

// runCall runs a function that may take long. If the function needs input, the answer asks the client to
// repeat the call with it; before 2026-07-28 the client is asked on the stream and the function runs
// again.
func (s *Server) runCall(ctx context.Context, cancel context.CancelCauseFunc, m *message, c *Call, x *exchange,
	do func(context.Context, *Call) (outcome, error)) (json.RawMessage, error) {
	if p := c.readInputs(); p != nil {
		return nil, p
	}
	if !c.Modern() {
		if key := x.callKey(m.id); key != "" {
			defer x.endpoint.pending.addCall(key, cancel)()
		}
	}
	c.reply.keepAlive()
	for range maxRounds {
		out, err := do(ctx, c)
		if _, cancelled := context.Cause(ctx).(errCancelled); cancelled {
			return nil, errSilent
		}
		switch {
		case err != nil:
			return nil, err
		case out.task != nil:
			if !c.Client.Tasks {
				return nil, missingTasks()
			}
			t := out.task.asJSON(c.Version, false)
			t.ResultType, t.Meta = "task", s.serverMeta
			return encodeJSON(t), nil
		case out.wants == nil:
			return out.body, nil
		}
		for _, q := range out.wants.Requests {
			if !c.Client.Can(q.Method) {
				return nil, missingCapability(map[string]any{capabilityOf(q.Method): struct{}{}})
			}
		}
		if c.Modern() {
			return encodeJSON(struct {
				ResultType string             `json:"resultType"`
				Requests   map[string]Request `json:"inputRequests,omitempty"`
				State      string             `json:"requestState,omitempty"`
				Meta       json.RawMessage    `json:"_meta"`
			}{"input_required", out.wants.Requests, out.wants.State, s.serverMeta}), nil
		}
		c.State, c.Inputs = out.wants.State, make(map[string]json.RawMessage)
		for key, q := range out.wants.Requests {
			answer, err := x.endpoint.pending.askClient(ctx, c.reply, callerKey(c.Actor), q)
			switch {
			case errors.Is(err, errClientRefused) && q.Method == "elicitation/create":
				answer = json.RawMessage(`{"action":"cancel"}`)
			case err != nil && !errors.Is(err, errClientRefused):
				return nil, err
			}
			c.Inputs[key] = answer
		}
	}
	return nil, &Problem{Code: CodeInternal, Message: "The call asked for input " + strconv.Itoa(maxRounds) +
		" times and is given up."}
}

// readInputs decodes the state and the answers of a repeated call.
func (c *Call) readInputs() *Problem {
	if !c.Modern() {
		return nil
	}
	var ok bool
	if c.State, ok = c.Params.Text("requestState"); !ok || len(c.State) > maxState {
		return Wrong("requestState: send the value that you got, unchanged.")
	}
	raw := c.Params.Get("inputResponses")
	if raw == nil {
		return nil
	}
	c.Inputs, ok = readInputs(raw)
	if !ok {
		return Wrong("inputResponses: send an object with an answer, itself an object, for each key of inputRequests.")
	}
	return nil
}

func readInputs(raw json.RawMessage) (map[string]json.RawMessage, bool) {
	o, ok := strictjson.Split(raw)
	if !ok || len(o) > maxInputs {
		return nil, false
	}
	out := make(map[string]json.RawMessage, len(o))
	for _, m := range o {
		if m.Value[0] != '{' {
			return nil, false
		}
		out[m.Name] = m.Value
	}
	return out, true
}

// readArguments decodes the name and the arguments of a tool or prompt.
func (c *Call) readArguments() *Problem {
	c.Raw = c.Params.Get("arguments")
	if c.Raw == nil || string(c.Raw) == "null" {
		c.Raw = json.RawMessage("{}")
	}
	var ok bool
	if c.Arguments, ok = strictjson.Split(c.Raw); !ok {
		return Wrong("arguments: use an object.")
	}
	return nil
}

func (s *Server) callTool(ctx context.Context, c *Call) (outcome, error) {
	t := s.tools[c.Name]
	if t == nil {
		return outcome{}, Wrong("There is no tool " + cutText(c.Name, 80) + " here. tools/list has those that are.")
	}
	if p := c.readArguments(); p != nil {
		return outcome{}, p
	}
	if c.Modern() && len(t.bindings) > 0 {
		if p := checkParams(c.HTTP.Header, t.bindings, c.Arguments); p != nil {
			return outcome{}, p
		}
	}
	if t.TaskOnly && !c.Client.Tasks {
		return outcome{}, missingTasks()
	}
	res, err := t.Run(ctx, c)
	if err != nil {
		return outcome{}, err
	}
	if res.Wants != nil || res.Task != nil {
		return outcome{wants: res.Wants, task: res.Task}, nil
	}
	return outcome{body: res.encodeBody(c.Version, s.metaOf(c))}, nil
}

// metaOf returns the _meta of results: since 2026-07-28 it identifies the server; nil before.
func (s *Server) metaOf(c *Call) json.RawMessage {
	if c.Modern() {
		return s.serverMeta
	}
	return nil
}

func (s *Server) getPrompt(ctx context.Context, c *Call) (outcome, error) {
	p := s.prompts[c.Name]
	if p == nil {
		return outcome{}, Wrong("There is no prompt " + cutText(c.Name, 80) + " here. prompts/list has those that are.")
	}
	if p := c.readArguments(); p != nil {
		return outcome{}, p
	}
	for _, a := range p.Arguments {
		if v, ok := c.Arguments.Text(a.Name); !ok || a.Required && v == "" && c.Arguments.Get(a.Name) == nil {
			return outcome{}, Wrong("arguments." + a.Name + ": is missing, or no text.")
		}
	}
	res, err := p.Get(ctx, c)
	if err != nil {
		return outcome{}, err
	}
	if res.Wants != nil {
		return outcome{wants: res.Wants}, nil
	}
	for i := range res.Messages {
		res.Messages[i].Content = fitContent([]Content{res.Messages[i].Content}, c.Version)[0]
	}
	return outcome{body: s.encodeResult(c.Version, res)}, nil
}

func (s *Server) readResource(ctx context.Context, c *Call) (outcome, error) {
	res, err := s.offer.Resources.Read(ctx, c, c.Name)
	if err != nil {
		return outcome{}, err
	}
	if res.Wants != nil {
		return outcome{wants: res.Wants}, nil
	}
	ttl := res.TTL
	if c.Inputs != nil || c.State != "" {
		ttl = 0 // not cached, because the content also depends on the user's input
	}
	return outcome{body: s.encodeCached(c.Version, map[string]any{"contents": res.Contents}, ttl, res.Private)}, nil
}
