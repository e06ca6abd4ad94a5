package app_test

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/internal/federation"
	"agentsite/internal/record"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// lookups asks an operator's portal for something in the DHT until the answer
// is as wanted.
func lookups(t *testing.T, by *apptest.Client, what string, good func(federation.DHTAnswer) bool) federation.DHTAnswer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	pace := time.NewTicker(200 * time.Millisecond)
	defer pace.Stop()
	var a federation.DHTAnswer
	for {
		a = federation.DHTAnswer{}
		by.Get(http.MethodGet, "/api/v1/peers/dht/lookup?q="+url.QueryEscape(what), nil, http.StatusOK, &a)
		if good(a) {
			return a
		}
		select {
		case <-pace.C:
		case <-ctx.Done():
			t.Fatalf("%s: %+v", what, a)
		}
	}
}

// TestDHT_KnowsWhoHasWhat lets four portals, of which each was told of the
// first only, find portals, agents and capabilities in the DHT, also when the
// first is gone; who is shut out is named no more.
func TestDHT_KnowsWhoHasWhat(t *testing.T) {
	t.Parallel()
	agents := agenttest.NewA2AServer(t, "1.0", "JSONRPC")
	all := make([]*apptest.Portal, 4)
	ops := make([]*apptest.Client, 4)
	for i := range all {
		all[i] = apptest.Start(t)
		ops[i] = all[i].Operator(t, "olga")
		if i > 0 {
			if err := all[i].Greet(t.Context(), all[0].URL()); err != nil {
				t.Fatal(err)
			}
		}
	}
	last := all[3]
	bob := last.User(t, "bob")
	bob.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "far-echo", "title": "Zanzibar timetable", "description": "Knows every ferry.", "kind": "a2a", "skills": []map[string]any{{"id": "ferries", "name": "Ferries", "description": "When they sail.", "tags": []string{"ferries"}}},
		"endpoint": agents.Endpoint(agenttest.Echo), "visibility": "public", "config": map[string]any{"binding": "JSONRPC", "version": "1.0", "streaming": true}}, http.StatusCreated)

	named := func(want ...*apptest.Portal) func(federation.DHTAnswer) bool {
		return func(a federation.DHTAnswer) bool {
			var ids []record.PortalID
			for _, p := range a.Portals {
				ids = append(ids, p.ID)
			}
			for _, w := range want {
				if !slices.Contains(ids, record.PortalID(w.NetworkID())) {
					return false
				}
			}
			return len(ids) == len(want)
		}
	}
	// The number of agents is that of the time when the portal was announced.
	a := lookups(t, ops[1], string(record.PortalID(last.NetworkID())), named(last))
	if p := a.Portals[0]; a.What != "portal" || p.URL != last.URL() || p.Agents > 1 || p.Said == "" {
		t.Errorf("%+v", a)
	}
	if a := lookups(t, ops[2], last.URL(), named(last)); a.What != "host" || a.Portals[0].URL != last.URL() || a.Own {
		t.Errorf("%+v", a)
	}
	// The capability is that of one agent; its id is told by the portal's log.
	if a := lookups(t, ops[2], "ferries", named(last)); a.What != "capability" || a.Portals[0].Agents != 1 {
		t.Errorf("%+v", a)
	}
	a = lookups(t, ops[3], "far-echo@"+last.Host, named(last))
	id := a.Name
	if a.What != "agent" || !strings.HasPrefix(id, last.NetworkID()+"/") {
		t.Errorf("%+v", a)
	}
	lookups(t, ops[1], id, named(last))
	// By its handle it is asked for from anywhere.
	if a := lookups(t, ops[1], "@far-echo@"+last.Host, named(last)); a.What != "agent" || a.Name != id {
		t.Errorf("%+v", a)
	}
	if a := lookups(t, ops[1], "no-such-thing", named()); a.What != "capability" {
		t.Errorf("%+v", a)
	}
	if a := lookups(t, ops[3], id, func(a federation.DHTAnswer) bool { return a.Holders > 0 }); !a.Own {
		t.Errorf("%+v", a)
	}
	// What every portal has is found at all of them.
	var s federation.DHTStanding
	ops[1].Get(http.MethodGet, "/api/v1/peers/dht", nil, http.StatusOK, &s)
	if s.Nodes != 3 || s.Size != 4 || s.Keys < 2 || s.Held == 0 || s.Found == 0 {
		t.Errorf("%+v", s)
	}

	// The one that all began with ends; the others go on.
	all[0].Stop()
	lookups(t, ops[2], id, named(last))

	// It is shut out at the second: nothing of it is kept or named there.
	var held federation.DHTStanding
	ops[1].Get(http.MethodGet, "/api/v1/peers/dht", nil, http.StatusOK, &held)
	ops[1].Must(http.MethodPatch, "/api/v1/peers/"+string(record.PortalID(last.NetworkID())), map[string]any{"policy": "deny"}, http.StatusOK)
	lookups(t, ops[1], id, named())
	// Its entries are dropped there. Their number is not compared: an entry that a
	// busy portal did not accept in time is stored at the next refresh. That all of
	// them go is tested by TestRunner_ForgetsForGood.
	var less federation.DHTStanding
	lookups(t, ops[1], id, func(federation.DHTAnswer) bool {
		less = federation.DHTStanding{}
		ops[1].Get(http.MethodGet, "/api/v1/peers/dht", nil, http.StatusOK, &less)
		return less.Held < held.Held && less.Nodes < held.Nodes
	})
	// The third knows it as before.
	lookups(t, ops[2], id, named(last))

	ops[1].Must(http.MethodGet, "/api/v1/peers/dht/lookup", nil, http.StatusBadRequest)
}
