// Package mcp reaches servers of tools that speak MCP over Streamable HTTP, in
// today's version and the ones before it: the driver of kind mcp, whose tasks
// are tool calls, the Prober and the Reader of such servers, and their tools
// for other agents. The protocol is spoken by the Go SDK of MCP; what the SDK
// leaves open is bounded here, at the wire: bytes, requests, messages and time
// of a session, and where the credential goes. The package believes nothing a
// server says about sizes or schemas, and knows nothing of storage or
// scheduling.
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
	"agentsite/internal/task"
)

var (
	_ task.Agent = (*Driver)(nil)
	_ hub.Prober = (*Prober)(nil)
	_ hub.Reader = (*Reader)(nil)
)

// Config is what the driver needs beside a RoundTripper.
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

// Driver runs tasks at MCP servers: each is a call of one tool. A tool call is
// not idempotent, so one that was sent is not sent again unless the server
// says that the tool may be called twice. It is safe for concurrent use.
type Driver struct {
	rt  http.RoundTripper
	cfg Config

	mu     sync.Mutex // guards closed against wg.Wait
	closed bool
	wg     sync.WaitGroup
}

// New returns the driver of kind mcp over rt, which must bound time and guard
// addresses. The caller closes it.
func New(rt http.RoundTripper, cfg Config) *Driver {
	return &Driver{rt: rt, cfg: cfg.withDefaults()}
}

// Close waits until servers that were told to stop have heard it and the
// sessions are over, some seconds at most. Calls still running are their
// callers' to end.
func (d *Driver) Close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.wg.Wait()
}

// background runs fn so that Close waits for it; after Close it runs alone.
func (d *Driver) background(fn func()) {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		go fn() // bounded in time by itself
		return
	}
	d.wg.Go(fn)
	d.mu.Unlock()
}

// leave ends a session in the background: who waits for an answer has no time
// to wait for goodbyes.
func (d *Driver) leave(s *session) { d.background(s.close) }

// open is open for callers that must not wait longer than ctx, whatever the
// SDK waits for.
func (d *Driver) open(ctx context.Context, t hub.Target, cfg hub.MCPConfig) (*session, error) {
	type opened struct {
		s   *session
		err error
	}
	got := make(chan opened)
	d.background(func() {
		s, err := open(ctx, d.rt, t, cfg)
		select {
		case got <- opened{s, err}:
		case <-ctx.Done():
			if s != nil {
				s.close()
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
		return cfg, fault.Wrap(fault.Unavailable, err, "The agent is not set up in a way this portal can use. Its owner should register it again.")
	}
	return cfg, nil
}

// hubTarget is a task's target as probes and readers name it.
func hubTarget(t task.Target) hub.Target {
	return hub.Target{Kind: hub.Kind(t.Kind), Endpoint: t.Endpoint, Config: t.Config, Secret: t.Secret}
}

// redacted takes the stored credential out of what the server said: those who
// read it are not its owner.
func redacted(text, secret string) string {
	if secret == "" {
		return text
	}
	return strings.ReplaceAll(text, secret, "[key]")
}

// failed is a task that ended without an answer, or with part of one.
func failed(parts []task.Part, reason string) task.Result {
	return task.Result{State: task.Failed, Parts: parts, Reason: reason}
}

// capital makes a sentence of a reason.
func capital(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

// canceled is what Run returns once its context has ended.
func canceled(ctx context.Context) (task.Result, error) {
	return task.Result{}, context.Cause(ctx)
}
