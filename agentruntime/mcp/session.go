package mcp

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentsite/internal/hub"
)

const (
	// modern is the first version without sessions; legacy the one that is
	// offered to servers before it.
	modern = "2026-07-28"
	legacy = "2025-11-25"
	// connectTime bounds getting a session.
	connectTime = 40 * time.Second
	// maxReceived bounds what a server may ask and notify in one session.
	maxReceived = 5000
	// maxReconnects is how often in a row a stream is taken up again without
	// getting anywhere.
	maxReconnects = 3
)

// session is a connection to one server, for one purpose.
type session struct {
	*sdk.ClientSession
	wire   *wire
	ctx    context.Context // of its calls
	cancel context.CancelCauseFunc

	mu       sync.Mutex // guards all below
	received int
	calling  bool
	progress func(*sdk.ProgressNotificationParams)
}

// open connects to the server at t, whose stored configuration says what it
// spoke last. Its error is a *problem, unless ctx ended. The session must be
// closed; its calls end with ctx.
func open(ctx context.Context, rt http.RoundTripper, t hub.Target, cfg hub.MCPConfig) (*session, error) {
	// The SDK turns from discovering to initializing by itself, but on a
	// connection that some answers have broken for good.
	versions := []string{"", legacy}
	if cfg.Version != "" && cfg.Version < modern {
		versions = []string{legacy, ""}
	}
	var first *problem
	for _, v := range versions {
		s, err := connect(ctx, rt, t, cfg, v)
		if err == nil {
			return s, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		p, ok := errors.AsType[*problem](err)
		if !ok {
			return nil, err
		}
		if first == nil {
			first = p
		}
		if p.kind != troubleShape || !p.sent {
			return nil, p
		}
	}
	return nil, first
}

func connect(ctx context.Context, rt http.RoundTripper, t hub.Target, cfg hub.MCPConfig, version string) (*session, error) {
	w, err := newWire(rt, t.Endpoint, cfg.AuthHeader, t.Secret)
	if err != nil {
		p := &problem{err: err, kind: troubleShape}
		p.away(err)
		return nil, p
	}
	s := &session{wire: w}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	client := sdk.NewClient(&sdk.Implementation{Name: "agentsite", Title: "agent portal", Version: "1"}, &sdk.ClientOptions{
		// Neither roots nor sampling nor, before 2026-07-28, elicitation: the
		// server is told what it cannot ask.
		Capabilities:                &sdk.ClientCapabilities{},
		MultiRoundTrip:              &sdk.MultiRoundTripOptions{Disabled: true},
		ProgressNotificationHandler: s.onProgress,
	})
	client.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			if err := s.receive(); err != nil {
				return nil, err
			}
			return next(ctx, method, req)
		}
	})
	connecting, stop := context.WithTimeout(s.ctx, connectTime)
	defer stop()
	s.ClientSession, err = client.Connect(connecting, &sdk.StreamableClientTransport{
		Endpoint: w.endpoint.String(), HTTPClient: w.client(), MaxRetries: maxReconnects,
		DisableStandaloneSSE: true, MaxEventSize: maxResponse,
	}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		s.cancel(err)
		return nil, w.problem(err)
	}
	return s, nil
}

// receive counts what the server sends on its own.
func (s *session) receive() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.received++; s.received <= maxReceived {
		return nil
	}
	err := &errLimit{"the server sent too many messages"}
	s.wire.note(func() {
		if s.wire.limit == nil {
			s.wire.limit = err
		}
	})
	s.cancel(err)
	return err
}

func (s *session) onProgress(_ context.Context, req *sdk.ProgressNotificationClientRequest) {
	s.mu.Lock()
	fn := s.progress
	s.mu.Unlock()
	if fn != nil && req.Params != nil {
		fn(req.Params)
	}
}

// during runs a request of the session, so that close knows whether the
// server must be told that nobody waits any more.
func (s *session) during(fn func(ctx context.Context) error) error {
	s.mu.Lock()
	s.calling = true
	s.mu.Unlock()
	err := fn(s.ctx)
	if s.ctx.Err() == nil {
		s.mu.Lock()
		s.calling = false
		s.mu.Unlock()
	}
	return err
}

// problem explains an error of a request, or returns ctx's own end.
func (s *session) problem(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return s.wire.problem(err)
}

// modern reports whether the server speaks a version without sessions.
func (s *session) modern() bool { return s.version() >= modern }

func (s *session) version() string {
	if r := s.InitializeResult(); r != nil {
		return r.ProtocolVersion
	}
	return ""
}

// close ends the session, within goodbyeTime for each goodbye: the SDK tells
// the server of a call that was given up, then it ends the server's session.
func (s *session) close() {
	s.mu.Lock()
	told := s.calling && s.ctx.Err() != nil
	s.mu.Unlock()
	s.cancel(context.Canceled)
	if told {
		timer := time.NewTimer(goodbyeTime)
		defer timer.Stop()
		select {
		case <-s.wire.told:
		case <-timer.C:
		}
	}
	s.ClientSession.Close()
	s.wire.silence()
}

// leave closes the session for those who have until ctx ends: a server that
// used the time up is left without goodbyes, and those under way end.
func (s *session) leave(ctx context.Context) {
	if ctx.Err() != nil {
		s.wire.silence()
		s.wire.heard()
	}
	s.close()
}
