package app_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"agentsite/internal/testing/apptest"
)

// peerCells ask about other portals: each about an address of its own, where
// nobody answers.
func peerCells() map[string]cell {
	var port atomic.Int64
	address := func() string { return fmt.Sprintf("127.0.0.1:%d", 100+port.Add(1)) } // nothing of tests listens there
	peer := func(t *testing.T, w *world, _ string) object {
		host := address()
		w.oper.With(t).Must(http.MethodPost, "/api/v1/peers", map[string]any{"url": "http://" + host}, http.StatusCreated)
		return object{id: host}
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
		"POST /api/v1/peers":                {body: func(*world, object) any { return map[string]any{"url": "http://" + address()} }},
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
		"POST /admin/peers":                 {body: func(*world, object) any { return form("url", "http://"+address()) }},
		"GET /admin/peers/policy":           {},
		"POST /admin/peers/policy":          {body: fixed(form("mode", "open", "vouchers", "2", "service", "on", "max_agents", "50000", "max_megabytes", "128", "requests_per_second", "50", "calls_in", "1", "calls_out", "1", "export", "all"))},
		"GET /admin/peers/{peer}":           {object: peer},
		"POST /admin/peers/{peer}":          page("policy", "deny"),
		"POST /admin/peers/{peer}/forget":   page(),
		"POST /admin/peers/{peer}/release":  page("proof", "x"),
		"POST /admin/peers/{peer}/attest":   page("verdict", "vouch"),
	}
}
