package app_test

import (
	"net/http"
	"sync"
	"testing"

	"agentsite/internal/testing/agenttest"
)

// embedCells say what the routes of a chat on other sites are asked, and those
// by which an agent is handed on.
func embedCells() map[string]cell {
	fixed := func(v any) func(*world, object) any { return func(*world, object) any { return v } }
	// shown is an agent that other sites may show, and a visitor of its frame.
	shown := func(visibility string) func(*testing.T, *world, string) object {
		var once sync.Once
		var kept object
		return func(t *testing.T, w *world, _ string) object {
			once.Do(func() {
				owner := w.as["owner"].With(t)
				kept.name = owner.Agent(visibility, w.far.Base(agenttest.Echo))
				owner.Must(http.MethodPatch, "/api/v1/agents/"+kept.name, map[string]any{"embed_origins": []string{"https://example.org"}}, http.StatusOK)
				if visibility != "public" {
					return
				}
				a := w.p.Guest(t).Must(http.MethodPost, "/agents/"+kept.name+"/embed/messages", map[string]string{"client_id": "1", "text": "Hello"}, http.StatusOK)
				kept.other = a.Header.Get("Agentsite-Visitor")
				kept.id = between(a.Body, `"conversation":"`, `"`)[0]
			})
			return kept
		}
	}
	fresh := func(visibility string) func(*testing.T, *world, string) object {
		return func(t *testing.T, w *world, _ string) object { return object{name: w.agent(t, visibility)} }
	}
	visitor := func(o object) (string, string) { return "Agentsite-Visitor", o.other }
	say := fixed(map[string]string{"client_id": "2", "text": "Hello"})
	public := shown("public")
	out := map[string]cell{
		"GET /agents/{name}/embed [off]":           {object: func(_ *testing.T, w *world, _ string) object { return object{name: w.public} }},
		"POST /agents/{name}/embed/messages [off]": {object: func(_ *testing.T, w *world, _ string) object { return object{name: w.public} }, body: say},
		"GET /agents/{name}/embed/live [visitor]":  {object: public, header: visitor, accept: "text/event-stream", query: "?conversation={id}"},
		"GET /agents/{name}/embed/live [nobody]":   {object: public, accept: "text/event-stream", query: "?conversation={id}"},
		"POST /agents/{name}/embed/stop [visitor]": {object: public, header: visitor, body: fixed(map[string]string{"task": "01ARZ3NDEKTSV4RRFFQ69G5FAV"})},
		"POST /agents/{name}/embed/stop [nobody]":  {object: public, body: fixed(map[string]string{"task": "01ARZ3NDEKTSV4RRFFQ69G5FAV"})},
	}
	for _, v := range []string{"public", "private"} {
		same := shown(v)
		out["GET /agents/{name}/embed ["+v+"]"] = cell{object: same}
		out["POST /agents/{name}/embed/messages ["+v+"]"] = cell{object: same, alone: true, body: say}
		out["GET /chat/new ["+v+"]"] = cell{object: same, query: "?agent={name}&text=Hello"}
		out["GET /agents/{name}/qr.svg ["+v+"]"] = cell{object: same}
		out["POST /agents/{name}/sites ["+v+"]"] = cell{object: fresh(v), body: fixed(form("embed_origins", "https://example.org"))}
	}
	return out
}
