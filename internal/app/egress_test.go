package app_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/testing/apptest"
)

// trap counts connections to a port of every loopback address.
type trap struct {
	port string
	only string // the one address that counts, "" for all
	hits atomic.Int64
	mu   sync.Mutex // guards seen
	seen []string
}

// newTrap counts connections, all of them or those to the address only.
func newTrap(t *testing.T, only string) *trap {
	t.Helper()
	l4, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	x := &trap{only: only}
	_, x.port, _ = net.SplitHostPort(l4.Addr().String())
	listeners := []net.Listener{l4}
	if l6, err := net.Listen("tcp6", "[::1]:"+x.port); err == nil {
		listeners = append(listeners, l6)
	}
	for _, l := range listeners {
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			x.mu.Lock()
			x.seen = append(x.seen, fmt.Sprint(r.RemoteAddr, " ", r.Method, " ", r.Host, r.URL, " ", r.UserAgent()))
			x.mu.Unlock()
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"object":"list","data":[{"id":"echo-1","object":"model"}]}`)
		}), ConnState: func(c net.Conn, s http.ConnState) {
			if s == http.StateNew && (x.only == "" || strings.HasPrefix(c.LocalAddr().String(), x.only+":")) {
				x.hits.Add(1)
			}
		}}
		go srv.Serve(l)
		t.Cleanup(func() { srv.Close() })
	}
	return x
}

// forms are ways to write hosts that must not be reached.
var forms = strings.Fields(`
	127.0.0.1 127.0.0.1. 127.1 127.0.1 127.255.255.254 127.9.9.9 0 0.0.0.0 00 0x0 2130706433 017700000001 0x7f000001 0x7F.0.0.1 0x7f.1 0177.0.0.1 0177.0.0.01
	127.0x0.0.1 127.0.0.0x1 127.000.000.001 127.0.0.1.0 127.0.0 4294967295 -1 10.0.0.1 172.16.0.1 192.168.0.1 169.254.169.254 2852039166 0xA9FEA9FE 0251.0376.0251.0376
	100.64.0.1 192.0.0.192 192.0.2.1 198.18.0.1 224.0.0.1 240.0.0.1 255.255.255.255 0.1.2.3
	[::1] [::] [0:0:0:0:0:0:0:1] [::ffff:127.0.0.1] [::ffff:7f00:1] [::ffff:a9fe:a9fe] [::127.0.0.1] [::7f00:1] [::ffff:0:127.0.0.1] [64:ff9b::7f00:1] [64:ff9b::127.0.0.1]
	[64:ff9b:1::7f00:1] [2002:7f00:1::] [2001:0:7f00:1::] [fc00::1] [fd00:ec2::254] [fe80::1] [fe80::1%25lo] [::1%25lo] [fec0::1] [ff02::1] [127.0.0.1] [::1 ::1
	localhost LOCALHOST localhost. foo.localhost %31%32%37.0.0.1 127%2e0%2e0%2e1 127.0.0.1%00.example.com user@127.0.0.1 example.com@127.0.0.1
	127.0.0.1#@example.com 127.0.0.1?@example.com example.com\@127.0.0.1 127.0.0.1/@example.com ①②⑦.⓪.⓪.① 127。0。0。1 １２７.0.0.1`)

// bearers makes n accounts with tokens, so that no limit by account counts.
func bearers(t *testing.T, p *apptest.Portal, n int) []*apptest.Client {
	t.Helper()
	out := make([]*apptest.Client, n)
	for i := range out {
		name := apptest.Fresh("maker")
		if err := p.Control().AddUser(t.Context(), name, apptest.Password, false); err != nil {
			t.Fatal(err)
		}
		secret, err := p.Control().AddToken(t.Context(), name, "t", nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		out[i] = p.Bearer(t, secret)
	}
	return out
}

func TestRegistration_ReachesNothingPrivate(t *testing.T) {
	t.Parallel()
	if len(forms) < 60 {
		t.Fatalf("only %d forms", len(forms))
	}
	x := newTrap(t, "")
	p := apptest.Start(t, func(c *app.Config) { c.URL = "http://portal.example" })
	makers := bearers(t, p, len(forms)/15+1)
	var wg sync.WaitGroup
	slots := make(chan struct{}, 8)
	for i, f := range forms {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			c := makers[i%len(makers)]
			for _, scheme := range []string{"http", "https"} {
				at := scheme + "://" + f + ":" + x.port
				for _, body := range []map[string]any{
					{"name": apptest.Fresh("x"), "description": "X.", "kind": "openai", "endpoint": at + "/v1", "visibility": "public", "config": map[string]any{"model": "m", "key": "k-123456"}},
					{"name": apptest.Fresh("x"), "description": "X.", "kind": "a2a", "endpoint": at, "visibility": "public", "config": map[string]any{"token": "k-123456"}},
					{"endpoint": at},
				} {
					if a := c.Do(http.MethodPost, "/api/v1/agents", body); a.Status == http.StatusCreated {
						var out struct {
							Name     string
							Liveness struct{ State string }
						}
						json.Unmarshal([]byte(a.Body), &out)
						if out.Liveness.State == "alive" {
							t.Errorf("%s is alive", at)
						}
						c.Do(http.MethodPost, "/api/v1/agents/"+out.Name+"/check", nil)
					}
				}
			}
		})
	}
	wg.Wait()
	if n := x.hits.Load(); n != 0 {
		t.Errorf("%d connections to private addresses: %q", n, x.seen)
	}
}

func TestRegistration_AllowedRangesAreReached(t *testing.T) {
	t.Parallel()
	x := newTrap(t, "")
	p := apptest.Start(t, func(c *app.Config) { c.URL, c.AllowCIDR = "http://portal.example", "127.0.0.0/8" })
	c := bearers(t, p, 1)[0]
	var out struct{ Liveness struct{ State string } }
	c.Get(http.MethodPost, "/api/v1/agents", map[string]any{"name": "allowed", "description": "X.", "kind": "openai", "endpoint": "http://127.0.0.1:" + x.port + "/v1",
		"visibility": "public", "config": map[string]any{"model": "echo-1"}}, http.StatusCreated, &out)
	if out.Liveness.State != "alive" || x.hits.Load() == 0 {
		t.Errorf("%s after %d connections", out.Liveness.State, x.hits.Load())
	}
}

// on serves h on one loopback address.
func on(t *testing.T, addr string, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	l, err := net.Listen("tcp", addr+":0")
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// What an allowed host says leads nowhere else: the card's interface, and
// redirects of cards, probes and calls.
func TestAllowedHost_LeadsNowhereElse(t *testing.T) {
	t.Parallel()
	x := newTrap(t, "127.0.0.1") // a card may name its own host by any of its names
	target := "http://127.0.0.1:" + x.port
	far := on(t, "127.0.0.2", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/card"):
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(map[string]any{"name": "Card", "description": "D", "version": "1", "capabilities": map[string]any{"streaming": true},
				"defaultInputModes": []string{"text/plain"}, "defaultOutputModes": []string{"text/plain"}, "skills": []any{},
				"iconUrl": target, "documentationUrl": target, "provider": map[string]any{"organization": "x", "url": target},
				"supportedInterfaces": []any{map[string]any{"url": target, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}}})
		default:
			code := http.StatusFound
			fmt.Sscanf(r.URL.Path, "/r%d", &code)
			w.Header().Set("Location", target+r.URL.Path)
			w.WriteHeader(code)
		}
	})
	p := apptest.Start(t, func(c *app.Config) { c.URL, c.AllowCIDR = "http://portal.example", "127.0.0.2/32" })
	c := bearers(t, p, 1)[0]
	key := p.Canary("canary-redirect-7d1f")
	c.Do(http.MethodPost, "/api/v1/agents", map[string]any{"endpoint": far.URL + "/card"})
	c.Do(http.MethodPost, "/api/v1/agents", map[string]any{"endpoint": far.URL + "/r302"})
	for _, code := range []int{301, 302, 303, 307, 308} {
		for _, kind := range []string{"openai", "a2a"} {
			name := apptest.Fresh("redirect")
			config := map[string]any{"model": "m", "key": key}
			if kind == "a2a" {
				config = map[string]any{"token": key}
			}
			a := c.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": name, "description": "X.", "kind": kind, "endpoint": fmt.Sprintf("%s/r%d", far.URL, code),
				"visibility": "public", "config": config}, http.StatusCreated)
			if strings.Contains(a.Body, `"alive"`) {
				t.Errorf("%s: a redirect is alive", kind)
			}
			room := c.Conversation(name)
			s := c.Events(room)
			end := s.Answered(c.Say(room, "Hello").Tasks[0].ID)
			if end.Task.State != "failed" || end.Task.Reason == "" {
				t.Errorf("%s %d: %s", kind, code, end.Raw)
			}
		}
	}
	if n := x.hits.Load(); n != 0 {
		t.Errorf("%d connections to where nobody may call: %q", n, x.seen)
	}
}
