package endpoint

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"agentsite/internal/ident"
	"agentsite/internal/strictjson"
)

// TasksExtension is the extension by which a call may be answered with a task.
const TasksExtension = "io.modelcontextprotocol/tasks"

// The keys of _meta.
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaServer       = "io.modelcontextprotocol/serverInfo"
	metaLogLevel     = "io.modelcontextprotocol/logLevel"
	metaSubscription = "io.modelcontextprotocol/subscriptionId"
)

// Call is one request as what an Offer holds sees it. It is valid while the
// function runs that got it.
type Call struct {
	// HTTP is the request it came with. Its context is not the call's.
	HTTP *http.Request
	// Actor is who shows a credential, else a visitor without an id.
	Actor ident.Actor
	// Version is that of the protocol; Method what is called.
	Version, Method string
	// Client is what the client can do.
	Client Client
	// Name is of the tool or prompt, Arguments its arguments (nil for none)
	// and Raw the same as they were written.
	Name      string
	Arguments strictjson.Object
	Raw       json.RawMessage
	// Params are all parameters.
	Params strictjson.Object
	// Inputs are what the client was asked for, by key, and State what came
	// with the question. Both come from outside.
	Inputs map[string]json.RawMessage
	State  string

	endpoint *Endpoint
	reply    *reply
	token    json.RawMessage // of progress, nil for none
	steps    int64
	logLevel string
}

// Modern reports whether the version is without handshake: then the end of
// the connection is the end of the call, and its work shall stop.
func (c *Call) Modern() bool { return c.Version == Modern }

// errCancelled is the cause of the context of a call that its client
// cancelled.
type errCancelled struct{}

// Error implements error.
func (errCancelled) Error() string { return "cancelled by the client" }

// Stopped reports whether the work of a call whose context ended shall stop.
// Before 2026-07-28 a client that is gone has cancelled nothing.
func (c *Call) Stopped(ctx context.Context) bool {
	if ctx.Err() == nil {
		return false
	}
	_, cancelled := context.Cause(ctx).(errCancelled)
	return c.Modern() || cancelled
}

// Client is what a client declares that it can do.
type Client struct {
	Elicitation, Sampling, Roots bool
	// Tasks is the tasks extension, for this request.
	Tasks bool
}

// Can reports whether the client takes a request of the method.
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

// capabilityOf names the capability for a method.
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

// readClient reads what a client declares.
func readClient(caps strictjson.Object) (c Client) {
	has := func(o strictjson.Object, name string) bool {
		raw := o.Get(name)
		return len(raw) > 0 && raw[0] == '{'
	}
	c.Sampling, c.Roots = has(caps, "sampling"), has(caps, "roots")
	if raw := caps.Get("elicitation"); len(raw) > 0 && raw[0] == '{' {
		modes, _ := strictjson.Split(raw)
		// Without modes it is forms, as before there were others.
		c.Elicitation = has(modes, "form") || !has(modes, "url")
	}
	ext, _ := caps.Object("extensions")
	c.Tasks = has(ext, TasksExtension)
	return c
}

// Progress tells how the call goes on, if the client asked for that. Each
// step counts one more.
func (c *Call) Progress(message string) {
	if c.token == nil {
		return
	}
	c.steps++
	c.send("notifications/progress", struct {
		Token    json.RawMessage `json:"progressToken"`
		Progress int64           `json:"progress"`
		Message  string          `json:"message,omitempty"`
	}{c.token, c.steps, message})
}

// ProgressOf is Progress for work whose size is known.
func (c *Call) ProgressOf(done, total float64, message string) {
	if c.token == nil {
		return
	}
	c.send("notifications/progress", struct {
		Token    json.RawMessage `json:"progressToken"`
		Progress float64         `json:"progress"`
		Total    float64         `json:"total"`
		Message  string          `json:"message,omitempty"`
	}{c.token, done, total, message})
}

// WantsProgress reports whether anybody is told of progress.
func (c *Call) WantsProgress() bool { return c.token != nil }

// levels are those of logging, the least first.
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// Log sends a line of a log, if the client asked for lines of its level. Since
// 2026-07-28 it asks with each request; before, every client gets them.
func (c *Call) Log(level string, data any) {
	if c.Modern() && (c.logLevel == "" || slices.Index(levels, level) < slices.Index(levels, c.logLevel)) {
		return
	}
	c.send("notifications/message", map[string]any{"level": level, "data": data})
}

func (c *Call) send(method string, params any) {
	if c.reply != nil {
		c.reply.event(notice(nil, method, params))
	}
}
