package app_test

import (
	"net/http"
	"net/url"
	"sync"
	"testing"

	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// registryCells ask as clients of the MCP registry do.
func registryCells() map[string]cell {
	const space = "1.0.0.127/"
	document := func(w *world, name string) map[string]any {
		return map[string]any{"$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json", "name": space + name, "description": "A server.", "version": "1.0.0",
			"remotes": []any{map[string]any{"type": "streamable-http", "url": w.far.Base(agenttest.Echo) + "/" + name}}}
	}
	// Only the last of the actors changes anything, so each row has one object:
	// an account has few agents.
	once := func(make func(t *testing.T, w *world, name string)) func(*testing.T, *world, string) object {
		var mu sync.Mutex // guards made
		made := ""
		return func(t *testing.T, w *world, _ string) object {
			mu.Lock()
			defer mu.Unlock()
			if made == "" {
				made = apptest.Fresh("server")
				make(t, w, made)
			}
			return object{name: url.PathEscape(space + made)}
		}
	}
	publish := func(t *testing.T, w *world, name string) {
		w.tokens["agents:write"].With(t).Must(http.MethodPost, "/v0.1/publish", document(w, name), http.StatusOK)
	}
	published, private := once(publish), once(func(t *testing.T, w *world, name string) {
		w.as["owner"].With(t).Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": name, "description": "A server.", "kind": "mcp", "endpoint": w.far.Base(agenttest.Echo), "visibility": "private",
			"config": map[string]any{"tools": []any{}}}, http.StatusCreated)
	})
	fixed := func(v any) func(*world, object) any { return func(*world, object) any { return v } }
	login := fixed(map[string]any{"domain": "", "timestamp": "", "signed_timestamp": ""})
	out := make(map[string]cell)
	for _, base := range []string{"/v0.1", "/v0"} {
		out["GET "+base+"/servers"] = cell{}
		for variant, o := range map[string]func(*testing.T, *world, string) object{"public": published, "private": private} {
			out["GET "+base+"/servers/{name}/versions ["+variant+"]"] = cell{object: o}
			out["GET "+base+"/servers/{name}/versions/{version} ["+variant+"]"] = cell{object: o}
		}
		for variant, o := range map[string]func(*testing.T, *world, string) object{"public": once(publish), "private": private} {
			out["PATCH "+base+"/servers/{name}/status ["+variant+"]"] = cell{object: o, body: fixed(map[string]any{"status": "deprecated"})}
		}
		// The word latest names no version here, as in the official registry.
		out["PATCH "+base+"/servers/{name}/versions/{version}/status"] = cell{object: published, body: fixed(map[string]any{"status": "deprecated"})}
		out["POST "+base+"/publish"] = cell{body: func(w *world, _ object) any { return document(w, apptest.Fresh("server")) }}
		out["POST "+base+"/validate"] = cell{body: func(w *world, _ object) any { return document(w, "some") }}
		out["POST "+base+"/auth/http"], out["POST "+base+"/auth/dns"], out["POST "+base+"/auth/none"] = cell{body: login}, cell{body: login}, cell{}
		for _, p := range []string{"/ping", "/version", "/health"} {
			out["GET "+base+p] = cell{}
		}
	}
	return out
}
