package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"agentsite/internal/hub"
	"agentsite/internal/testing/agenttest"
)

// broken returns the agents that do not work, each with a different defect.
func (d *dock) broken() []suspect {
	var list []suspect
	add := func(want hub.Live, s suspect) {
		s.want = want
		list = append(list, s)
	}
	a2a := func(name, what string) suspect {
		return suspect{name: name, what: what, kind: hub.A2A, config: rpc10()}
	}
	openai := func(name, what string) suspect {
		return suspect{name: name, what: what, kind: hub.OpenAI, endpoint: "/v1", config: hub.OpenAIConfig{Model: "m-1"}}
	}
	mcp := func(name, what string) suspect {
		return suspect{name: name, what: what, kind: hub.MCP, endpoint: "/mcp"}
	}

	// No server listens, or it never answers.
	add(hub.Unreachable, d.nobody(a2a("refused", "nobody listens on its port")))
	add(hub.Unreachable, d.accept(a2a("hangs-up", "every connection is closed at once"), func(net.Conn) {}))
	add(hub.Unreachable, d.at(openai("silent", "takes the question and never answers"), func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	add(hub.Unreachable, d.at(a2a("drips", "answers a byte at a time, without end"), func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			io.WriteString(w, " ")
			if http.NewResponseController(w).Flush() != nil {
				return
			}
			select {
			case <-tick.C:
			case <-r.Context().Done():
				return
			}
		}
	}))
	add(hub.Unreachable, d.secure(a2a("foreign-certificate", "its certificate is somebody else's"), d.foreign(), rpc(noTask)))
	card := agenttest.NewA2AServer(d.t, "1.0", "JSONRPC")
	dead := d.nobody(suspect{})
	s, c := d.serve(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/.well-known/agent-card.json") {
			http.NotFound(w, r)
			return
		}
		says := card.Card(agenttest.Echo, true)
		says["supportedInterfaces"] = []any{map[string]any{"url": dead.endpoint, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}}
		json.NewEncoder(w).Encode(says)
	})
	add(hub.Unreachable, suspect{name: "dead-behind-card", what: "its card is fine, the address it names is dead", kind: hub.A2A, endpoint: s.URL, asked: c.asked, work: c.worked})

	// The server works but answers with errors.
	add(hub.Unreachable, d.at(a2a("fails", "answers everything with HTTP 500"), says(500, "text/plain", "it broke")))
	add(hub.Unreachable, d.at(a2a("fails-politely", "answers everything with an internal error of JSON-RPC"), rpc(func(string) int { return -32603 })))
	add(hub.Unreachable, d.at(openai("no-such-model", "does not have the model it is registered with"), func(w http.ResponseWriter, r *http.Request) {
		if name, ok := strings.CutPrefix(r.URL.Path, "/v1/models/"); ok {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprintf(w, `{"error":{"message":"The model '%s' does not exist","type":"invalid_request_error","code":"model_not_found"}}`, name)
			return
		}
		models(`{"object":"list","data":[{"id":"other"}]}`)(w, r)
	}))

	// The server requires a key that the portal does not have.
	add(hub.NeedsAuth, d.at(a2a("wants-a-key", "answers HTTP 401 to strangers"), keyed("Authorization", "Bearer secret", 401, rpc(noTask))))
	wrong := a2a("forbidden", "answers HTTP 403 to the key it was registered with")
	wrong.secret = "expired"
	add(hub.NeedsAuth, d.at(wrong, keyed("Authorization", "Bearer secret", 403, rpc(noTask))))
	wrong = openai("wrong-key", "refuses the key it was registered with")
	wrong.secret = "sk-old"
	add(hub.NeedsAuth, d.at(wrong, keyed("Authorization", "Bearer sk-new", 401, models(`{"data":[{"id":"m-1"}]}`))))
	add(hub.NeedsAuth, d.mcp(suspect{name: "mcp-wants-a-key", what: "a server of tools that nobody gave the key of", kind: hub.MCP}, agenttest.NewMCPServer(d.t, false).WithKey("secret")))

	// Another kind of server answers at the address.
	add(hub.WrongProtocol, d.at(openai("not-found", "HTTP 404 and a web page for everything"), says(404, "text/html", "<html>not here</html>")))
	add(hub.WrongProtocol, d.at(a2a("moved", "redirects elsewhere"), func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://new.example/", http.StatusPermanentRedirect)
	}))
	add(hub.WrongProtocol, d.at(a2a("web-page", "a web page"), says(200, "text/html; charset=utf-8", "<!DOCTYPE html><html><body>Welcome to nginx!</body></html>")))
	add(hub.WrongProtocol, d.at(mcp("garbage", "bytes that mean nothing"), says(200, "application/json", "\x00\xff{{{ not json \x16\x03\x01")))
	add(hub.WrongProtocol, d.at(a2a("empty", "HTTP 200 and nothing else"), says(200, "application/json", "")))
	// The agent works, but it is registered as another kind. The counters recognise calls of every
	// protocol.
	model, agent := agenttest.NewOpenAIServer(d.t).Config.Handler.ServeHTTP, agenttest.NewA2AServer(d.t, "1.0", "JSONRPC").Config.Handler.ServeHTTP
	at := func(s suspect, path string) suspect { s.endpoint = path; return s }
	add(hub.WrongProtocol, d.at(at(a2a("model-as-agent", "is an OpenAI server, registered as an A2A agent"), "/echo/v1"), model))
	add(hub.WrongProtocol, d.at(at(openai("agent-as-model", "is an A2A agent, registered as a model"), "/echo"), agent))
	add(hub.WrongProtocol, d.at(at(mcp("agent-as-tools", "is an A2A agent, registered as a server of tools"), "/echo"), agent))
	add(hub.WrongProtocol, d.a2a(a2a("older", "speaks 0.3 and is registered as 1.0"), agenttest.NewA2AServer(d.t, "0.3", "JSONRPC")))
	add(hub.WrongProtocol, d.at(a2a("knows-no-tasks", "speaks JSON-RPC and knows no method of A2A"), rpc(func(string) int { return -32601 })))

	// The server tries to harm the portal that asks it.
	bomb := new(bytes.Buffer)
	zip := gzip.NewWriter(bomb)
	for range 64 {
		zip.Write(make([]byte, 1<<20))
	}
	zip.Close()
	add(hub.WrongProtocol, d.at(openai("bomb", "64 MiB of nothing, compressed"), func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(bomb.Bytes())
	}))
	add(hub.WrongProtocol, d.at(openai("endless", "a list of models of 100 MiB"), func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"data":[`)
		for range 100 {
			if _, err := io.WriteString(w, strings.Repeat(`{"id":"x"},`, 100_000)); err != nil {
				return
			}
		}
	}))
	return list
}
