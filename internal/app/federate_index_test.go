package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentsite/internal/app"
	"agentsite/internal/app/apptest"
	"agentsite/internal/federation"
	"agentsite/internal/record"
)

// TestSearch_FindsThroughAnIndexWhatIsDown has a portal that keeps only summaries
// find and open an agent of one that is down, with where it is from and the
// proof: an index portal holds it.
func TestSearch_FindsThroughAnIndexWhatIsDown(t *testing.T) {
	t.Parallel()
	index := apptest.Start(t, func(c *app.Config) { c.Tier = record.TierIndex })
	near := apptest.Start(t, func(c *app.Config) { c.Tier = record.TierSummary })
	down, up := apptest.Start(t), apptest.Start(t)
	for i, p := range []*apptest.Portal{down, up, index} {
		p.User(t, "bob").Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": fmt.Sprintf("ferry-%d", i), "title": "Zanzibar timetable", "description": "Knows every ferry.",
			"kind": "link", "visibility": "public"}, http.StatusCreated)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	for _, p := range []*apptest.Portal{down, up} {
		if err := index.Greet(ctx, p.URL()); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []*apptest.Portal{down, up, index} {
		if err := near.Greet(ctx, p.URL()); err != nil {
			t.Fatal(err)
		}
	}
	eve, ada := index.User(t, "eve"), near.User(t, "ada")
	var status struct{ Tier string }
	if eve.Get(http.MethodGet, "/peering/v1/status", nil, http.StatusOK, &status); status.Tier != record.TierIndex {
		t.Errorf("it says that it is %q", status.Tier)
	}
	type answer struct {
		Results []struct {
			Agent    struct{ Handle string }
			Verified bool
			Source   struct{ Portal, Record string }
		}
		Portals federation.Coverage
		Total   int
	}
	pace := time.NewTicker(300 * time.Millisecond)
	defer pace.Stop()
	until := func(what string, c *apptest.Client, path string, ok func(a answer) bool) (a answer) {
		t.Helper()
		for {
			a = answer{}
			if c.Get(http.MethodGet, path, nil, http.StatusOK, &a); ok(a) {
				return a
			}
			select {
			case <-pace.C:
			case <-ctx.Done():
				t.Fatalf("%s: %+v", what, a)
			}
		}
	}
	until("the index holds all", eve, "/api/v1/search?q=zanzibar", func(a answer) bool { return a.Total == 3 })
	for _, p := range []*apptest.Portal{down, up, index} {
		if err := near.Until(ctx, p.NetworkID(), func(p federation.Peer) bool { return p.Agents == 0 && p.Listed > 1 && p.Proven(time.Now()) }); err != nil {
			t.Fatal("it keeps more than summaries:", err)
		}
	}
	until("all answer", ada, "/api/v1/search?q=zanzibar", func(a answer) bool { return a.Total == 3 && a.Portals.Indexes == 1 })
	if page := ada.Must(http.MethodGet, "/network/"+index.NetworkID(), nil, http.StatusOK).Body; !strings.Contains(page, "keeps all it can and answers for others") {
		t.Error("its page does not say that it is an index")
	}
	var peer struct{ Tier string }
	if near.Operator(t, "olga").Get(http.MethodGet, "/api/v1/peers/"+index.NetworkID(), nil, http.StatusOK, &peer); peer.Tier != record.TierIndex {
		t.Errorf("its operator is told that it is %q", peer.Tier)
	}
	down.Stop()
	handle := "ferry-0@" + down.Host
	a := until("without the one that is down", ada, "/api/v1/search?q=zanzibar+timetable", func(a answer) bool {
		return a.Total == 3 && strings.Contains(strings.Join(a.Portals.Silent, " "), down.Host)
	})
	seen := false
	for _, r := range a.Results {
		if r.Agent.Handle == handle {
			seen = r.Verified && r.Source.Portal == down.Host && r.Source.Record != ""
		}
	}
	if c := a.Portals; !seen || c.Indexes != 1 || c.Known != 4 || c.Asked != 4 || c.Answered != 3 {
		t.Errorf("%+v", a)
	}
	if text := ada.Must(http.MethodGet, "/agents?q=zanzibar+timetable&wait=1", nil, http.StatusOK).Body; !strings.Contains(text, handle) || !strings.Contains(text, "1 index portal answered for others") {
		t.Error("the page does not say where it is from")
	}
	if text := ada.Must(http.MethodGet, "/agents/"+handle, nil, http.StatusOK).Body; !strings.Contains(text, "Zanzibar timetable") {
		t.Error("it cannot be opened")
	}
	var e struct{ Head, Record, Proof json.RawMessage }
	ada.Get(http.MethodGet, "/api/v1/agents/"+handle+"/record", nil, http.StatusOK, &e)
	head, err := record.Open(app.DefaultNetwork, e.Head)
	if err != nil {
		t.Fatal(err)
	}
	r, err := record.Open(app.DefaultNetwork, e.Record)
	if err != nil {
		t.Fatal(err)
	}
	proof, err := record.ParseProof(e.Proof)
	if err != nil || string(r.Portal) != down.NetworkID() || !head.Body.(*record.Head).Covers(r, proof) {
		t.Errorf("it is not shown to be listed: %v", err)
	}
	// Nothing of it was kept.
	if err := near.Until(ctx, down.NetworkID(), func(p federation.Peer) bool { return p.Agents == 0 }); err != nil {
		t.Error(err)
	}
}
