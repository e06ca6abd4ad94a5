package mcp

import (
	"context"
	"errors"
	"net/http"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/hub"
)

// probeTime bounds all requests of one probe.
const probeTime = 15 * time.Second

// Prober implements liveness.Prober for the kind mcp. It is safe for concurrent use.
type Prober struct{ rt http.RoundTripper }

// NewProber returns a Prober over rt, which must bound time and restrict addresses.
func NewProber(rt http.RoundTripper) *Prober { return &Prober{rt: rt} }

// Probe implements liveness.Prober. It only opens a session; no tool is called or listed.
func (p *Prober) Probe(ctx context.Context, t hub.Target) hub.Liveness {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	start := time.Now()
	live := hub.Liveness{CheckedAt: clock.Now()}
	var s *session
	s, live.State, live.Reason = p.beginSession(ctx, t)
	live.Reason = redactSecret(live.Reason, t.Secret)
	live.Latency = time.Since(start)
	if s != nil {
		s.closeBefore(ctx)
	}
	return live
}

// beginSession opens a session and returns the liveness with its reason. The session is not nil if the
// server keeps one, whatever the state; the caller closes it.
func (p *Prober) beginSession(ctx context.Context, t hub.Target) (*session, hub.Live, string) {
	if t.Kind != hub.MCP {
		return nil, hub.Unknown, "Agents of this kind are not probed."
	}
	cfg, err := readConfig(t.Config)
	if err != nil {
		return nil, hub.Unknown, "The agent's settings cannot be read."
	}
	s, err := openSession(ctx, p.rt, t, cfg)
	// Servers of versions before 2026-07-28 may answer initialize and hang afterwards, so ping them.
	if err == nil && !s.isModern() {
		err = s.runRequest(func(ctx context.Context) error { return s.Ping(ctx, nil) })
		if err != nil {
			err = s.explainError(ctx, err)
		}
	}
	pr, ok := errors.AsType[*problem](err)
	switch {
	case err == nil:
		return s, hub.Alive, ""
	case !ok:
		return s, hub.Unreachable, "The server did not answer in time."
	case pr.kind == troubleRefused && s != nil:
		// An error in answer to ping proves that the server works: some servers lack the method.
		return s, hub.Alive, ""
	}
	state, reason := pr.asLiveness()
	return s, state, reason
}
