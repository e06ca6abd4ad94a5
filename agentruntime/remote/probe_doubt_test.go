package remote

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agentsite/internal/hub"
)

// handled starts a server and fails the test if it is made to work.
func handled(t *testing.T, h http.HandlerFunc) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/chat/completions") {
			t.Error("the model was asked")
		}
		h(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestProbe_AsksTwiceWhenInDoubt(t *testing.T) {
	p := NewProber(transport(t))
	internal := func(always bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			var req struct{ Method string }
			json.NewDecoder(r.Body).Decode(&req)
			code := -32601
			if always || req.Method == "GetTask" {
				code = -32603
			}
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":"1","error":{"code":%d,"message":"x"}}`, code)
		}
	}
	rest := func(always bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if !always && strings.HasSuffix(r.URL.Path, "/none-such") {
				http.NotFound(w, r)
				return
			}
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, `{"error":{"code":500,"status":"INTERNAL","message":"x"}}`)
		}
	}
	for _, tt := range []struct {
		what, config string
		h            http.HandlerFunc
		want         hub.Live
	}{
		{"careless", ``, internal(false), hub.Alive},
		{"failing", ``, internal(true), hub.Unreachable},
		{"careless", `{"binding":"HTTP+JSON"}`, rest(false), hub.Alive},
		{"failing", `{"binding":"HTTP+JSON"}`, rest(true), hub.Unreachable},
	} {
		live := p.Probe(t.Context(), hub.Target{Kind: hub.A2A, Endpoint: handled(t, tt.h), Config: json.RawMessage(tt.config)})
		if live.State != tt.want {
			t.Errorf("%s %s: %s %q", tt.what, tt.config, live.State, live.Reason)
		}
	}

	list := func(missing string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/models" {
				fmt.Fprint(w, `{"data":[{"id":"a"}]}`)
				return
			}
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, missing)
		}
	}
	for _, tt := range []struct {
		what   string
		h      http.HandlerFunc
		want   hub.Live
		reason string
	}{
		{"says that it has no such model", list(`{"error":{"message":"The model 'org/b c' does not exist","code":"model_not_found"}}`), hub.Unreachable, `The endpoint has no model "org/b c".`},
		{"has no such address", list(`{"detail":"Not Found"}`), hub.Alive, `The endpoint does not list the model "org/b c".`},
		{"lists nothing and chats", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(map[bool]int{true: 405, false: 404}[strings.HasSuffix(r.URL.Path, "/chat/completions")])
		}, hub.Alive, "The endpoint does not list its models."},
		{"is something else", http.NotFound, hub.WrongProtocol, "There is no OpenAI-compatible API at that address (HTTP 404)."},
	} {
		live := p.Probe(t.Context(), hub.Target{Kind: hub.OpenAI, Endpoint: handled(t, tt.h) + "/v1", Config: json.RawMessage(`{"model":"org/b c"}`)})
		if live.State != tt.want || live.Reason != tt.reason {
			t.Errorf("one that %s: %s %q", tt.what, live.State, live.Reason)
		}
	}
}

func TestProbe_ConnectionsThatBreakAreNoProtocol(t *testing.T) {
	p := NewProber(transport(t))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	for range 50 { // how it is noticed is a matter of timing
		if live := p.Probe(t.Context(), hub.Target{Kind: hub.A2A, Endpoint: "http://" + l.Addr().String()}); live.State != hub.Unreachable {
			t.Fatalf("%s %q", live.State, live.Reason)
		}
	}
}
