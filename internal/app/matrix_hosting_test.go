package app_test

import (
	"net/http"
	"testing"

	"agentsite/internal/testing/apptest"
	"agentsite/internal/testing/wasmtest"
)

// hostingCells are the requests of the routes of hosted programs. Every account may host.
func hostingCells() map[string]cell {
	rules := map[string]any{"policy": "any"}
	allow := func(t *testing.T, w *world, _ string) object {
		w.oper.With(t).Must(http.MethodPut, "/api/v1/hosting", rules, http.StatusOK)
		return object{}
	}
	// Each module is another one.
	module := func(*world, object) any {
		return string(wasmtest.New().Bytes()) + string(wasmtest.Raw(0, wasmtest.Name(apptest.Fresh("m"))))
	}
	return map[string]cell{
		"GET /api/v1/hosting":          {},
		"PUT /api/v1/hosting":          {body: func(*world, object) any { return rules }},
		"GET /api/v1/hosting/modules":  {},
		"POST /api/v1/hosting/modules": {object: allow, body: module},
		"DELETE /api/v1/hosting/modules/{hash}": {object: func(t *testing.T, w *world, actor string) object {
			allow(t, w, actor)
			var m struct{ Hash string }
			w.as["owner"].With(t).Get(http.MethodPost, "/api/v1/hosting/modules", module(w, object{}), http.StatusCreated, &m)
			return object{name: m.Hash}
		}},
	}
}
