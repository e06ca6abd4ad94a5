package app_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"agentsite/internal/testing/apptest"
	"agentsite/internal/testing/wasmtest"
)

// hostingCells are the requests of the routes of hosted programs. Every account may host.
func hostingCells() map[string]cell {
	rules := map[string]any{"policy": "any", "max_modules": 200}
	allow := func(t *testing.T, w *world, _ string) object {
		w.oper.With(t).Must(http.MethodPut, "/api/v1/hosting", rules, http.StatusOK)
		return object{}
	}
	// Each module is another one.
	module := func(*world, object) any {
		return string(wasmtest.New().Bytes()) + string(wasmtest.Raw(0, wasmtest.Name(apptest.Fresh("m"))))
	}
	// Uploads are limited, so each of these two modules of the owner is uploaded once.
	once := func(name string, b []byte) func(*testing.T, *world) string {
		var first sync.Once
		var hash string
		return func(t *testing.T, w *world) string {
			first.Do(func() { hash = upload(t, w.as["owner"].With(t), name, b) })
			return hash
		}
	}
	alone := once("p.wasm", wasmtest.Says("Published by its owner only.").Bytes())
	same := once("pack.wasm", wasmtest.Says("Packed.").Bytes())
	publish := func(t *testing.T, w *world, hash string) object {
		name := apptest.Fresh("pack")
		w.as["owner"].With(t).Must(http.MethodPost, "/api/v1/packages", map[string]any{"name": name, "version": "1.0.0",
			"summary": "Says hello to people.", "licence": "MIT", "module": hash}, http.StatusCreated)
		return object{name: name}
	}
	// Each package is the owner's.
	published := func(t *testing.T, w *world, actor string) object {
		allow(t, w, actor)
		return publish(t, w, same(t, w))
	}
	// A kill stops the module in all packages, so those that are killed have one of their own. A package that nobody could
	// kill is used again: uploads are limited.
	var last object
	doomed := func(t *testing.T, w *world, actor string) (o object) {
		allow(t, w, actor)
		if last.name != "" {
			var p sawPackage
			w.as["owner"].With(t).Get(http.MethodGet, "/api/v1/packages/"+last.name, nil, http.StatusOK, &p)
			if p.State != "killed" {
				return last
			}
		}
		defer func() { last = o }()
		return publish(t, w, upload(t, w.as["owner"].With(t), "doomed.wasm", []byte(module(w, object{}).(string))))
	}
	uploaded := func(t *testing.T, w *world, actor string) object {
		allow(t, w, actor)
		return object{name: apptest.Fresh("pack"), hash: alone(t, w)}
	}
	note := func(*world, object) any { return map[string]any{"note": "It is old."} }
	hash := func(t *testing.T, w *world, _ string) object {
		hash := strings.Repeat("ab", 32)
		w.oper.With(t).Must(http.MethodPut, "/api/v1/hosting/kills/"+hash, map[string]any{"reason": "x"}, http.StatusOK)
		return object{hash: hash}
	}
	return map[string]cell{
		"GET /api/v1/packages": {},
		"POST /api/v1/packages": {object: uploaded, body: func(_ *world, o object) any {
			return map[string]any{"name": o.name, "version": "1.0.0", "summary": "Says hello.", "licence": "MIT",
				"module": o.hash}
		}},
		"GET /packages":              {},
		"GET /api/v1/hosting/policy": {},
		"GET /packages/new":          {object: allow},
		"POST /packages/new": {object: uploaded, body: func(_ *world, o object) any {
			return form("name", o.name, "version", "1.0.0", "summary", "Says hello.", "licence", "MIT", "module", o.hash)
		}},
		"GET /packages/{name}": {object: published},
		"POST /packages/{name}/host": {object: published, body: func(*world, object) any {
			return form("version", "1.0.0", "name", strings.ToLower(apptest.Fresh("runs")), "public", "1")
		}},
		"GET /admin/hosting": {},
		"POST /admin/hosting": {body: func(*world, object) any {
			return form("policy", "any", "list", "", "max_modules", "200", "max_mib", "128")
		}},
		"POST /admin/hosting/kills": {body: func(*world, object) any {
			return form("hash", strings.Repeat("cd", 32), "reason", "It lies.")
		}},
		"POST /admin/hosting/kills/delete":                 {object: hash, body: func(_ *world, o object) any { return form("hash", o.hash) }},
		"GET /api/v1/packages/{name}":                      {object: published},
		"GET /api/v1/packages/{name}/{version}":            {object: published},
		"GET /api/v1/packages/{name}/{version}/module":     {object: published},
		"POST /api/v1/packages/{name}/{version}/deprecate": {object: published, body: note},
		"POST /api/v1/packages/{name}/{version}/withdraw":  {object: published, body: note},
		"POST /api/v1/packages/{name}/{version}/kill":      {object: doomed, body: note},
		"GET /api/v1/hosting/kills":                        {},
		"PUT /api/v1/hosting/kills/{hash}": {object: hash, body: func(*world, object) any {
			return map[string]any{"reason": "It lies."}
		}},
		"DELETE /api/v1/hosting/kills/{hash}": {object: hash},
		"GET /api/v1/hosting":                 {},
		"PUT /api/v1/hosting":                 {body: func(*world, object) any { return rules }},
		"GET /api/v1/hosting/modules":         {},
		"POST /api/v1/hosting/modules":        {object: allow, body: module},
		"DELETE /api/v1/hosting/modules/{hash}": {object: func(t *testing.T, w *world, actor string) object {
			allow(t, w, actor)
			var m struct{ Hash string }
			w.as["owner"].With(t).Get(http.MethodPost, "/api/v1/hosting/modules", module(w, object{}), http.StatusCreated, &m)
			return object{name: m.Hash}
		}},
	}
}
