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

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/linkwire"
	"agentsite/internal/task"
)

// Callers returns the actors of bearer tokens.
type Callers interface {
	AuthenticateToken(r *http.Request, token string) (ident.Actor, error)
}

// Accounts watches the rights of actors.
type Accounts interface {
	// Guard returns a context that ends with the actor's right, and a function to stop watching.
	Guard(ctx context.Context, actor ident.Actor) (context.Context, func())
}

// Agents decides which agent an actor speaks for.
type Agents interface {
	// Claim finds or registers the agent that hello names, for the actor.
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
	// Attach takes the connections.
	Attach task.Attacher
	// PerAccount bounds the connections of one account, 1,100. PerAddress bounds the unproved
	// connections of one address, 64.
	PerAccount, PerAddress int
	// RecheckEvery is the interval at which token and right are checked again, for changes without
	// a signal: an expiry, a transferred agent. 1 min.
	RecheckEvery time.Duration
	Log          *slog.Logger
}

type server struct {
	cfg Config

	asking chan struct{} // free places for calls of services, see runApart

	mu       sync.Mutex     // guards the rest
	accounts map[string]int // open connections
	strange  map[string]int // connections without proof, by address
	conns    map[*linkwire.Socket]struct{}
	stopped  bool
	once     sync.Once // registers for the server's shutdown
}

// New returns the handler of GET /link.
func New(cfg Config) http.Handler {
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
	return &server{cfg: cfg, asking: make(chan struct{}, atOnce), accounts: make(map[string]int),
		strange: make(map[string]int), conns: make(map[*linkwire.Socket]struct{})}
}

// atOnce bounds the connections that call services at the same time. After a restart all agents
// connect at once; the others wait.
const atOnce = 16

// runApart runs f in a goroutine: a query grows the stack, which would stay with the connection for
// as long as it lives.
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
		panic(p) // in the caller's goroutine, where it is recovered
	}
}

// enterCount counts one more of key in m, unless the limit is reached.
func (d *server) enterCount(m map[string]int, key string, most int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m[key] >= most {
		return false
	}
	m[key]++
	return true
}

func (d *server) leaveCount(m map[string]int, key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m[key]--; m[key] <= 0 {
		delete(m, key)
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
	// The connection lives longer than this request, which must not end its queries.
	c := &caller{server: d, r: r.WithContext(context.WithoutCancel(r.Context()))}
	if h := r.Header.Get("Authorization"); h != "" {
		if err := c.proveToken(ident.BearerToken(h)); err != nil {
			d.refuse(w, r, 0, err)
			return
		}
	} else {
		c.addr = request.ClientAddr(r)
		if !d.enterCount(d.strange, c.addr, d.cfg.PerAddress) {
			d.refuse(w, r, 0, fault.Limited(5*time.Second,
				"Too many connections from your address have not sent a token. Wait a moment."))
			return
		}
	}
	s, err := linkwire.Accept(w, r)
	if err != nil {
		c.leaveCounts()
		return // Accept has answered
	}
	if srv, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok {
		d.once.Do(func() { srv.RegisterOnShutdown(d.stopAll) })
	}
	// The server has finished the request. The buffers and the deep stack that it keeps for it are
	// more than an idle agent needs.
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

// addSocket notes a connection, so that it ends with the portal.
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

// stopAll ends all connections when the server stops.
func (d *server) stopAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = true
	for s := range d.conns {
		s.Close(linkwire.ReasonRestart)
	}
}

// offersProtocol reports whether the request offers the subprotocol.
func offersProtocol(r *http.Request) bool {
	for _, h := range r.Header.Values("Sec-WebSocket-Protocol") {
		if slices.ContainsFunc(strings.Split(h, ","),
			func(p string) bool { return strings.TrimSpace(p) == linkwire.Subprotocol }) {
			return true
		}
	}
	return false
}

// logFault logs the details that only the operator may read and returns the fault to answer.
func (d *server) logFault(r *http.Request, err error) *fault.Error {
	f := fault.As(err)
	if f.Kind == fault.Internal && !errors.Is(err, context.Canceled) {
		d.cfg.Log.Error("request failed", "method", r.Method, "path", r.URL.Path, "request_id",
			middleware.GetReqID(r.Context()), "error", err)
	}
	return f
}

// refuse answers a request that does not become a connection, in the API's form. code 0 derives it
// from the error.
func (d *server) refuse(w http.ResponseWriter, r *http.Request, code int, err error) {
	f := d.logFault(r, err)
	if code == 0 {
		code = respond.Status(f.Kind)
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
