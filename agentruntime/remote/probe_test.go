package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/testing/agenttest"
)

func answering(t *testing.T, status int, contentType, body string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestProbe_A2A(t *testing.T) {
	p := NewProber(transport(t))
	for _, c := range combinations {
		s := agenttest.NewA2AServer(t, c.version, c.binding)
		config, _ := json.Marshal(hub.A2AConfig{Version: c.version, Binding: c.binding})
		live := p.Probe(t.Context(), hub.Target{Kind: hub.A2A, Endpoint: s.Endpoint(agenttest.Echo), Config: config})
		if live.State != hub.Alive || live.Latency <= 0 || live.CheckedAt.IsZero() {
			t.Errorf("%v: %+v", c, live)
		}
		if msgs, _ := s.Messages(); len(msgs) != 0 {
			t.Errorf("%v: the probe made the agent work", c)
		}
	}
	gone := "http://" + agenttest.Refusing(t)
	rpc := func(code int) string {
		return answering(t, 200, "application/json", fmt.Sprintf(`{"jsonrpc":"2.0","id":"1","error":{"code":%d,"message":"<b>x</b>"}}`, code))
	}
	for _, tt := range []struct {
		url, config string
		want        hub.Live
		reason      string
	}{
		{rpc(-32001), ``, hub.Alive, ""},
		{rpc(-32602), ``, hub.Alive, ""},
		{rpc(-32601), ``, hub.WrongProtocol, "This is not an A2A agent: it speaks JSON-RPC but does not know A2A 1.0."},
		{rpc(-32009), ``, hub.WrongProtocol, "This is not an A2A agent: it does not speak A2A 1.0."},
		{rpc(-31401), ``, hub.NeedsAuth, "The agent refused the credentials."},
		{answering(t, 404, "application/json", `{"error":{"code":404,"status":"NOT_FOUND","message":"task not found","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"TASK_NOT_FOUND","domain":"a2a-protocol.org"}]}}`), `{"binding":"HTTP+JSON"}`, hub.Alive, ""},
		{answering(t, 404, "application/json", `{"detail":"Not Found"}`), `{"binding":"HTTP+JSON"}`, hub.WrongProtocol, "This is not an A2A agent: it answered with HTTP 404 and JSON that is not A2A."},
		{answering(t, 401, "text/plain", "no"), ``, hub.NeedsAuth, "The agent asks for credentials."},
		{answering(t, 403, "text/plain", "no"), ``, hub.NeedsAuth, "The agent asks for credentials."},
		{answering(t, 200, "text/html", "<html>hi</html>"), ``, hub.WrongProtocol, "This is not an A2A agent: it answered with a web page."},
		{answering(t, 404, "text/html", "<html>hi</html>"), `{"binding":"HTTP+JSON","version":"0.3"}`, hub.WrongProtocol, "This is not an A2A agent: it answered with HTTP 404 and a web page."},
		{answering(t, 200, "application/json", `{"error":{"message":"x","type":"invalid_request_error"}}`), ``, hub.WrongProtocol, "This is not an A2A agent: it answered with JSON that is not A2A, which says \"x\"."},
		{answering(t, 503, "text/html", "<html>"), ``, hub.Unreachable, "It answered with HTTP 503 and a web page."},
		{gone, ``, hub.Unreachable, "Connection refused."},
		{"http://169.254.169.254/latest/meta-data", ``, hub.Unreachable, "Refused to connect to a private address."},
		{gone, `{"binding":"GRPC"}`, hub.WrongProtocol, "This is not an A2A agent: this portal does not speak GRPC of A2A 1.0."},
	} {
		live := p.Probe(t.Context(), hub.Target{Kind: hub.A2A, Endpoint: tt.url, Config: json.RawMessage(tt.config)})
		if live.State != tt.want || live.Reason != tt.reason {
			t.Errorf("%s %s: %s %q, want %s %q", tt.url, tt.config, live.State, live.Reason, tt.want, tt.reason)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if live := p.Probe(ctx, hub.Target{Kind: hub.A2A, Endpoint: rpc(-32001)}); live.State != hub.Unreachable {
		t.Errorf("canceled: %+v", live)
	}
	if live := p.Probe(t.Context(), hub.Target{Kind: hub.Builtin}); live.State != hub.Unknown {
		t.Errorf("builtin: %+v", live)
	}
}

func TestProbe_OpenAI(t *testing.T) {
	p := NewProber(transport(t))
	s := agenttest.NewOpenAIServer(t)
	for _, tt := range []struct {
		url, model string
		want       hub.Live
		reason     string
	}{
		{s.Base(agenttest.Echo), "echo-1", hub.Alive, ""},
		{s.Base(agenttest.Echo), "", hub.Alive, ""},
		{s.Base(agenttest.Echo), "gpt-9", hub.Alive, `The endpoint does not list the model "gpt-9".`},
		{answering(t, 401, "application/json", `{"error":{"message":"no"}}`), "", hub.NeedsAuth, "The endpoint asks for a key."},
		{answering(t, 200, "text/html", "<html>"), "", hub.WrongProtocol, "The endpoint does not speak the OpenAI API: it answered with a web page."},
		{answering(t, 404, "text/html", "<html>"), "", hub.WrongProtocol, "There is no OpenAI-compatible API at that address (HTTP 404)."},
		{answering(t, 200, "application/json", `{"hello":1}`), "", hub.WrongProtocol, "The endpoint does not speak the OpenAI API: it answered with other JSON."},
		{answering(t, 500, "application/json", `{}`), "", hub.Unreachable, "The model's server failed (HTTP 500)."},
		{"http://192.168.1.1/v1", "", hub.Unreachable, "Refused to connect to a private address."},
	} {
		config, _ := json.Marshal(hub.OpenAIConfig{Model: tt.model})
		live := p.Probe(t.Context(), hub.Target{Kind: hub.OpenAI, Endpoint: tt.url, Config: config})
		if live.State != tt.want || live.Reason != tt.reason {
			t.Errorf("%s: %s %q, want %s %q", tt.url, live.State, live.Reason, tt.want, tt.reason)
		}
	}
	if reqs, _ := s.Requests(); len(reqs) != 0 {
		t.Error("the probe asked the model")
	}
}

func TestReader_DescribesWhatItFinds(t *testing.T) {
	r := NewReader(transport(t))
	for _, c := range combinations {
		s := agenttest.NewA2AServer(t, c.version, c.binding)
		d, err := r.Read(t.Context(), s.Endpoint(agenttest.Echo))
		var cfg hub.A2AConfig
		json.Unmarshal(d.Config, &cfg)
		if err != nil || d.Kind != hub.A2A || d.Name != "echo-agent" || d.Endpoint != s.Endpoint(agenttest.Echo) ||
			cfg.Version != c.version || cfg.Binding != c.binding || !cfg.Streaming || len(d.Skills) != 1 {
			t.Errorf("%v: %+v %+v %v", c, d, cfg, err)
		}
	}
	s := agenttest.NewOpenAIServer(t)
	for _, address := range []string{s.URL + "/echo", s.URL + "/echo/v1"} {
		d, err := r.Read(t.Context(), address)
		if err != nil || d.Kind != hub.OpenAI || d.Endpoint != s.Base(agenttest.Echo) || string(d.Config) != `{"model":"echo-1"}` || d.Name != "echo-1" {
			t.Errorf("%s: %+v %v", address, d, err)
		}
	}
	keyed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(map[bool]int{true: 401, false: 404}[strings.HasSuffix(r.URL.Path, "/models")])
	}))
	defer keyed.Close()
	for address, want := range map[string]string{
		answering(t, 200, "text/html", "<html>"): "a web page",
		"http://10.1.2.3/agent":                  "refused to connect to a private address",
		"nonsense":                               "http:// or https://",
		keyed.URL:                                "asks for a key",
	} {
		_, err := r.Read(t.Context(), address)
		var f *fault.Error
		if !errors.As(err, &f) || f.Kind != fault.Invalid || !strings.Contains(f.Safe, want) || f.Fields["endpoint"] == "" {
			t.Errorf("%s: %v", address, err)
		}
	}
}
