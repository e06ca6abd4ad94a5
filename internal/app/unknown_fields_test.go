package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"agentsite/internal/testing/apptest"
)

// unread are the routes of the API with a body that has no fields of ours.
var unread = []string{"POST /api/v1/files", "POST /api/v1/hosting/modules"}

// Every route of the API with a JSON body refuses a field that it does not know, and names it: a misspelt
// one would be lost. The routes come from the router and the valid bodies from the authorization matrix, so
// that a new route is tested too.
func TestAPI_EveryBodyRefusesUnknownFields(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	routes, err := w.p.Routes()
	if err != nil {
		t.Fatal(err)
	}
	all, policy, tried := cells(), readPolicy(t), 0
	for _, route := range routes {
		key := route.Method + " " + route.Pattern
		if !strings.HasPrefix(route.Pattern, "/api/v1/") || route.Method == http.MethodGet || slices.Contains(unread, key) {
			continue
		}
		i := slices.IndexFunc(policy, func(r row) bool { return r.route() == route })
		if i < 0 {
			t.Fatalf("%s has no row in the policy", key)
		}
		r := policy[i]
		media := w.spec.Paths[r.specPath()][strings.ToLower(r.method)].RequestBody.Content
		c := all[cellKey(r)]
		lines := media["application/x-ndjson"].Schema != nil
		switch {
		case len(media) == 0 && c.body == nil:
			continue // it reads none
		case media["*/*"].Schema != nil:
			continue // a file
		case c.body == nil && !lines:
			t.Errorf("%s has a body, and the matrix sends none", key)
			continue
		}
		t.Run(strings.ReplaceAll(key, "/", "⁄"), func(t *testing.T) {
			t.Parallel()
			r.refuseUnknown(t, w, c, lines)
		})
		tried++
	}
	if tried < 30 {
		t.Errorf("only %d routes were tried: the walk is broken", tried)
	}
}

// cellKey is the key of a row's request in cells.
func cellKey(r row) string {
	key := r.method + " " + r.pattern
	if r.variant != "" {
		key += " [" + r.variant + "]"
	}
	return key
}

// refuseUnknown sends the row's body with one more field, as the first actor that may do it.
func (r row) refuseUnknown(t *testing.T, w *world, c cell, lines bool) {
	actor := "owner"
	for _, a := range []string{"owner", "oper", "other"} {
		if strings.HasPrefix(r.want[a], "2") {
			actor = a
			break
		}
	}
	var o object
	if c.object != nil {
		o = c.object(t, w, actor)
	}
	fields := make(map[string]any)
	if c.body != nil {
		b, err := json.Marshal(c.body(w, o))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, &fields); err != nil {
			t.Fatalf("the body is no object: %s", b)
		}
	}
	for _, name := range []string{"no_such_field", "sharing_settings"} {
		more := map[string]any{name: true}
		for k, v := range fields {
			more[k] = v
		}
		var body any = more
		if lines {
			line, _ := json.Marshal(more)
			body = string(line)
		}
		a := w.as[actor].With(t).Do(r.method, r.path(c, o), body)
		if a.Status != http.StatusBadRequest || !strings.Contains(a.Fields()[name], "is not a field here") {
			t.Errorf("with %s as %s: %d %.300s", name, actor, a.Status, a.Body)
		}
	}
}

// The bodies of protocols that are not ours keep room for later versions: a field that this portal does
// not know, at any depth, changes no answer. The MCP registry is another matter: like the official one it
// refuses them in server.json (handlers/registry tests that).
func TestProtocols_BodiesMayHaveUnknownFields(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all, tried := cells(), make(map[string]bool)
	for _, r := range readPolicy(t) {
		door := doorOf(r.pattern)
		c := all[cellKey(r)]
		if door == "" || c.body == nil || slices.Contains(notJSON, r.pattern) {
			continue
		}
		tried[door] = true
		t.Run(strings.ReplaceAll(cellKey(r), "/", "⁄"), func(t *testing.T) {
			t.Parallel()
			r.passUnknown(t, w, c, door)
		})
	}
	if len(tried) != 5 {
		t.Errorf("only %v were tried", tried)
	}
}

// doorOf is the protocol of a route, "" for those whose bodies are ours.
func doorOf(pattern string) string {
	for _, p := range []struct{ part, name string }{{"/a2a", "A2A"}, {"/mcp", "MCP"}, {"/v1/chat", "OpenAI"}, {"/ard/", "ARD"}, {"/peering/", "peering"}} {
		if strings.Contains(pattern, p.part) && !strings.HasPrefix(pattern, "/api/") {
			return p.name
		}
	}
	return ""
}

func (r row) passUnknown(t *testing.T, w *world, c cell, door string) {
	caller, want := w.tokens["chat:write"].With(t), r.want["right"]
	if slices.Contains(r.scopes, "agents:read") && !slices.Contains(r.scopes, "chat:write") {
		caller = w.tokens["agents:read"].With(t)
	}
	sign := func(req *http.Request) {}
	if door == "peering" {
		caller, want = w.p.Guest(t), r.want["portal"]
		sign = func(req *http.Request) { w.peer.Sign(t, req, w.peerFor) }
	}
	var o object
	if c.object != nil {
		o = c.object(t, w, "owner")
	}
	b, err := json.Marshal(c.body(w, o))
	if err != nil {
		t.Fatal(err)
	}
	var body any
	if err := json.Unmarshal(b, &body); err != nil {
		t.Fatal(err)
	}
	a := caller.Do(r.method, r.path(c, o), extended(body, ""), func(req *http.Request) {
		if c.header != nil {
			req.Header.Set(c.header(o))
		}
		sign(req)
	})
	if !strings.HasPrefix(want, fmt.Sprint(a.Status)) || failed(a) {
		t.Errorf("%d %.300s, without the field %s", a.Status, a.Body, want)
	}
}

// notJSON are the routes with bodies that are no JSON, and the one that takes only tokens of running tasks.
var notJSON = []string{"/peering/v1/gossip", "/peering/v1/pushpull", "/mcp/tools"}

// failed reports whether an answer of JSON-RPC is an error.
func failed(a apptest.Answer) bool {
	var rpc struct {
		Version string `json:"jsonrpc"`
		Error   any
	}
	return json.Unmarshal([]byte(a.Body), &rpc) == nil && rpc.Version != "" && rpc.Error != nil
}

// extended adds a field to every object of a value, except the arguments of a tool, which have a schema of
// their own.
func extended(v any, name string) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = extended(v[k], k)
		}
		if name != "arguments" {
			v["xFutureField"] = map[string]any{"any": 1}
		}
	case []any:
		for i := range v {
			v[i] = extended(v[i], "")
		}
	}
	return v
}
