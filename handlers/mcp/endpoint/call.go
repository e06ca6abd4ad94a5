package endpoint

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"agentsite/internal/ident"
	"agentsite/internal/strictjson"
)

// TasksExtension is the extension that allows a task as the answer to a call.
const TasksExtension = "io.modelcontextprotocol/tasks"

// Names of members of _meta.
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaServer       = "io.modelcontextprotocol/serverInfo"
	metaLogLevel     = "io.modelcontextprotocol/logLevel"
	metaSubscription = "io.modelcontextprotocol/subscriptionId"
)

// Call is one request in the form that the functions of an Offer receive. It is valid only while such a
// function runs.
type Call struct {
	// HTTP is the HTTP request of the call. Do not use its context: the call's context, which functions
	// get, may outlive it.
	HTTP *http.Request
	// Actor is the actor that the credential proves, or a guest with an empty id.
	Actor ident.Actor
	// Version is the protocol version of the call, Method the called method.
	Version, Method string
	// Client holds the capabilities that the client declared.
	Client Client
	// Name is the name of the tool or prompt. Arguments are its decoded arguments, nil for none, and Raw
	// the same as they were sent.
	Name      string
	Arguments strictjson.Object
	Raw       json.RawMessage
	// Params are all parameters of the method.
	Params strictjson.Object
	// Inputs are the client's answers to questions, by key, and State is the state that was sent
	// with the questions. The client can forge both.
	Inputs map[string]json.RawMessage
	State  string

	endpoint *Endpoint
	reply    *reply
	token    json.RawMessage // token for progress notifications, nil if the client wants none
	steps    int64
	logLevel string
}

// Modern reports whether the call's version has no handshake. In these versions the end of the connection
// cancels the call and its work.
func (c *Call) Modern() bool { return c.Version == Modern }

// errCancelled is the cause of a canceled context if the client canceled the call.
type errCancelled struct{}

// Error names the cause for logs.
func (errCancelled) Error() string { return "cancelled by the client" }

// Stopped reports whether the work of a call with an ended context must stop. Before 2026-07-28 the
// end of the connection does not cancel a call.
func (c *Call) Stopped(ctx context.Context) bool {
	if ctx.Err() == nil {
		return false
	}
	_, cancelled := context.Cause(ctx).(errCancelled)
	return c.Modern() || cancelled
}

// Client holds the capabilities that a client declares.
type Client struct {
	Elicitation, Sampling, Roots bool
	// Tasks is true if the client declared the tasks extension with this request.
	Tasks bool
}

// Can reports whether the client accepts a request with the given method, by its capabilities.
func (c Client) Can(method string) bool {
	switch method {
	case "elicitation/create":
		return c.Elicitation
	case "sampling/createMessage":
		return c.Sampling
	case "roots/list":
		return c.Roots
	}
	return false
}

// capabilityOf returns the name of the capability that a client needs for a method.
func capabilityOf(method string) string {
	switch method {
	case "elicitation/create":
		return "elicitation"
	case "sampling/createMessage":
		return "sampling"
	case "roots/list":
		return "roots"
	}
	return method
}

// readClient decodes the capabilities that a client declared; unknown ones are ignored.
func readClient(caps strictjson.Object) (c Client) {
	has := func(o strictjson.Object, name string) bool {
		raw := o.Get(name)
		return len(raw) > 0 && raw[0] == '{'
	}
	c.Sampling, c.Roots = has(caps, "sampling"), has(caps, "roots")
	if raw := caps.Get("elicitation"); len(raw) > 0 && raw[0] == '{' {
		modes, _ := strictjson.Split(raw)
		// A client of the first version with elicitation names no modes, and supports forms only.
		c.Elicitation = has(modes, "form") || !has(modes, "url")
	}
	ext, _ := caps.Object("extensions")
	c.Tasks = has(ext, TasksExtension)
	return c
}

// Progress sends a progress notification if the client requested progress. Each call counts one more
// step; the total is unknown.
func (c *Call) Progress(message string) {
	if c.token == nil {
		return
	}
	c.steps++
	c.sendNotice("notifications/progress", struct {
		Token    json.RawMessage `json:"progressToken"`
		Progress int64           `json:"progress"`
		Message  string          `json:"message,omitempty"`
	}{c.token, c.steps, message})
}

// ProgressOf sends a progress notification for work of which done of total units are done.
func (c *Call) ProgressOf(done, total float64, message string) {
	if c.token == nil {
		return
	}
	c.sendNotice("notifications/progress", struct {
		Token    json.RawMessage `json:"progressToken"`
		Progress float64         `json:"progress"`
		Total    float64         `json:"total"`
		Message  string          `json:"message,omitempty"`
	}{c.token, done, total, message})
}

// WantsProgress reports whether the client requested progress notifications.
func (c *Call) WantsProgress() bool { return c.token != nil }

// levels are the log levels, in increasing order of severity.
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// Log sends a log line if the client wants lines of the level. Since 2026-07-28 clients name a level with
// each request; clients of older versions get all lines.
func (c *Call) Log(level string, data any) {
	if c.Modern() && (c.logLevel == "" || slices.Index(levels, level) < slices.Index(levels, c.logLevel)) {
		return
	}
	c.sendNotice("notifications/message", map[string]any{"level": level, "data": data})
}

func (c *Call) sendNotice(method string, params any) {
	if c.reply != nil {
		c.reply.sendEvent(encodeNotice(nil, method, params))
	}
}
