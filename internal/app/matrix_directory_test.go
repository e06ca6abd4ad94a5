package app_test

import (
	"net/http"
	"testing"

	"agentsite/internal/ident"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// directoryCells say what the routes of finding and being told are asked.
func directoryCells(fixed func(any) func(*world, object) any, agent func(string) func(*testing.T, *world, string) object, room func(*testing.T, *world, string) object) map[string]cell {
	saved := func(t *testing.T, w *world, _ string) object {
		var s struct{ ID string }
		w.as["owner"].With(t).Get(http.MethodPost, "/api/v1/searches", map[string]any{"query": "q=" + apptest.Fresh("word")}, http.StatusCreated, &s)
		return object{id: s.ID}
	}
	domain := func(*testing.T, *world, string) object { return object{handle: "example.org"} }
	out := map[string]cell{
		"GET /.well-known/ard.json":        {},
		"GET /.well-known/ai-catalog.json": {},
		"GET /.well-known/nodeinfo":        {},
		"GET /nodeinfo/2.1":                {},
		"POST /ard/search":                 {body: fixed(map[string]any{"query": map[string]any{"text": "calculator"}})},
		"POST /ard/explore":                {body: fixed(map[string]any{"resultType": map[string]any{"facets": []any{map[string]any{"field": "tags"}}}})},
		"GET /ard/agents":                  {},
		"GET /ard/agents/{urn} [public]":   {object: func(_ *testing.T, w *world, _ string) object { return object{name: w.public} }},
		"GET /ard/agents/{urn} [private]":  {object: func(_ *testing.T, w *world, _ string) object { return object{name: w.private} }},

		"GET /link":                       {},
		"GET /api/v1/openapi.json":        {},
		"GET /api/v1/suggest":             {query: "?q=cal"},
		"GET /api/v1/searches":            {},
		"POST /api/v1/searches":           {body: func(*world, object) any { return map[string]any{"query": "q=" + apptest.Fresh("word")} }},
		"DELETE /api/v1/searches/{id}":    {object: saved},
		"GET /api/v1/notices":             {},
		"GET /api/v1/invitations":         {},
		"GET /api/v1/blocks":              {},
		"POST /api/v1/notices/read":       {body: fixed(map[string]any{"up_to": ident.NewID()})},
		"GET /api/v1/domains":             {},
		"POST /api/v1/domains":            {body: fixed(map[string]any{"domain": ""})},
		"DELETE /api/v1/domains/{domain}": {object: domain},
		"POST /api/v1/import":             {},
		"GET /agents/feed":                {query: "?q=calculator"},
		"POST /searches":                  {body: func(*world, object) any { return form("query", "q="+apptest.Fresh("word")) }},
		"POST /searches/{id}":             {object: saved, body: fixed(form())},
		"POST /searches/{id}/delete":      {object: saved, body: fixed(form())},
		"GET /notices":                    {},
		"POST /notices":                   {body: fixed(form("up_to", ident.NewID()))},
		"POST /chat/{id}/tool":            {object: room, body: fixed(form("agent", "nobody", "tool", "none"))},
		"POST /account/domains":           {body: fixed(form("domain", ""))},
		"POST /account/domains/remove":    {body: fixed(form("domain", "example.org"))},
	}
	for _, v := range []string{"public", "private"} {
		out["PUT /api/v1/agents/{name} ["+v+"]"] = cell{object: agent(v), body: func(w *world, _ object) any {
			b := agentBody()
			b["endpoint"], b["visibility"] = w.far.Base(agenttest.Echo), v
			delete(b, "name")
			return b
		}}
	}
	return out
}
