package a2a_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// bindings are the two faces of a base.
var bindings = []string{"JSONRPC", "HTTP+JSON"}

// version says which version of the protocol a request is in.
func version(v string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("A2A-Version", v) }
}

// rpcAnswer is an answer of the JSON-RPC binding.
type rpcAnswer struct {
	ID     any             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int
		Message string
		Data    []struct {
			Type   string `json:"@type"`
			Reason string
			Domain string
		}
	} `json:"error"`
	status int
}

// rpc calls a method of an agent.
func rpc(c *apptest.Client, base, method, params string) (a rpcAnswer) {
	return raw(c, base, `{"jsonrpc":"2.0","id":"x","method":"`+method+`","params":`+params+`}`)
}

func raw(c *apptest.Client, base, body string) (a rpcAnswer) {
	got := c.Do(http.MethodPost, base, body)
	if err := json.Unmarshal([]byte(got.Body), &a); err != nil {
		panic(err.Error() + ": " + got.Body)
	}
	a.status = got.Status
	return a
}

// code is the error's, 0 for none.
func (a rpcAnswer) code() int {
	if a.Error == nil {
		return 0
	}
	return a.Error.Code
}

// wireTask is a task as clients read it.
type wireTask struct {
	ID        string
	ContextID string `json:"contextId"`
	Kind      string
	Status    struct {
		State     string
		Timestamp string
		Message   *wireMessage
	}
	Artifacts []struct {
		ArtifactID string `json:"artifactId"`
		Parts      []map[string]any
	}
	History []wireMessage
}

type wireMessage struct {
	MessageID string `json:"messageId"`
	Role      string
	Parts     []map[string]any
}

// task reads the task of a result, wrapped or not.
func (a rpcAnswer) task(t *testing.T) (k wireTask) {
	t.Helper()
	if a.Error != nil {
		t.Fatalf("error %d: %s", a.Error.Code, a.Error.Message)
	}
	var wrap struct{ Task json.RawMessage }
	b := a.Result
	if json.Unmarshal(b, &wrap) == nil && wrap.Task != nil {
		b = wrap.Task
	}
	if err := json.Unmarshal(b, &k); err != nil {
		t.Fatal(err)
	}
	return k
}

// say is the parameters of SendMessage with a text; more is put into the
// message.
func say(id, text, more string) string {
	b, _ := json.Marshal(text)
	return `{"message":{"messageId":"` + id + `","role":"ROLE_USER","parts":[{"text":` + string(b) + `}]` + more + `}}`
}

// events reads a stream of events to its end.
func events(t *testing.T, c *apptest.Client, method, path, body string) (out []string) {
	t.Helper()
	var sent any
	if body != "" {
		sent = body
	}
	resp, err := c.HTTP.Do(c.Request(t.Context(), method, path, sent))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	in := bufio.NewScanner(resp.Body)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		if data, ok := strings.CutPrefix(in.Text(), "data: "); ok {
			out = append(out, data)
		} else if in.Text() != "" && in.Text()[0] != ':' {
			out = append(out, in.Text())
		}
	}
	return out
}

// far is a portal with agents elsewhere, which live longer than it.
func far(t *testing.T) (*apptest.Portal, *agenttest.OpenAIServer, *agenttest.A2AServer) {
	model := agenttest.NewOpenAIServer(t)
	other := agenttest.NewA2AServer(t, "1.0", "JSONRPC")
	return apptest.Start(t), model, other
}

// foreign registers an A2A agent elsewhere and returns its name.
func foreign(c *apptest.Client, s *agenttest.A2AServer) string {
	name := apptest.Fresh("far")
	c.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": name, "description": "Elsewhere.", "kind": "a2a", "endpoint": s.Endpoint(agenttest.Echo),
		"visibility": "public", "config": map[string]any{"binding": "JSONRPC", "version": "1.0", "streaming": true}}, http.StatusCreated)
	return name
}
