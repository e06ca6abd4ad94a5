package web

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestCleanSlashes(t *testing.T) {
	var path, raw string
	h := cleanSlashes(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { path, raw = r.URL.Path, r.URL.EscapedPath() }))
	for in, want := range map[string]string{
		"/": "/", "//": "/", "/mcp": "/mcp", "/mcp/": "/mcp", "//mcp": "/mcp", "/v1//chat/completions": "/v1/chat/completions",
		"/v1/chat/completions/": "/v1/chat/completions", "/v1/models//": "/v1/models", "/agents//a/mcp/": "/agents/a/mcp",
		"/agents/a///": "/agents/a", "/api/v1//agents?q=a//b/": "/api/v1/agents", "/static/": "/static/",
		"/static//a.css": "/static//a.css", "/agents/a%2Fb//c/": "/agents/a%2Fb/c", "/a/../b/": "/a/../b",
	} {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "http://x.example"+in, nil))
		if raw != want {
			t.Errorf("%s: %s (%s)", in, raw, path)
		}
	}
}
