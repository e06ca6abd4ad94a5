// Package link is the door for agents that dial in: it takes the WebSocket of
// docs/link.md, finds out who is calling and which agent it speaks for, and
// hands the connection over to whoever runs such agents. It knows the first
// message of the protocol and no other.
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

// Config is what the door needs; the functions are required unless they say
// otherwise.
type Config struct {
	// Authenticate is the actor that a bearer token proves now.
	Authenticate func(r *http.Request, token string) (ident.Actor, error)
	// Guard returns a context that ends when the actor's right does, and how
	// to stop watching.
	Guard func(ctx context.Context, actor ident.Actor) (context.Context, func())
	// Claim finds or makes the agent that hello names, for the actor.
	Claim func(ctx context.Context, actor ident.Actor, h linkwire.Hello) (task.Attached, error)
	// Holds says, as an error, that the actor may not speak for the agent any
	// more. It is asked every RecheckEvery.
	Holds func(ctx context.Context, actor ident.Actor, who task.Attached) error
	// Attach takes the connections.
	Attach task.Attacher
	// PerAccount bounds the connections of one account, 1,100. PerAddress
	// bounds those of one address that have not proved who they are, 64.
	PerAccount, PerAddress int
	// RecheckEvery is how often token and right are proved again, for what
	// ends without a signal: an expiry, an agent given away. 1 min.
	RecheckEvery time.Duration
	Log          *slog.Logger
}

type door struct {
	cfg Config

	asking chan struct{} // places for questions to services, see apart

	mu       sync.Mutex     // guards the rest
	accounts map[string]int // open connections
	strange  map[string]int // connections without proof, by address
	conns    map[*linkwire.Socket]struct{}
	stopped  bool
	once     sync.Once // for being told of the server's end
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
	return &door{cfg: cfg, asking: make(chan struct{}, atOnce), accounts: make(map[string]int), strange: make(map[string]int), conns: make(map[*linkwire.Socket]struct{})}
}

// atOnce is how many connections may ask services at the same time. After a
// restart all agents come at once; the rest waits its turn.
const atOnce = 16

// apart runs f on a stack of its own: a query takes a deep one, which would
// stay with the connection for as long as it lives.
func (d *door) apart(f func()) {
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
		panic(p) // where it is caught
	}
}

// enter counts one more of key in m, unless there are most already.
func (d *door) enter(m map[string]int, key string, most int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m[key] >= most {
		return false
	}
	m[key]++
	return true
}

func (d *door) leave(m map[string]int, key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m[key]--; m[key] <= 0 {
		delete(m, key)
	}
}

// ServeHTTP implements http.Handler. A token in the Authorization header is
// proved before the connection is taken; one in hello right after.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		w.Header().Set("Upgrade", "websocket")
		d.refuse(w, r, http.StatusUpgradeRequired, fault.New(fault.Invalid, "This is where agents connect: open a WebSocket with the subprotocol %s. It is described at /docs/link.", linkwire.Subprotocol))
		return
	}
	if !offers(r) {
		d.refuse(w, r, 0, fault.New(fault.Invalid, "Offer the subprotocol %s in Sec-WebSocket-Protocol. It is described at /docs/link.", linkwire.Subprotocol))
		return
	}
	// The connection outlives this request, which must not end its queries.
	c := &caller{door: d, r: r.WithContext(context.WithoutCancel(r.Context()))}
	if h := r.Header.Get("Authorization"); h != "" {
		if err := c.prove(ident.BearerToken(h)); err != nil {
			d.refuse(w, r, 0, err)
			return
		}
	} else {
		c.addr = request.ClientAddr(r)
		if !d.enter(d.strange, c.addr, d.cfg.PerAddress) {
			d.refuse(w, r, 0, fault.Limited(5*time.Second, "Too many connections from your address have not said who they are. Wait a moment."))
			return
		}
	}
	s, err := linkwire.Accept(w, r)
	if err != nil {
		c.leave()
		return // Accept has answered
	}
	if srv, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok {
		d.once.Do(func() { srv.RegisterOnShutdown(d.stop) })
	}
	// The server is done with it. What it kept of the request, its buffers and
	// a deep stack, is more than all that an idle agent needs.
	c.r.Header, c.r.Body, c.r.Response = nil, nil, nil
	go func() {
		defer func() {
			if p := recover(); p != nil {
				d.cfg.Log.Error("connection of an agent panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			}
		}()
		defer c.leave()
		defer s.Wait()
		defer s.Close(linkwire.ReasonRestart)
		if d.open(s) {
			defer d.shut(s)
			c.serve(c.r.Context(), s)
		}
	}()
}

// open notes a connection, so that it ends with the portal.
func (d *door) open(s *linkwire.Socket) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.stopped {
		d.conns[s] = struct{}{}
	}
	return !d.stopped
}

func (d *door) shut(s *linkwire.Socket) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.conns, s)
}

// stop ends all connections because the server does.
func (d *door) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = true
	for s := range d.conns {
		s.Close(linkwire.ReasonRestart)
	}
}

// offers reports whether the request offers our subprotocol.
func offers(r *http.Request) bool {
	for _, h := range r.Header.Values("Sec-WebSocket-Protocol") {
		if slices.ContainsFunc(strings.Split(h, ","), func(p string) bool { return strings.TrimSpace(p) == linkwire.Subprotocol }) {
			return true
		}
	}
	return false
}

// tell logs what only the operator may read and returns what to answer.
func (d *door) tell(r *http.Request, err error) *fault.Error {
	f := fault.As(err)
	if f.Kind == fault.Internal && !errors.Is(err, context.Canceled) {
		d.cfg.Log.Error("request failed", "method", r.Method, "path", r.URL.Path, "request_id", middleware.GetReqID(r.Context()), "error", err)
	}
	return f
}

// refuse answers a request that does not become a connection, in the API's
// form. code 0 follows from the error.
func (d *door) refuse(w http.ResponseWriter, r *http.Request, code int, err error) {
	f := d.tell(r, err)
	if code == 0 {
		code = respond.Status(f.Kind)
	}
	h := w.Header()
	respond.RetryAfter(h, f.RetryAfter)
	respond.SetChallenge(w, f)
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"kind": f.Kind, "message": f.Safe, "request_id": middleware.GetReqID(r.Context())}})
}
