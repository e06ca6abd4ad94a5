package detect_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"agentsite/agentruntime/detect"
	"agentsite/internal/egress"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/offer"
	"agentsite/internal/testing/agenttest"
)

// host serves fixed answers by path; other paths are 404.
type host map[string]http.HandlerFunc

func (h host) start(t *testing.T) string {
	mux := http.NewServeMux()
	for path, serve := range h {
		mux.HandleFunc(path, serve)
	}
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

func answer(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// card serves an agent card that names the path of its host as the address of the agent.
func card(name, path string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"name":%q,"description":"Says it again.","version":"1","skills":[{"id":"echo","name":"Echo"}],
			"supportedInterfaces":[{"url":"http://%s%s","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`, name, r.Host, path)
	}
}

// tools serves a real MCP server at any path.
func tools(t *testing.T) http.HandlerFunc {
	s := agenttest.NewMCPServer(t, true)
	to, err := url.Parse(s.Endpoint(agenttest.Echo))
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host, r.Out.URL.Path, r.Out.Host = to.Scheme, to.Host, to.Path, to.Host
	}}
	return proxy.ServeHTTP
}

const (
	wellKnown = "/.well-known/agent-card.json"
	modelList = `{"object":"list","data":[{"id":"small-1"},{"id":"large-2"}]}`
)

func testReader(t *testing.T) detect.Reader {
	c := egress.New(egress.Config{AllowCIDR: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		FirstByte: time.Minute, PerHost: 64})
	t.Cleanup(c.CloseIdle)
	return detect.New(c.RoundTripper())
}

func TestReader_TellWhatIsAtAnAddress(t *testing.T) {
	t.Parallel()
	models := answer(200, "application/json", modelList)
	locked := func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusUnauthorized) }
	full := host{"/mcp": tools(t), wellKnown: card("Root", "/a2a"), "/v1/models": models,
		"/agents/echo" + wellKnown: card("Echo", "/agents/echo/a2a")}
	page := answer(200, "text/html", "<!doctype html><title>Shop</title>")
	for _, tt := range []struct {
		name string
		host host
		path string
		// kind and at describe the agent that is taken; offers the addresses that are offered instead; says the error.
		kind   hub.Kind
		at     string
		offers string
		says   string
	}{
		{"MCP", full, "/mcp", hub.MCP, "/mcp", "", ""},
		{"MCP with a slash", host{"/mcp/": tools(t)}, "/mcp/", hub.MCP, "/mcp/", "", ""},
		{"endpoint of the card of the root", full, "/a2a", hub.A2A, "/a2a", "", ""},
		{"endpoint of a card above", full, "/agents/echo/a2a", hub.A2A, "/agents/echo/a2a", "", ""},
		{"page of an agent", full, "/agents/echo", hub.A2A, "/agents/echo/a2a", "", ""},
		{"address of a card", full, wellKnown, hub.A2A, "/a2a", "", ""},
		{"base URL of a model", full, "/v1", hub.OpenAI, "/v1", "", ""},
		{"host of a card", full, "", hub.A2A, "/a2a", "", ""},
		{"host of a model", host{"/v1/models": models}, "", hub.OpenAI, "/v1", "", ""},
		{"host of a model, other page", host{"/v1/models": models, "/": page}, "/", hub.OpenAI, "/v1", "", ""},
		{"host of tools", host{"/mcp": tools(t)}, "/", hub.MCP, "/mcp", "", ""},
		{"host of tools and a model", host{"/mcp": tools(t), "/v1/models": models}, "", "", "", "/mcp /v1", ""},
		{"wrong path", full, "/wrong", "", "", "/mcp " + wellKnown + " /v1", ""},
		{"wrong path, three deep", full, "/agents/nobody/a2a", "", "", "/mcp " + wellKnown + " /v1", ""},
		{"misspelt agent beside the root's", host{wellKnown: card("Root", "/a2a")}, "/a2b", "", "", wellKnown, ""},
		{"path of tools that are elsewhere", host{wellKnown: card("Root", "/a2a")}, "/mcp", "", "", wellKnown, ""},
		{"example of a model", full, "/v1/chat/completions", "", "", "/mcp " + wellKnown + " /v1", ""},
		{"models below a path", host{"/llama/v1/models": models}, "/llama", "", "", "/llama/v1", ""},
		{"locked tools", host{"/mcp": locked, wellKnown: card("Root", "/a2a")}, "/mcp", "", "", "", "Choose MCP server and give the key"},
		{"locked model", host{"/v1/models": locked}, "/v1", "", "", "", "Choose Model or assistant and give the key"},
		{"locked model of a host", host{"/v1/models": locked}, "", "", "", "", "asks for a key"},
		{"all locked", host{"/": locked}, "/x", "", "", "", "asks for a key"},

		{"web page everywhere", host{"/": page}, "/agent", "", "", "", "a web page"},
		{"nothing", host{}, "/agent", "", "", "", "HTTP 404"},
		{"failing", host{"/": answer(500, "text/plain", "oops")}, "/agent", "", "", "", "HTTP 500"},
		{"leads away", host{"/": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://10.0.0.1/", http.StatusTemporaryRedirect)
		}},
			"/agent", "", "", "", "No agent card was found"},
		{"endless list", host{"/": answer(200, "application/json", strings.Repeat("[", 1<<20))}, "/agent", "", "", "", "larger than"},
		{"null", host{"/": answer(200, "application/json", "null")}, "", "", "", "", "not "},
		{"empty list of models", host{"/v1/models": answer(200, "application/json", `{"data":[]}`)}, "/v1", hub.OpenAI, "/v1", "", ""},
		{"card of another host", host{wellKnown: answer(200, "application/json",
			`{"name":"x","supportedInterfaces":[{"url":"http://10.0.0.1/a2a","protocolBinding":"JSONRPC"}]}`)},
			"", "", "", "", "another host"},
		{"card that claims every path", host{wellKnown: answer(200, "application/json",
			`{"name":"x","url":"/","skills":[{"id":"a","name":"A"}],"protocolVersion":"0.3"}`)}, "/wrong", "", "", wellKnown, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			base := tt.host.start(t)
			d, err := testReader(t).Read(t.Context(), base+tt.path)
			var other *offer.ElsewhereError
			switch {
			case tt.kind != "":
				if err != nil || d.Kind != tt.kind || d.Endpoint != base+tt.at {
					t.Errorf("%s %s, %v", d.Kind, d.Endpoint, err)
				}
			case tt.offers != "":
				if !errors.As(err, &other) {
					t.Fatalf("took %s %s, %v", d.Kind, d.Endpoint, err)
				}
				var got []string
				for _, f := range other.Found {
					got = append(got, strings.TrimPrefix(f.Address, base))
					// What is offered is taken when it is chosen.
					if again, err := testReader(t).Read(t.Context(), f.Address); err != nil || again.Kind != f.Kind {
						t.Errorf("the offer %s leads to %s %s, %v", f.Address, again.Kind, again.Endpoint, err)
					}
				}
				if strings.Join(got, " ") != tt.offers {
					t.Errorf("offers %q", got)
				}
				if text := fault.As(err).Fields["endpoint"]; !fault.Is(err, fault.Invalid) || !strings.Contains(text, other.Found[0].Title) {
					t.Errorf("says %q", text)
				}
			default:
				if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.As(err).Fields["endpoint"], tt.says) {
					t.Errorf("took %q, %v", d.Endpoint, err)
				}
			}
		})
	}
}

// More requests are sent for one address than the client makes to a host without a server before it pauses. The error
// names the cause all the same.
func TestReader_NamesTheCauseWhereNothingListens(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(nil)
	s.Close()
	r := testReader(t)
	for i := range 4 {
		_, err := r.Read(t.Context(), s.URL+"/some/path")
		text := fault.As(err).Fields["endpoint"]
		if !strings.Contains(text, "connection refused") {
			t.Errorf("read %d: %q", i, text)
		}
	}
}

func TestReader_KnownKindTakesNoOtherAgent(t *testing.T) {
	t.Parallel()
	base := host{wellKnown: card("Root", "/a2a")}.start(t)
	r := testReader(t)
	if d, err := r.ReadAs(t.Context(), hub.Target{Kind: hub.A2A, Endpoint: base + "/wrong"}); err == nil {
		t.Errorf("a wrong path became %s", d.Endpoint)
	}
	was := fmt.Appendf(nil, `{"card_url":%q}`, base+wellKnown)
	d, err := r.ReadAs(t.Context(), hub.Target{Kind: hub.A2A, Endpoint: base + "/moved", Config: was})
	if err != nil || d.Endpoint != base+"/a2a" {
		t.Errorf("an agent of this card that moved: %s, %v", d.Endpoint, err)
	}
}

func TestReader_StopWithTheirCaller(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	base := host{"/": func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // from here on the server notices that the client left
		cancel()
		<-r.Context().Done()
	}}.start(t)
	if _, err := testReader(t).Read(ctx, base+"/agent"); err == nil {
		t.Error("read a silent address")
	}
}
