// Package link is the endpoint for agents that connect to the portal: it accepts the WebSocket of
// docs/link.md, identifies the caller and its agent, and passes the connection on to the runner of
// such agents. It reads only the first message of the protocol.
package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5/middleware"

	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/limit"
	"agentsite/internal/linkwire"
	"agentsite/internal/task"
)

// Callers authenticates bearer tokens, also those that only connect a program. An invalid token is an Unauthenticated
// error.
type Callers interface {
	AuthenticateProgram(r *http.Request, token string) (ident.Actor, error)
}

// Accounts reports when an actor loses its rights.
type Accounts interface {
	// Guard returns a context that ends when the actor's right ends, and a function that ends the watch.
	Guard(ctx context.Context, actor ident.Actor) (context.Context, func())
}

// Agents decides which agent an actor may connect a program for.
type Agents interface {
	// Claim returns the actor's agent that hello names, and registers it if there is none.
	Claim(ctx context.Context, actor ident.Actor, h linkwire.Hello) (task.Attached, error)
	// Holds returns an error once the actor may no longer speak for the agent. It is called every
	// RecheckEvery.
	Holds(ctx context.Context, actor ident.Actor, who task.Attached) error
}

// Config holds the parts of the endpoint; the interfaces are required.
type Config struct {
	Callers  Callers
	Accounts Accounts
	Agents   Agents
	// Attach receives each connection after its hello was accepted, and serves it until it ends.
	Attach task.Attacher
	// All bounds the connections of all accounts, by default 10,000. PerAccount bounds those of one
	// account, by default 1,100. PerAddress bounds those of one address that have not proved a token yet,
	// by default 64.
	All, PerAccount, PerAddress int
	// RecheckEvery is the interval at which token and right are checked again, by default 1 minute. It
	// covers changes that Guard does not report: an expired token, a transferred agent.
	RecheckEvery time.Duration
	Log          *slog.Logger
}

type server struct {
	cfg Config

	asking chan struct{} // one slot per running call of a service, see runApart

	held limit.Held // open connections

	mu      sync.Mutex // guards the fields below
	conns   map[*linkwire.Socket]struct{}
	stopped bool
	once    sync.Once // registers stopAll with the HTTP server's shutdown at the first request
}

// New returns the handler of GET /link, the WebSocket for connected programs.
func New(cfg Config) http.Handler {
	if cfg.All <= 0 {
		cfg.All = 10_000
	}
	if cfg.PerAccount <= 0 {
		cfg.PerAccount = 1100
	}
	if cfg.PerAddress <= 0 {
		cfg.PerAddress = 64
	}
	if cfg.RecheckEvery <= 0 {
		cfg.RecheckEvery = time.Minute
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &server{cfg: cfg, asking: make(chan struct{}, atOnce), conns: make(map[*linkwire.Socket]struct{})}
}

// atOnce bounds the connections that call services at the same time. After a restart all agents
// connect at once; the others wait.
const atOnce = 16

// runApart runs f in a goroutine of its own and waits for it. A database query grows the stack, and a
// grown stack would stay with the connection's goroutine as long as the connection lives.
func (d *server) runApart(f func()) {
	d.asking <- struct{}{}
	done := make(chan any)
	go func() {
		defer func() {
			<-d.asking
			done <- recover()
		}()
		f()
	}()
	if p := <-done; p != nil {
		panic(p) // the panic goes on in the caller's goroutine, where it is recovered
	}
}

// ServeHTTP implements http.Handler. A token in the Authorization header is checked before the
// connection is accepted; one in hello right after.
func (d *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		w.Header().Set("Upgrade", "websocket")
		d.refuse(w, r, http.StatusUpgradeRequired,
			fault.New(fault.Invalid, "This is where agents connect: open a WebSocket with the subprotocol %s. It is described at /docs/link.", linkwire.Subprotocol))
		return
	}
	if !offersProtocol(r) {
		d.refuse(w, r, 0, fault.New(fault.Invalid,
			"Offer the subprotocol %s in Sec-WebSocket-Protocol. It is described at /docs/link.", linkwire.Subprotocol))
		return
	}
	// The connection outlives this request, so its context must not be canceled with the request's.
	c := &caller{server: d, r: r.WithContext(context.WithoutCancel(r.Context()))}
	if h := r.Header.Get("Authorization"); h != "" {
		if err := c.proveToken(ident.BearerToken(h)); err != nil {
			d.refuse(w, r, 0, err)
			return
		}
	} else {
		if err := c.countStranger(); err != nil {
			d.refuse(w, r, 0, err)
			return
		}
	}
	s, err := linkwire.Accept(w, r)
	if err != nil {
		c.leaveCounts()
		return // websocket.Accept has answered the request with an error
	}
	if srv, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok {
		d.once.Do(func() { srv.RegisterOnShutdown(d.stopAll) })
	}
	// The HTTP server has finished this request. Its headers and buffers are released, because an idle
	// agent does not need them.
	c.r.Header, c.r.Body, c.r.Response = nil, nil, nil
	go func() {
		defer func() {
			if p := recover(); p != nil {
				d.cfg.Log.Error("connection of an agent panicked", "panic", fmt.Sprint(p), "stack",
					string(debug.Stack()))
			}
		}()
		defer c.leaveCounts()
		defer s.Wait()
		defer s.Close(linkwire.ReasonRestart)
		if d.addSocket(s) {
			defer d.removeSocket(s)
			c.serveConnection(c.r.Context(), s)
		}
	}()
}

// addSocket registers a connection, so that stopAll closes it. It returns false if the server is
// stopping.
func (d *server) addSocket(s *linkwire.Socket) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.stopped {
		d.conns[s] = struct{}{}
	}
	return !d.stopped
}

func (d *server) removeSocket(s *linkwire.Socket) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.conns, s)
}

// stopAll closes all connections when the HTTP server shuts down.
func (d *server) stopAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = true
	for s := range d.conns {
		s.Close(linkwire.ReasonRestart)
	}
}

// offersProtocol reports whether the request offers the WebSocket subprotocol of docs/link.md.
func offersProtocol(r *http.Request) bool {
	for _, h := range r.Header.Values("Sec-WebSocket-Protocol") {
		if slices.ContainsFunc(strings.Split(h, ","),
			func(p string) bool { return strings.TrimSpace(p) == linkwire.Subprotocol }) {
			return true
		}
	}
	return false
}

// logFault logs the details of err that only the operator may read, and returns the error for the client.
func (d *server) logFault(r *http.Request, err error) *fault.Error {
	f := fault.As(err)
	if f.Kind == fault.Internal && !errors.Is(err, context.Canceled) {
		d.cfg.Log.Error("request failed", "method", r.Method, "path", r.URL.Path, "request_id",
			middleware.GetReqID(r.Context()), "error", err)
	}
	return f
}

// refuse answers a request that does not become a WebSocket with an error in the API's form. code is the
// HTTP status; 0 derives it from err.
func (d *server) refuse(w http.ResponseWriter, r *http.Request, code int, err error) {
	f := d.logFault(r, err)
	if code == 0 {
		code = respond.StatusOf(f)
	}
	h := w.Header()
	respond.RetryAfter(h, f.RetryAfter)
	respond.SetChallenge(w, f)
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"kind": f.Kind, "message": f.Safe,
		"request_id": middleware.GetReqID(r.Context())}})
}
