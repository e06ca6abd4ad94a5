package app_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/testing/apptest"
	"agentsite/internal/testing/federationtest"
)

// peerCells ask about other portals: each about a portal of its own.
func peerCells() map[string]cell {
	portal := func(t *testing.T, w *world, _ string) object {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		other, err := federationtest.NewLiar(app.DefaultNetwork, "http://"+l.Addr().String(), "other", http.DefaultClient)
		if err != nil {
			t.Fatal(err)
		}
		s := &httptest.Server{Listener: l, Config: &http.Server{Handler: other}}
		s.Start()
		// The portal waits before it asks an address again that no longer answers, so no port may be used twice.
		w.t.Cleanup(s.Close)
		return object{id: l.Addr().String()}
	}
	peer := func(t *testing.T, w *world, route string) object {
		o := portal(t, w, route)
		w.oper.With(t).Must(http.MethodPost, "/api/v1/peers", map[string]any{"url": o.id}, http.StatusCreated)
		return o
	}
	fixed := func(v any) func(*world, object) any { return func(*world, object) any { return v } }
	page := func(pairs ...string) cell {
		return cell{object: peer, body: func(*world, object) any { return form(pairs...) }}
	}
	return map[string]cell{
		"GET /api/v1/network":               {},
		"GET /api/v1/queue":                 {},
		"GET /admin/queue":                  {},
		"GET /api/v1/peers":                 {},
		"POST /api/v1/peers":                {object: portal, body: func(_ *world, o object) any { return map[string]any{"url": o.id} }},
		"GET /api/v1/peers/policy":          {},
		"PATCH /api/v1/peers/policy":        {body: func(*world, object) any { return map[string]any{"note": apptest.Fresh("why")} }},
		"GET /api/v1/peers/decisions":       {},
		"GET /api/v1/peers/dht":             {},
		"GET /api/v1/peers/gossip":          {},
		"GET /api/v1/peers/dht/lookup":      {query: "?q=ferries"},
		"GET /api/v1/peers/{peer}":          {object: peer},
		"PATCH /api/v1/peers/{peer}":        {object: peer, body: fixed(map[string]any{"policy": "deny", "note": "spam"})},
		"DELETE /api/v1/peers/{peer}":       {object: peer},
		"GET /api/v1/peers/{peer}/proof":    {object: peer},
		"POST /api/v1/peers/{peer}/release": {object: peer, body: fixed(map[string]any{"proof": "x"})},
		"POST /api/v1/peers/{peer}/attest":  {object: peer, body: fixed(map[string]any{"verdict": "vouch"})},
		"GET /network":                      {},
		"GET /network/{peer}":               {object: peer},
		"GET /admin/peers":                  {},
		"POST /admin/peers":                 {object: portal, body: func(_ *world, o object) any { return form("url", o.id) }},
		"GET /admin/peers/policy":           {},
		"POST /admin/peers/policy":          {body: fixed(form("mode", "open", "vouchers", "2", "service", "on", "max_agents", "50000", "max_megabytes", "128", "requests_per_second", "50", "calls_in", "1", "calls_out", "1", "export", "all"))},
		"GET /admin/peers/{peer}":           {object: peer},
		"POST /admin/peers/{peer}":          page("policy", "deny"),
		"POST /admin/peers/{peer}/forget":   page(),
		"POST /admin/peers/{peer}/release":  page("proof", "x"),
		"POST /admin/peers/{peer}/attest":   page("verdict", "vouch"),
	}
}
