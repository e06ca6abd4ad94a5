package remote_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agentsite/agentruntime/remote"
	"agentsite/internal/hub"
)

// TestReader_TakesTheDialectTheAgentAnswersIn: the Go SDK's own command serves
// A2A 0.3 under a card that says 1.0.
func TestReader_TakesTheDialectTheAgentAnswersIn(t *testing.T) {
	var srv *httptest.Server
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "agent-card.json") {
			io.WriteString(w, `{"name":"Liar","description":"Says 1.0, speaks 0.3.","version":"1","capabilities":{"streaming":true},
				"defaultInputModes":["text"],"defaultOutputModes":["text"],"skills":[],
				"supportedInterfaces":[{"url":"`+srv.URL+`","protocolBinding":"HTTP+JSON","protocolVersion":"1.0"}]}`)
			return
		}
		var call struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if r.URL.Path != "/" || json.NewDecoder(r.Body).Decode(&call) != nil || call.Method == "" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		code := "-32601"
		if call.Method == "tasks/get" {
			code = "-32001"
		}
		io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(call.ID)+`,"error":{"code":`+code+`,"message":"no"}}`)
	}))
	defer srv.Close()
	d, err := remote.NewReader(http.DefaultTransport).Read(t.Context(), srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	var cfg hub.A2AConfig
	if err := json.Unmarshal(d.Config, &cfg); err != nil || cfg.Version != "0.3" || cfg.Binding != "JSONRPC" {
		t.Errorf("config %s, %v", d.Config, err)
	}
}
