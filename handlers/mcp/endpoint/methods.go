package endpoint

import (
	"context"
	"encoding/json"
	"net/http"

	"agentsite/internal/strictjson"
)

// callMethod runs the method of a request and returns its result. An unknown method is a Problem with
// CodeMethodNotFound.
func (s *Server) callMethod(ctx context.Context, cancel context.CancelCauseFunc, m *message, c *Call,
	x *exchange) (json.RawMessage, error) {
	o := &s.offer
	if !s.hasMethod(c) {
		return nil, noMethod(c)
	}
	if field := nameOf(c.Method); field != "" {
		name, ok := c.Params.Text(field)
		if !ok || name == "" {
			return nil, Wrong("params." + field + ": is missing, or no text.")
		}
		c.Name = name
		if c.Modern() {
			if p := checkRepeated(x.r.Header, nameHeader, name); p != nil {
				return nil, p
			}
		}
	}
	era := eraHandshake
	if c.Modern() {
		era = eraModern
	}
	switch c.Method {
	case "server/discover":
		return s.discover, nil
	case "initialize":
		return s.startSession(c, x)
	case "ping":
		return json.RawMessage("{}"), nil
	case "tools/list":
		return s.toolList[era], onePage(c)
	case "prompts/list":
		return s.promptList[era], onePage(c)
	case "tools/call":
		return s.runCall(ctx, cancel, m, c, x, s.callTool)
	case "prompts/get":
		return s.runCall(ctx, cancel, m, c, x, s.getPrompt)
	case "resources/read":
		return s.runCall(ctx, cancel, m, c, x, s.readResource)
	case "resources/list":
		cursor, ok := c.Params.Text("cursor")
		if !ok {
			return nil, Wrong("cursor: use a text.")
		}
		list, next, err := o.Resources.List(ctx, c, cursor)
		if err != nil {
			return nil, err
		}
		if list == nil {
			list = []Resource{}
		}
		return s.encodeCached(c.Version, struct {
			Resources []Resource `json:"resources"`
			Next      string     `json:"nextCursor,omitempty"`
		}{list, next}, o.TTL, true), nil
	case "resources/templates/list":
		list, err := o.Resources.Templates(ctx, c)
		if err != nil {
			return nil, err
		}
		if list == nil {
			list = []Template{}
		}
		return s.encodeCached(c.Version, map[string]any{"resourceTemplates": list}, o.TTL, o.Private), nil
	case "completion/complete":
		return s.completeArgument(ctx, c)
	case "tasks/get", "tasks/update", "tasks/cancel":
		return s.serveTask(ctx, c)
	case "subscriptions/listen":
		return s.serveFeed(ctx, m, c)
	}
	v, err := o.Handshake[c.Method](ctx, c)
	if err != nil {
		return nil, err
	}
	return encodeJSON(v), nil
}

// hasMethod reports whether this server offers the called method in the call's version.
func (s *Server) hasMethod(c *Call) bool {
	o := &s.offer
	switch c.Method {
	case "server/discover":
		return c.Modern()
	case "initialize", "ping":
		return !c.Modern()
	case "tools/list", "tools/call":
		return len(o.Tools) > 0
	case "prompts/list", "prompts/get":
		return len(o.Prompts) > 0
	case "resources/list", "resources/templates/list", "resources/read":
		return o.Resources != nil
	case "completion/complete":
		return o.Completer != nil
	case "tasks/get", "tasks/update", "tasks/cancel":
		return c.Modern() && o.Tasks != nil
	case "subscriptions/listen":
		return c.Modern() && o.Feeds != nil
	}
	return !c.Modern() && o.Handshake[c.Method] != nil
}

func noMethod(c *Call) *Problem {
	p := &Problem{Code: CodeMethodNotFound, Message: "This server has no method " + cutText(c.Method, 60) + "."}
	if c.Modern() {
		p.Status = http.StatusNotFound
	}
	return p
}

// onePage returns an error if the call has a cursor, for lists that have a single page.
func onePage(c *Call) error {
	if raw := c.Params.Get("cursor"); raw != nil {
		return Wrong("cursor: is not one of this list, which has one page.")
	}
	return nil
}

// startSession answers initialize, and gives the client a session id that contains its capabilities.
func (s *Server) startSession(c *Call, x *exchange) (json.RawMessage, error) {
	want, ok := c.Params.Text("protocolVersion")
	caps, isCaps := c.Params.Object("capabilities")
	if !ok || want == "" || !isCaps {
		return nil, Wrong("initialize: send protocolVersion, capabilities and clientInfo.")
	}
	v := agreeVersion(want)
	client := readClient(caps)
	client.Tasks = false // the tasks extension belongs to versions without handshake
	x.w.Header().Set(sessionHeader, x.endpoint.sessionID(session{v, client}))
	return s.encodeHandshake(v), nil
}

// completeArgument answers completion/complete with proposed values for an argument.
func (s *Server) completeArgument(ctx context.Context, c *Call) (json.RawMessage, error) {
	ref, ok1 := strictjson.Split(c.Params.Get("ref"))
	arg, ok2 := strictjson.Split(c.Params.Get("argument"))
	if !ok1 || !ok2 {
		return nil, Wrong("completion/complete: send ref and argument.")
	}
	var a Argument
	kind, _ := ref.Text("type")
	var ok bool
	switch kind {
	case "ref/prompt":
		a.Prompt, ok = ref.Text("name")
	case "ref/resource":
		a.URI, ok = ref.Text("uri")
	}
	if !ok || a.Prompt == "" && a.URI == "" {
		return nil, Wrong("ref: use type ref/prompt with a name or ref/resource with a uri.")
	}
	if a.Name, ok = arg.Text("name"); !ok || a.Name == "" {
		return nil, Wrong("argument.name: is missing.")
	}
	if a.Value, ok = arg.Text("value"); !ok {
		return nil, Wrong("argument.value: use a text.")
	}
	known, _ := c.Params.Object("context")
	others, _ := known.Object("arguments")
	for _, m := range others {
		if v, ok := strictjson.Text(m.Value); ok {
			if a.Context == nil {
				a.Context = make(map[string]string)
			}
			a.Context[m.Name] = v
		}
	}
	list, err := s.offer.Completer.Complete(ctx, c, a)
	if err != nil {
		return nil, err
	}
	if list.Values == nil {
		list.Values = []string{}
	}
	if n := len(list.Values); n > 100 {
		list.Values, list.Total, list.HasMore = list.Values[:100], max(list.Total, n), true
	}
	return s.encodeResult(c.Version, map[string]any{"completion": list}), nil
}
