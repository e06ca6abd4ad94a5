package app_test

import (
	"net/http"
	"testing"

	"agentsite/internal/ident"
	"agentsite/internal/testing/apptest"
)

// grantCells ask for grants.
func grantCells() map[string]cell {
	body := func(*world, object) any {
		return map[string]any{"agent": "calc", "tool": "ask", "scope": apptest.Fresh("other"), "decision": "deny"}
	}
	granted := func(t *testing.T, w *world, _ string) object {
		id := ident.NewID()
		w.as["owner"].With(t).Must(http.MethodPut, "/api/v1/grants/"+id, body(w, object{}), http.StatusOK)
		return object{id: id}
	}
	return map[string]cell{
		"GET /api/v1/usage":          {},
		"GET /account/usage":         {},
		"GET /api/v1/grants":         {},
		"PUT /api/v1/grants/{id}":    {object: granted, body: body},
		"DELETE /api/v1/grants/{id}": {object: granted},
		"GET /account/grants":        {},
		"POST /account/grants": {body: func(*world, object) any {
			return form("agent", "calc", "tool", "ask", "scope", "guide", "decision", "deny")
		}},
		"POST /account/grants/{id}/delete": {object: granted, body: func(*world, object) any { return form() }},
	}
}
