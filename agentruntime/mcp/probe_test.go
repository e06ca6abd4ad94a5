package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/egress"
	"agentsite/internal/hub"
	"agentsite/internal/testing/agenttest"
)

// answering always gives the same answer.
func answering(t *testing.T, status int, contentType, body string) string {
	t.Helper()
	return speaking(t, func(w http.ResponseWriter, _ rpc) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		io.WriteString(w, body)
	})
}

// rpc is what a hand-made server sees of a request.
type rpc struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Path   string          `json:"-"`
	ctx    context.Context
}

// speaking is a server made by hand.
func speaking(t testing.TB, fn func(w http.ResponseWriter, r rpc)) string {
	t.Helper()
	return speakingOn(t, nil, fn)
}

func speakingOn(t testing.TB, n *agenttest.Network, fn func(w http.ResponseWriter, r rpc)) string {
	t.Helper()
	s := n.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		msg := rpc{Method: r.Method, Path: r.URL.Path, ctx: r.Context()}
		if r.Method == http.MethodPost {
			msg.Method = ""
		}
		b, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		json.Unmarshal(b, &msg)
		fn(w, msg)
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

// begun answers what comes before a call as an old server without sessions
// does, and says whether it did.
func begun(w http.ResponseWriter, r rpc) bool {
	switch {
	case r.Method == "server/discover":
		fmt.Fprintf(reply(w), `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, r.ID)
	case r.Method == "initialize":
		fmt.Fprintf(reply(w), `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-03-26","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}}`, r.ID)
	case r.Method == "ping":
		fmt.Fprintf(reply(w), `{"jsonrpc":"2.0","id":%s,"result":{}}`, r.ID)
	case strings.HasPrefix(r.Method, "notifications/"):
		w.WriteHeader(http.StatusAccepted)
	default:
		return false
	}
	return true
}

func reply(w http.ResponseWriter) io.Writer {
	w.Header().Set("Content-Type", "application/json")
	return w
}

// TestProbe_SilentServers probes servers that answer nothing at all, or nothing
// after the session has begun.
func TestProbe_SilentServers(t *testing.T) {
	for name, begins := range map[string]bool{"at once": false, "after begin": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := agenttest.NewNetwork()
				url := speakingOn(t, network, func(w http.ResponseWriter, r rpc) {
					if !begins || r.Method == "ping" || !begun(w, r) {
						<-r.ctx.Done()
					}
				})
				impatient := egress.New(egress.Config{
					AllowCIDR: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
					FirstByte: 5 * time.Second, Dial: network.Dial,
				})
				t.Cleanup(impatient.CloseIdle)
				for want, rt := range map[string]http.RoundTripper{
					"Timed out after 5s waiting for an answer.": impatient.RoundTripper(),
					"The server did not answer in time.":        network.Transport(t),
				} {
					live := NewProber(rt).Probe(t.Context(), hub.Target{Kind: hub.MCP, Endpoint: url})
					if live.State != hub.Unreachable || live.Reason != want {
						t.Errorf("%+v, want %s", live, want)
					}
				}
			})
		})
	}
}

// TestProbe_ReturnsInTime asks a server that begins, then hangs in whatever
// it is asked, the end of the session included.
func TestProbe_ReturnsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := agenttest.NewNetwork()
		url := speakingOn(t, network, func(w http.ResponseWriter, r rpc) {
			if r.Method == "initialize" {
				w.Header().Set("Mcp-Session-Id", "abc")
			}
			if r.Method == "ping" || r.Method == "DELETE" || r.Method == "notifications/cancelled" || !begun(w, r) {
				<-r.ctx.Done()
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		live := NewProber(network.Transport(t)).Probe(ctx, hub.Target{Kind: hub.MCP, Endpoint: url})
		if took := time.Since(start); live.State != hub.Unreachable || took > 12*time.Second {
			t.Errorf("%+v after %v", live, took)
		}
	})
}

func TestProbe_Verdicts(t *testing.T) {
	gone := "http://" + agenttest.Refusing(t)
	// ended begins as it should, then does something else.
	ended := func(then func(w http.ResponseWriter, r rpc)) string {
		return speaking(t, func(w http.ResponseWriter, r rpc) {
			if r.Method == "ping" || !begun(w, r) {
				then(w, r)
			}
		})
	}
	modern, old := agenttest.NewMCPServer(t, true), agenttest.NewMCPServer(t, false)
	keyed := agenttest.NewMCPServer(t, true).WithKey("k-1")
	for name, tt := range map[string]struct {
		url, config, secret string
		want                hub.Live
		reason              string
	}{
		"modern":         {modern.Endpoint(agenttest.Echo), `{}`, "", hub.Alive, ""},
		"legacy":         {old.Endpoint(agenttest.Echo), ``, "", hub.Alive, ""},
		"legacy known":   {old.Endpoint(agenttest.Echo), `{"version":"2025-06-18"}`, "", hub.Alive, ""},
		"became modern":  {modern.Endpoint(agenttest.Echo), `{"version":"2025-06-18"}`, "", hub.Alive, ""},
		"became legacy":  {old.Endpoint(agenttest.Echo), `{"version":"2026-07-28"}`, "", hub.Alive, ""},
		"sessionless":    {speaking(t, func(w http.ResponseWriter, r rpc) { begun(w, r) }), ``, "", hub.Alive, ""},
		"keyed, with":    {keyed.Endpoint(agenttest.Echo), ``, "k-1", hub.Alive, ""},
		"keyed, without": {keyed.Endpoint(agenttest.Echo), ``, "", hub.NeedsAuth, "The server asks for credentials."},
		"keyed, wrong":   {keyed.Endpoint(agenttest.Echo), ``, "k-2", hub.NeedsAuth, "The server refused the stored credentials."},
		"forbidden":      {answering(t, 403, "text/plain", "no"), ``, "", hub.NeedsAuth, "The server asks for credentials."},
		"no ping": {ended(func(w http.ResponseWriter, r rpc) {
			fmt.Fprintf(reply(w), `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"ping?"}}`, r.ID)
		}), ``, "", hub.Alive, ""},
		"dies after begin": {ended(func(w http.ResponseWriter, r rpc) { w.WriteHeader(503) }), ``, "", hub.Unreachable, "It answered with HTTP 503 and nothing."},
		"web page":         {answering(t, 200, "text/html", "<html>hi</html>"), ``, "", hub.WrongProtocol, "This is not an MCP server: it answered with a web page."},
		"not found":        {answering(t, 404, "text/html", "<html>hi</html>"), ``, "", hub.WrongProtocol, "This is not an MCP server: it answered with HTTP 404 and a web page."},
		"no POST":          {answering(t, 405, "text/plain", "no"), ``, "", hub.WrongProtocol, "This is not an MCP server: it answered with HTTP 405 and something that is not MCP."},
		"other JSON":       {answering(t, 200, "application/json", `{"hello":1}`), ``, "", hub.WrongProtocol, "This is not an MCP server: it answered with JSON that is not MCP."},
		"nothing":          {answering(t, 200, "application/json", ``), ``, "", hub.WrongProtocol, "This is not an MCP server: it answered with nothing."},
		"a2a":              {answering(t, 200, "application/json", `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"<b>x</b>"}}`), ``, "", hub.WrongProtocol, "This is not an MCP server: it speaks JSON-RPC but does not know MCP."},
		"garbage":          {answering(t, 200, "text/event-stream", "data: \x00\xff{{{\n\n"), ``, "", hub.WrongProtocol, "This is not an MCP server: it answered with something that is not MCP."},
		"old version": {speaking(t, func(w http.ResponseWriter, r rpc) {
			fmt.Fprintf(reply(w), `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"1999-01-01","capabilities":{}}}`, r.ID)
		}), ``, "", hub.WrongProtocol, "This is not an MCP server: it speaks a version of MCP that this portal does not."},
		"redirect": {speaking(t, func(w http.ResponseWriter, r rpc) {
			w.Header().Set("Location", "http://10.0.0.1/mcp")
			w.WriteHeader(307)
		}), ``, "s3cret", hub.WrongProtocol, "The answer redirects to 10.0.0.1; redirects are not followed, so nothing was done; use the final address."},
		"broken":    {answering(t, 503, "text/html", "<html>"), ``, "", hub.Unreachable, "It answered with HTTP 503 and a web page."},
		"limited":   {answering(t, 429, "text/plain", "slow down"), ``, "", hub.Unreachable, "It answered with HTTP 429 and something that is not MCP, which says \"slow down\"."},
		"too large": {answering(t, 200, "application/json", `{"jsonrpc":"2.0","id":1,"result":{"x":"`+strings.Repeat("x", 9<<20)+`"}}`), ``, "", hub.WrongProtocol, "This is not an MCP server: the answer is larger than 8 MiB."},
		"gone":      {gone, ``, "", hub.Unreachable, "Connection refused."},
		"private":   {"http://169.254.169.254/mcp", ``, "", hub.Unreachable, "Refused to connect to a private address."},
		"no URL":    {"nonsense", ``, "", hub.WrongProtocol, ""},
		"settings":  {gone, `{"tools":7}`, "", hub.Unknown, "The agent's settings cannot be read."},
	} {
		t.Run(name, func(t *testing.T) {
			p := NewProber(transport(t))
			live := p.Probe(t.Context(), hub.Target{Kind: hub.MCP, Endpoint: tt.url, Config: json.RawMessage(tt.config), Secret: tt.secret})
			if live.State != tt.want || live.Reason != tt.reason && tt.reason != "" || live.CheckedAt.IsZero() || live.State == hub.Alive && live.Latency <= 0 {
				t.Errorf("%s %q, want %s %q", live.State, live.Reason, tt.want, tt.reason)
			}
		})
	}
	for _, s := range []*agenttest.MCPServer{modern, old, keyed} {
		if methods, _ := s.Methods(); slices.Contains(methods, "tools/call") || slices.Contains(methods, "tools/list") {
			t.Errorf("the probe asked for %v", methods)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := NewProber(transport(t))
	if live := p.Probe(ctx, hub.Target{Kind: hub.MCP, Endpoint: modern.Endpoint(agenttest.Echo)}); live.State != hub.Unreachable {
		t.Errorf("canceled: %+v", live)
	}
	if live := p.Probe(t.Context(), hub.Target{Kind: hub.A2A}); live.State != hub.Unknown {
		t.Errorf("a2a: %+v", live)
	}
}
