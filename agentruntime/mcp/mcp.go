// Package mcp calls tool servers that implement MCP over Streamable HTTP, in the present version and
// earlier ones. It has the driver of kind mcp, with tool calls as tasks, the Prober and the Reader of
// such servers, and makes their tools available to other agents. The Go SDK of MCP implements the
// protocol. This package adds bounds on the wire: bytes, requests, messages and time of a session, and
// the destination of the credential. Sizes and schemas of a server are untrusted. The package does not
// depend on storage or scheduling.
package mcp

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/liveness"
	"agentsite/internal/task"
)

var (
	_ task.Agent      = (*Driver)(nil)
	_ liveness.Prober = (*Prober)(nil)
	_ hub.Reader      = (*Reader)(nil)
)

// Config holds the driver's settings besides a RoundTripper.
type Config struct {
	// Log defaults to a logger that discards.
	Log *slog.Logger
	// CallTime bounds one tool call. Default 15 minutes.
	CallTime time.Duration
}

func (c Config) withDefaults() Config {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.CallTime <= 0 {
		c.CallTime = 15 * time.Minute
	}
	return c
}

// Driver runs tasks at MCP servers. Each task is a call of one tool. A tool call is not idempotent, so
// it is never repeated unless the server declares that the tool may be called twice. It is safe for
// concurrent use.
type Driver struct {
	rt  http.RoundTripper
	cfg Config

	mu     sync.Mutex // guards closed, and closed against wg.Wait
	closed bool
	wg     sync.WaitGroup
}

// New returns the driver of kind mcp over rt, which must bound time and restrict addresses. The caller
// closes it.
func New(rt http.RoundTripper, cfg Config) *Driver {
	return &Driver{rt: rt, cfg: cfg.withDefaults()}
}

// Close waits until the pending cancellations have reached their servers and the sessions are over,
// some seconds at most. It does not end running calls; their callers do.
func (d *Driver) Close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.wg.Wait()
}

// runBackground runs fn in a goroutine that Close waits for. After Close fn still runs, but Close no
// longer waits.
func (d *Driver) runBackground(fn func()) {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		go fn() // fn must bound its own time, because Close has returned.
		return
	}
	d.wg.Go(fn)
	d.mu.Unlock()
}

// closeInBackground ends a session in the background, because callers that wait for an answer must not
// wait for its end.
func (d *Driver) closeInBackground(s *session) { d.runBackground(s.endSession) }

// openWithin is openSession for callers that must not wait longer than ctx, however long the SDK waits.
func (d *Driver) openWithin(ctx context.Context, t hub.Target, cfg hub.MCPConfig) (*session, error) {
	type opened struct {
		s   *session
		err error
	}
	got := make(chan opened)
	d.runBackground(func() {
		s, err := openSession(ctx, d.rt, t, cfg)
		select {
		case got <- opened{s, err}:
		case <-ctx.Done():
			if s != nil {
				s.endSession()
			}
		}
	})
	select {
	case o := <-got:
		return o.s, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func readConfig(b json.RawMessage) (hub.MCPConfig, error) {
	var cfg hub.MCPConfig
	if len(b) == 0 {
		return cfg, nil
	}
	if err := json.Unmarshal(b, &cfg); err != nil {
		return cfg, fault.Wrap(fault.Unavailable, err,
			"The agent is not set up in a way this portal can use. Its owner should register it again.")
	}
	return cfg, nil
}

// hubTarget converts a task's target to the type that probes and readers take.
func hubTarget(t task.Target) hub.Target {
	return hub.Target{Kind: hub.Kind(t.Kind), Endpoint: t.Endpoint, Config: t.Config, Secret: t.Secret}
}

// redactSecret removes the stored credential from a text of the server, because its readers are not the
// owner of the credential.
func redactSecret(text, secret string) string {
	if secret == "" {
		return text
	}
	return strings.ReplaceAll(text, secret, "[key]")
}

// failedResult is the result of a task that ended without an answer, or with part of one.
func failedResult(parts []task.Part, reason string) task.Result {
	return task.Result{State: task.Failed, Parts: parts, Reason: reason}
}

// toSentence makes a sentence of a reason of package egress, which begins in lower case and has no full
// stop.
func toSentence(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

// canceledResult is the result of Run once its context has ended: the cause as the error, which the
// worker handles.
func canceledResult(ctx context.Context) (task.Result, error) {
	return task.Result{}, context.Cause(ctx)
}
