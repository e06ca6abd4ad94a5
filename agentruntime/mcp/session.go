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
	// modern is the first version without sessions, legacy the version that is offered to older
	// servers.
	modern = "2026-07-28"
	legacy = "2025-11-25"
	// oldStream stands for the transport of 2024-11-05: requests by POST, all answers in one stream.
	oldStream = "HTTP+SSE"
	// connectTime bounds opening a session, with the fallback to an older version.
	connectTime = 40 * time.Second
	// maxReceived bounds the requests and notifications of a server in one session.
	maxReceived = 5000
	// maxReconnects is how often in a row a stream is resumed without new events.
	maxReconnects = 3
)

// session is a connection to one server, for one task, probe or reading. Its opener closes it.
type session struct {
	*sdk.ClientSession
	wire   *wire
	ctx    context.Context // context of its requests
	cancel context.CancelCauseFunc

	mu       sync.Mutex // guards all below
	received int
	calling  bool
	progress chan string // holds the newest progress report; nil before a call
}

// openSession connects to the server at t. The stored configuration has the version that was used last.
// Its error is a *problem, unless ctx ended. The session must be closed; its calls end with ctx.
func openSession(ctx context.Context, rt http.RoundTripper, t hub.Target, cfg hub.MCPConfig) (*session, error) {
	// The SDK falls back from discovering to initializing by itself, but on a connection that some
	// answers have broken for good.
	versions := []string{"", legacy}
	if cfg.Version != "" && cfg.Version < modern {
		versions = []string{legacy, ""}
	}
	var first *problem
	for _, v := range append(versions, oldStream) {
		if v == oldStream && !first.mayBeOldStream() {
			break
		}
		s, err := connectVersion(ctx, rt, t, cfg, v)
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
		if v == oldStream && p.kind == troubleShape {
			break // The first reason says more about the address.
		}
		if p.kind != troubleShape || !p.sent {
			return nil, p
		}
	}
	return nil, first
}

func connectVersion(ctx context.Context, rt http.RoundTripper, t hub.Target, cfg hub.MCPConfig,
	version string) (*session, error) {
	w, err := newWire(rt, t.Endpoint, cfg.AuthHeader, t.Secret)
	if err != nil {
		p := &problem{err: err, kind: troubleShape}
		p.setNetworkError(err)
		return nil, p
	}
	s := &session{wire: w}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	client := sdk.NewClient(&sdk.Implementation{Name: "agentsite", Title: "agent portal", Version: "1"},
		&sdk.ClientOptions{
			// No roots, no sampling and, before 2026-07-28, no elicitation: the server sees from this that
			// it must not ask for them.
			Capabilities:                &sdk.ClientCapabilities{},
			MultiRoundTrip:              &sdk.MultiRoundTripOptions{Disabled: true},
			ProgressNotificationHandler: s.onProgress,
		})
	client.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			if err := s.countMessage(); err != nil {
				return nil, err
			}
			return next(ctx, method, req)
		}
	})
	connecting, stop := context.WithTimeout(s.ctx, connectTime)
	defer stop()
	transport := sdk.Transport(&sdk.StreamableClientTransport{
		Endpoint: w.endpoint.String(), HTTPClient: w.httpClient(), MaxRetries: maxReconnects,
		DisableStandaloneSSE: true, MaxEventSize: maxResponse,
	})
	if version == oldStream {
		version, w.stream = legacy, true
		unhook := context.AfterFunc(connecting, func() { s.cancel(context.DeadlineExceeded) })
		defer unhook()
		transport = streamTransport{s.ctx, &sdk.SSEClientTransport{Endpoint: w.endpoint.String(),
			HTTPClient: w.httpClient(), MaxEventSize: maxResponse}}
	}
	s.ClientSession, err = client.Connect(connecting, transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		s.cancel(err)
		return nil, w.explainError(err)
	}
	return s, nil
}

// streamTransport connects to a server of version 2024-11-05. Its stream lives as long as the session,
// not only while connecting.
type streamTransport struct {
	ctx context.Context
	*sdk.SSEClientTransport
}

// Connect implements sdk.Transport.
func (t streamTransport) Connect(context.Context) (sdk.Connection, error) {
	return t.SSEClientTransport.Connect(t.ctx)
}

// mayBeOldStream reports whether a server may speak the transport of 2024-11-05: it has no use for a POST
// at its address.
func (p *problem) mayBeOldStream() bool {
	return p != nil && p.sent && p.kind == troubleShape && p.status >= 400 && p.status < 500
}

// countMessage counts the messages that the server sends on its own. Beyond maxReceived it ends the
// session with the errLimit that it returns.
func (s *session) countMessage() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.received++; s.received <= maxReceived {
		return nil
	}
	err := &errLimit{"the server sent too many messages"}
	s.wire.withLock(func() {
		if s.wire.limit == nil {
			s.wire.limit = err
		}
	})
	s.cancel(err)
	return err
}

func (s *session) onProgress(_ context.Context, req *sdk.ProgressNotificationClientRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.progress == nil || req.Params == nil {
		return
	}
	select {
	case <-s.progress: // Discard an unread report: only the newest one counts.
	default:
	}
	select {
	case s.progress <- progressText(req.Params):
	default:
	}
}

// runRequest runs a request of the session and records that it runs, because endSession must notify the
// server of an abandoned request.
func (s *session) runRequest(fn func(ctx context.Context) error) error {
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

// explainError returns err as a *problem, or the cause of ctx if ctx has ended.
func (s *session) explainError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return s.wire.explainError(err)
}

// isModern reports whether the server implements a version without sessions (2026-07-28 or later).
func (s *session) isModern() bool { return s.protocolVersion() >= modern }

func (s *session) protocolVersion() string {
	if r := s.InitializeResult(); r != nil {
		return r.ProtocolVersion
	}
	return ""
}

// endSession ends the session. The SDK notifies the server of an abandoned call and then ends the
// server's session, each within farewellTime.
func (s *session) endSession() {
	s.mu.Lock()
	told := s.calling && s.ctx.Err() != nil
	s.mu.Unlock()
	s.cancel(context.Canceled)
	if told {
		timer := time.NewTimer(farewellTime)
		defer timer.Stop()
		select {
		case <-s.wire.stopSent:
		case <-timer.C:
		}
	}
	s.ClientSession.Close()
	s.wire.skipFarewells()
}

// closeBefore closes the session for callers that have time until ctx ends. If the server used up the
// time, the session ends without notifying it, and running notifications end.
func (s *session) closeBefore(ctx context.Context) {
	if ctx.Err() != nil {
		s.wire.skipFarewells()
		s.wire.markTold()
	}
	s.endSession()
}
