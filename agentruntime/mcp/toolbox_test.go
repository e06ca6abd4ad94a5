package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/testing/agenttest"
)

func TestToolbox(t *testing.T) {
	for name, modern := range map[string]bool{"modern": true, "legacy": false} {
		t.Run(name, func(t *testing.T) {
			s, d := workshop(t, modern), newDriver(t)
			target := hub.Target{Kind: hub.MCP, Endpoint: s.Endpoint(agenttest.Echo), Secret: "s3cret"}
			live, err := d.Tools(t.Context(), target)
			if err != nil || len(live) != 12 {
				t.Fatalf("%d tools, %v", len(live), err)
			}
			target.Config, _ = json.Marshal(hub.MCPConfig{Tools: live[1:]})
			s.Forget()
			if kept, err := d.Tools(t.Context(), target); err != nil || len(kept) != 11 {
				t.Errorf("%d tools, %v", len(kept), err)
			}
			// The goodbye of the first session may come late.
			if m, _ := s.Methods(); slices.ContainsFunc(m, func(m string) bool { return m != http.MethodDelete }) {
				t.Errorf("asked for %v", m)
			}
			for _, tt := range []struct {
				tool, args, want string
				isError          bool
			}{
				{"weather", `{"place":"Bern","days":2}`, "Sun in Bern for 2 days", false},
				{"weather", `{}`, "The tool was not called: place: fill this in.", true},
				{"weather", `[]`, "The tool was not called:", true},
				{"add", `{"a":1,"b":2}`, `{"total":3}`, false},
				{"fail", ``, "no paper left, key s3cret", true},
				{"draw", `null`, "[file file.png, image/png, 4 bytes]", false},
				{"gone", `{}`, "gone", true},
				{"region", `{"region":"eu"}`, "region", false},
				{"nothing", `{}`, "", false},
			} {
				text, isError, err := d.CallTool(t.Context(), target, tt.tool, json.RawMessage(tt.args))
				if err != nil || isError != tt.isError || !strings.Contains(text, tt.want) {
					t.Errorf("%s %s: %q %v %v", tt.tool, tt.args, text, isError, err)
				}
			}
			text, _, err := d.CallTool(t.Context(), target, "long", nil)
			if err != nil || len(text) > maxToolResult || !strings.HasSuffix(text, cutMark) {
				t.Errorf("%d bytes, %v", len(text), err)
			}
			if modern {
				if text, isError, err := d.CallTool(t.Context(), target, "book", json.RawMessage(`{"show":"Faust"}`)); err != nil || !isError || !strings.Contains(text, "only a person can answer") {
					t.Errorf("%q %v %v", text, isError, err)
				}
			}
		})
	}
}

func TestToolbox_SaysWhyNot(t *testing.T) {
	d := newDriver(t)
	for url, want := range map[string]string{
		"http://10.1.2.3/mcp":                       "The server could not be reached: refused to connect to a private address.",
		answering(t, 200, "text/html", "<html>"):    "it answered with a web page",
		answering(t, 401, "text/plain", "k-secret"): "asks for credentials",
	} {
		target := hub.Target{Kind: hub.MCP, Endpoint: url}
		_, err := d.Tools(t.Context(), target)
		_, _, err2 := d.CallTool(t.Context(), target, "x", nil)
		for _, err := range []error{err, err2} {
			if !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.As(err).Safe, want) {
				t.Errorf("%s: %v", url, err)
			}
		}
	}
	s := agenttest.NewMCPServer(t, false)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-s.Started; cancel() }()
	if _, _, err := d.CallTool(ctx, hub.Target{Endpoint: s.Endpoint(agenttest.Wait)}, "echo", json.RawMessage(`{"text":"x"}`)); err != context.Canceled {
		t.Error(err)
	}
	<-s.Stopped
}

// TestHostileServers drives a call against servers that abuse the protocol.
func TestHostileServers(t *testing.T) {
	tools := `{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`
	calling := func(then func(w http.ResponseWriter, r rpc)) string {
		return speaking(t, func(w http.ResponseWriter, r rpc) {
			switch {
			case begun(w, r):
			case r.Method == "tools/list":
				fmt.Fprintf(reply(w), `{"jsonrpc":"2.0","id":%s,"result":%s}`, r.ID, tools)
			case r.Method == "tools/call" || r.Method == "GET":
				then(w, r)
			default: // answers to what the server asked
				w.WriteHeader(http.StatusAccepted)
			}
		})
	}
	stream := func(w http.ResponseWriter) http.ResponseWriter {
		w.Header().Set("Content-Type", "text/event-stream")
		return w
	}
	for name, tt := range map[string]struct{ url, want string }{
		"asks without end": {calling(func(w http.ResponseWriter, r rpc) {
			stream(w)
			for n := range 200_000 {
				if _, err := fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":\"s%d\",\"method\":\"sampling/createMessage\",\"params\":{\"messages\":[],\"maxTokens\":1}}\n\n", n); err != nil {
					return
				}
			}
		}), "The server did not answer as it should: the server "},
		"answers somebody else": {calling(func(w http.ResponseWriter, r rpc) {
			fmt.Fprint(stream(w), "data: {\"jsonrpc\":\"2.0\",\"id\":999,\"result\":{\"content\":[]}}\n\n")
		}), "a stream that ended without the answer"},
		"huge event": {calling(func(w http.ResponseWriter, r rpc) {
			stream(w)
			fmt.Fprint(w, "data: ")
			for range 10 {
				fmt.Fprint(w, strings.Repeat("x", 1<<20))
			}
		}), "larger than 8 MiB"},
		"deep": {calling(func(w http.ResponseWriter, r rpc) {
			fmt.Fprintf(reply(w), `{"jsonrpc":"2.0","id":%s,"result":{"content":[],"structuredContent":%s}}`, r.ID, strings.Repeat("[", 3<<20)+strings.Repeat("]", 3<<20))
		}), "did not answer as it should"},
		"refusal": {calling(func(w http.ResponseWriter, r rpc) {
			fmt.Fprintf(reply(w), `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"not\u202e today <b>s3cret</b>"}}`, r.ID)
		}), "The server refused: not today <b>[key]</b>."},
		"redirect": {calling(func(w http.ResponseWriter, r rpc) {
			w.Header().Set("Location", "http://127.0.0.1:1/steal")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}), "redirects are not followed"},
		"expired": {calling(func(w http.ResponseWriter, r rpc) { w.WriteHeader(http.StatusUnauthorized) }), "refused the stored credentials"},
		"resumes into nothing": {calling(func(w http.ResponseWriter, r rpc) {
			if r.Method == "GET" {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			fmt.Fprint(stream(w), "id: 1\nretry: 1\ndata: \n\n")
		}), "did not answer as it should"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDriver(t)
			call := textCall(tt.url, nil, "t")
			call.Agent.Secret = "s3cret"
			res, _ := do(t, d, call)
			if res.State != "failed" || !strings.Contains(res.Reason, tt.want) {
				t.Errorf("%s %q, want …%s…", res.State, res.Reason, tt.want)
			}
			if len(res.Reason) > 600 || strings.Contains(res.Reason, "s3cret") {
				t.Error(res.Reason)
			}
		})
	}
}

// TestNoRedirects uses a plain transport: what egress refuses is not followed
// either where egress is not there.
func TestNoRedirects(t *testing.T) {
	seen := make(chan string, 10)
	other := speaking(t, func(w http.ResponseWriter, r rpc) { seen <- r.Method })
	for _, status := range []int{301, 302, 303, 307, 308} {
		first := speaking(t, func(w http.ResponseWriter, r rpc) {
			w.Header().Set("Location", other)
			w.WriteHeader(status)
		})
		rt := http.DefaultTransport.(*http.Transport).Clone()
		d := New(rt, Config{})
		call := textCall(first, nil, "x")
		call.Agent.Secret = "s3cret"
		if res, _ := do(t, d, call); res.State != "failed" || !strings.Contains(res.Reason, fmt.Sprintf("HTTP %d", status)) {
			t.Errorf("%+v", res)
		}
		d.Close()
		rt.CloseIdleConnections()
	}
	if len(seen) > 0 {
		t.Errorf("the redirect was followed: %s", <-seen)
	}
}
