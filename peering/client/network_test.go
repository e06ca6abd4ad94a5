package client_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"agentsite/handlers/peer"
	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/federation/guard"
	"agentsite/internal/ident"
	"agentsite/internal/record"
	"agentsite/internal/testing/federationtest"
	"agentsite/internal/testing/recordtest"
	"agentsite/peering/client"
)

// wires is a network in memory: handlers by host.
type wires struct {
	mu    sync.Mutex // guards the rest
	hosts map[string]http.Handler
	log   []string
}

var discard = slog.New(slog.DiscardHandler)

var errDown = errors.New("connection refused")

// RoundTrip implements http.RoundTripper.
func (n *wires) RoundTrip(r *http.Request) (*http.Response, error) {
	n.mu.Lock()
	h := n.hosts[r.URL.Host]
	n.log = append(n.log, r.Method+" "+r.URL.String())
	n.mu.Unlock()
	if h == nil {
		return nil, errDown
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	body := r.Body
	if body == nil {
		body = http.NoBody
	}
	// The other side has a context of its own: that of a router would lead
	// this one astray.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer context.AfterFunc(r.Context(), cancel)()
	in := httptest.NewRequestWithContext(ctx, r.Method, r.URL.RequestURI(), body)
	in.Host, in.Header = r.URL.Host, r.Header.Clone()
	out := httptest.NewRecorder()
	h.ServeHTTP(out, in)
	resp := out.Result()
	now := clock.Now()
	if a, ok := h.(ahead); ok {
		now = now.Add(a.by)
	}
	resp.Header.Set("Date", now.Format(http.TimeFormat))
	return resp, nil
}

func (n *wires) set(host string, h http.Handler) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.hosts == nil {
		n.hosts = make(map[string]http.Handler)
	}
	n.hosts[host] = h
}

// requests counts what was sent.
func (n *wires) requests() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.log)
}

func (n *wires) asked(what string) (count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.log {
		if l == what {
			count++
		}
	}
	return count
}

// site is a portal on the wires.
type site struct {
	origin   string
	keys     *ident.Keys
	op       *ident.Operational
	cards    federationtest.Cards
	replica  *federationtest.Replica
	registry *federationtest.Registry
	nonces   *federationtest.Nonces
	gate     *record.Gate
	self     *federation.Self
	client   *client.Client
	guard    *guard.Guard
	door     *peer.Door
	greeted  func(context.Context, guard.Asker, []byte) // of serve
}

// Counts implements peer.Counter.
func (s *site) Counts() (portals, agents int) { return 1, 2 }

// OnHandshake implements peer.HandshakeObserver.
func (s *site) OnHandshake(ctx context.Context, asker guard.Asker, head []byte) {
	if s.greeted != nil {
		s.greeted(ctx, asker, head)
	}
}

// echo answers who asked what.
func echo(_ context.Context, a guard.Asker, r *http.Request, body []byte) (any, error) {
	return map[string]string{"portal": string(a.Portal), "path": r.URL.RequestURI(), "body": string(body), "for": a.For, "hops": a.Hops, "budget": a.Budget}, nil
}

func newSite(t testing.TB, n *wires, host string, change ...func(*federation.SelfConfig)) *site {
	t.Helper()
	dir := t.TempDir()
	keys, err := ident.CreateKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	scheme := "https://"
	if strings.HasPrefix(host, "127.") {
		scheme = "http://"
	}
	s := &site{origin: scheme + host, keys: keys, replica: new(federationtest.Replica), registry: new(federationtest.Registry), nonces: new(federationtest.Nonces)}
	if s.op, err = ident.OpenOperational(dir, keys.Public(), clock.Now()); err != nil {
		t.Fatal(err)
	}
	cfg := federation.SelfConfig{Network: recordtest.Network, Origin: s.origin, Name: host, Root: keys.Portal, Public: keys.Public(), Keys: s.op, Cards: &s.cards, Replica: s.replica, Log: slog.New(slog.DiscardHandler)}
	for _, c := range change {
		c(&cfg)
	}
	if s.gate, err = record.NewGate(cfg.Network, s.replica); err != nil {
		t.Fatal(err)
	}
	cfg.Gate = s.gate
	if s.self, err = federation.NewSelf(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	s.client = client.New(client.Config{Self: s.self, Gate: s.gate, Replica: s.replica, Registry: s.registry, RoundTripper: n, Stream: n, Log: cfg.Log})
	s.serve(t, n)
	return s
}

// serve starts the portal's door, again perhaps.
func (s *site) serve(t testing.TB, n *wires) {
	t.Helper()
	var err error
	s.guard, err = guard.New(t.Context(), guard.Config{Self: s.self, Gate: s.gate, Registry: s.registry, Nonces: s.nonces, Prover: s.client, Started: clock.Now(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s.door = peer.New(peer.Config{Self: s.self, Guard: s.guard, Replica: s.replica, Version: "1", Log: slog.New(slog.DiscardHandler), Peers: s, Handshakes: s})
	s.door.Handle(http.MethodPost, "/echo", echo, peer.Limits{})
	s.door.Handle(http.MethodPut, "/echo", echo, peer.Limits{})
	s.door.Handle(http.MethodGet, "/echo/{x}", echo, peer.Limits{})
	s.door.Handle(http.MethodGet, "/lines", func(context.Context, guard.Asker, *http.Request, []byte) (any, error) {
		return peer.Lines{List: [][]byte{[]byte(strings.Repeat("x", 8000)), []byte("y")}, More: true}, nil
	}, peer.Limits{})
	r := chi.NewRouter()
	r.Use(middleware.ClientIPFromRemoteAddr)
	s.door.Routes(r)
	n.set(federation.HostOf(s.origin), r)
}

func (s *site) do(t testing.TB, to *site, method, path, body string) (int, string, error) {
	t.Helper()
	var b []byte
	if body != "" {
		b = []byte(body)
	}
	a, err := s.client.Do(t.Context(), to.origin, to.self.ID(), method, path, b, 1<<20)
	if err != nil {
		return 0, "", err
	}
	return a.Status, string(a.Body), nil
}

// readAll reads and closes.
func readAll(t testing.TB, r io.ReadCloser) string {
	t.Helper()
	b, err := io.ReadAll(r)
	r.Close()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// end ends a portal in order.
func end(t testing.TB, s *site) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if err := s.guard.Run(ctx); err != nil {
		t.Fatal(err)
	}
}
