// Package tools is the endpoint at which agents that run elsewhere use the portal's tools while they work on a task: an
// MCP server whose tools are those of one task. Its callers have the token that the portal gave to the agent with the
// task; no other credential counts here, and the token counts nowhere else.
package tools

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/mcp/endpoint"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// Path is the path of the endpoint.
const Path = "/mcp/tools"

// Sessions finds the tools that a token is for. A token that does not count is an Unauthenticated fault.
type Sessions interface {
	ByToken(token string) (task.ToolCalls, error)
}

// Config holds the parts of the endpoint; everything is required.
type Config struct {
	Sessions Sessions
	// Version is the version of the software.
	Version string
	// Key is a secret of the portal for this endpoint only; it signs session ids.
	Key []byte
	Log *slog.Logger
}

// Handler serves the endpoint. Create it with New.
type Handler struct {
	cfg   Config
	serve *endpoint.Endpoint
}

// New returns a Handler. Its routes are declared by Routes.
func New(cfg Config) *Handler {
	d := &Handler{cfg: cfg}
	d.serve = endpoint.New(endpoint.Config{Callers: d, Key: cfg.Key, Log: cfg.Log})
	return d
}

// Routes declares the routes.
func (d *Handler) Routes(r chi.Router) {
	r.Post(Path, d.serve.Post(d.findServer))
	r.Get(Path, d.serve.NotHere)
	r.Delete(Path, d.serve.NotHere)
}

// Authenticate implements endpoint.Callers. The actor stands for the agent in the task; no service ever gets it.
func (d *Handler) Authenticate(r *http.Request) (ident.Actor, error) {
	calls, err := d.findCalls(r)
	if err != nil {
		return ident.Actor{}, err
	}
	return ident.Actor{Kind: "agent", ID: calls.TaskID()}, nil
}

func (d *Handler) findCalls(r *http.Request) (task.ToolCalls, error) {
	return d.cfg.Sessions.ByToken(ident.BearerToken(r.Header.Get("Authorization")))
}

// findServer implements endpoint.Find: the server has the tools of the task.
func (d *Handler) findServer(_ context.Context, r *http.Request, _ ident.Actor) (*endpoint.Server, error) {
	calls, err := d.findCalls(r)
	if err != nil {
		return nil, err
	}
	o := endpoint.Offer{Name: "agentsite-tools", Title: "Tools for a task", Version: d.cfg.Version, Private: true,
		Instructions: "Tools to find and ask other agents, for the task that this token came with."}
	for _, t := range calls.List() {
		o.Tools = append(o.Tools, endpoint.Tool{Name: t.Name, Description: t.Description, Input: t.Schema,
			Hints: &endpoint.Hints{ReadOnly: t.ReadOnly}, Run: runTool(calls, t.Name)})
	}
	return endpoint.NewServer(o)
}

func runTool(calls task.ToolCalls, name string) endpoint.ToolFunc {
	return func(ctx context.Context, c *endpoint.Call) (endpoint.Result, error) {
		text, failed := calls.Call(ctx, name, c.Raw)
		return endpoint.Result{Content: []endpoint.Content{endpoint.TextContent(text)}, Failed: failed}, nil
	}
}
