package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2asrv"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentsite/internal/hub"
	"agentsite/internal/testing/agenttest"
)

var quiet = log.New(io.Discard, "", 0)

// noTask returns the JSON-RPC error code with which a good A2A agent answers a question about a task
// that does not exist.
func noTask(method string) int {
	if method == "GetTask" {
		return -32001
	}
	return -32601
}

func rpc10() hub.A2AConfig { return hub.A2AConfig{Binding: "JSONRPC", Version: "1.0"} }

// good returns the agents that work, some of them in unusual ways.
func (d *dock) good() []suspect {
	var list []suspect
	add := func(s suspect) {
		s.want = hub.Alive
		list = append(list, s)
	}
	for _, c := range []struct{ version, binding string }{{"1.0", "JSONRPC"}, {"1.0", "HTTP+JSON"}, {"0.3", "JSONRPC"}, {"0.3", "HTTP+JSON"}} {
		short := strings.ReplaceAll(strings.ToLower(c.version+"-"+strings.ReplaceAll(c.binding, "+", "-")), ".", "")
		add(d.a2a(suspect{name: "a2a-" + short, kind: hub.A2A, what: "speaks " + c.version + " over " + c.binding + " as its card says"},
			agenttest.NewA2AServer(d.t, c.version, c.binding)))
		add(d.a2a(suspect{name: "a2a-told-" + short, kind: hub.A2A, what: "the same, its owner said so", config: hub.A2AConfig{Binding: c.binding, Version: c.version}},
			agenttest.NewA2AServer(d.t, c.version, c.binding)))
	}
	for _, header := range []string{"Authorization", "X-Api-Key"} {
		value, conf := "Bearer open-sesame", rpc10()
		if header != "Authorization" {
			value, conf.AuthHeader = "open-sesame", header
		}
		add(d.a2a(suspect{name: "a2a-key-" + strings.ToLower(header), kind: hub.A2A, what: "asks for a key in " + header + " and has been given it", config: conf, secret: "open-sesame"},
			agenttest.NewA2AServerWith(d.t, "1.0", "JSONRPC", func(h a2asrv.RequestHandler) http.Handler {
				return keyed(header, value, http.StatusUnauthorized, a2asrv.NewJSONRPCHandler(h).ServeHTTP)
			})))
	}
	add(d.at(suspect{name: "a2a-strict", kind: hub.A2A, what: "refuses ids that are not its own in form", config: rpc10()}, rpc(func(method string) int {
		if method == "GetTask" {
			return -32602
		}
		return -32601
	})))
	add(d.at(suspect{name: "a2a-careless", kind: hub.A2A, what: "says internal error for a task it does not know", config: rpc10()}, rpc(func(method string) int {
		if method == "GetTask" {
			return -32603
		}
		return -32601
	})))
	add(d.secure(suspect{name: "a2a-tls", kind: hub.A2A, what: "is behind TLS with a good certificate", config: rpc10()}, nil, rpc(noTask)))
	add(d.at(suspect{name: "a2a-query", kind: hub.A2A, what: "has a path and a query in its address", endpoint: "/deep/er?tenant=7", config: rpc10()}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/deep/er" || r.URL.Query().Get("tenant") != "7" {
			http.NotFound(w, r)
			return
		}
		rpc(noTask)(w, r)
	}))

	add(d.openai(suspect{name: "openai-first", kind: hub.OpenAI, what: "lists its model", config: hub.OpenAIConfig{Model: "echo-1"}}, agenttest.NewOpenAIServer(d.t)))
	add(d.openai(suspect{name: "openai-second", kind: hub.OpenAI, what: "lists its model after another", config: hub.OpenAIConfig{Model: "echo-2", Instructions: "Be brief."}}, agenttest.NewOpenAIServer(d.t)))
	add(d.at(suspect{name: "openai-key", kind: hub.OpenAI, what: "asks for a key and has been given it", endpoint: "/v1", config: hub.OpenAIConfig{Model: "m-1"}, secret: "sk-good"},
		keyed("Authorization", "Bearer sk-good", http.StatusUnauthorized, models(`{"object":"list","data":[{"id":"m-1"}]}`))))
	add(d.at(suspect{name: "openai-names", kind: hub.OpenAI, what: "calls its list models", endpoint: "/v1", config: hub.OpenAIConfig{Model: "m-1"}}, models(`{"models":[{"name":"m-1"}]}`)))
	add(d.at(suspect{name: "openai-alias", kind: hub.OpenAI, what: "takes a name it does not list", endpoint: "/v1", config: hub.OpenAIConfig{Model: "m-latest"}}, models(`{"data":[{"id":"m-1"}]}`)))
	add(d.at(suspect{name: "openai-listless", kind: hub.OpenAI, what: "answers chats and lists nothing", endpoint: "/v1", config: hub.OpenAIConfig{Model: "m-1"}}, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/v1/chat/completions":
			http.NotFound(w, r)
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		default:
			io.WriteString(w, `{"choices":[{"message":{"role":"assistant","content":"hi"}}]}`)
		}
	}))

	add(d.mcp(suspect{name: "mcp-modern", kind: hub.MCP, what: "speaks 2026-07-28 without sessions"}, agenttest.NewMCPServer(d.t, true)))
	add(d.mcp(suspect{name: "mcp-legacy", kind: hub.MCP, what: "speaks 2025-11-25 with sessions"}, agenttest.NewMCPServer(d.t, false)))
	add(d.mcp(suspect{name: "mcp-key", kind: hub.MCP, what: "asks for a key and has been given it", secret: "open-sesame"}, agenttest.NewMCPServer(d.t, true).WithKey("open-sesame")))
	add(d.mcp(suspect{name: "mcp-many", kind: hub.MCP, what: "has forty tools on four pages"}, agenttest.NewMCPServerWith(d.t, true, func(s *sdk.Server) {
		for i := range 40 {
			s.AddTool(&sdk.Tool{Name: fmt.Sprintf("tool-%d", i), Description: "One of many.", InputSchema: map[string]any{"type": "object"}},
				func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
					return &sdk.CallToolResult{}, nil
				})
		}
	})))
	add(d.mcp(suspect{name: "mcp-bare", kind: hub.MCP, what: "has no tools at all, which is allowed"}, agenttest.NewMCPServerWith(d.t, false, func(*sdk.Server) {})))
	return list
}

// models returns a server of the OpenAI API whose list of models is body.
func models(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, body)
	}
}
