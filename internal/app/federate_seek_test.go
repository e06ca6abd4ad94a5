package app_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"agentsite/internal/app"
	"agentsite/internal/federation"
	"agentsite/internal/record"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// TestSeek_FindsAgentsOfPortalsNobodyToldOf has ten portals, of which one holds
// no more than two others: an agent of a portal that it does not know is found
// there by its handle and by its id, and answers.
func TestSeek_FindsAgentsOfPortalsNobodyToldOf(t *testing.T) {
	t.Parallel()
	const portals = 10
	agents := agenttest.NewA2AServer(t, "1.0", "JSONRPC")
	all := make([]*apptest.Portal, portals)
	for i := range all {
		all[i] = apptest.Start(t, func(c *app.Config) {
			if c.Tier = record.TierSummary; i == portals-1 {
				c.MostPeers = 2
			}
		})
		if i > 0 && i < portals-1 {
			if err := all[i].Greet(t.Context(), all[0].URL()); err != nil {
				t.Fatal(err)
			}
		}
	}
	b := all[portals-1]
	for _, p := range all[2:4] {
		p.User(t, "bob").Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "far-echo", "title": "Zanzibar timetable", "description": "Knows every ferry.", "kind": "a2a",
			"endpoint": agents.Endpoint(agenttest.Echo), "visibility": "public", "config": map[string]any{"binding": "JSONRPC", "version": "1.0", "streaming": true}}, http.StatusCreated)
	}
	// The last one knows the first, which it keeps whatever comes, and has room for
	// one more. So it does not know one of those two.
	if err := b.Greet(t.Context(), all[0].URL()); err != nil {
		t.Fatal(err)
	}
	if err := b.Rule(t.Context(), all[0].NetworkID(), "allow"); err != nil {
		t.Fatal(err)
	}
	olga := b.Operator(t, "olga")
	for _, p := range all[2:4] {
		lookups(t, olga, p.URL(), func(d federation.DHTAnswer) bool { return len(d.Portals) == 1 })
	}
	a := all[2]
	if known := func() bool { return b.State(t.Context(), a.NetworkID()) != "" }; known() {
		if a = all[3]; known() {
			t.Fatal("both are known, so there is nothing to be sought")
		}
	}
	handle := "far-echo@" + a.Host
	ada := b.User(t, "ada")
	page := ada.Must(http.MethodGet, "/agents/"+handle, nil, http.StatusOK).Body
	if !strings.Contains(page, "Zanzibar timetable") || !strings.Contains(page, "through the DHT") {
		t.Error(page)
	}
	if b.State(t.Context(), a.NetworkID()) == "" {
		t.Error("the portal is not known from then on")
	}
	var agent struct {
		Handle string
		Source struct {
			Portal, ID, Record string
			Verified           bool
			Sought             string `json:"sought_at"`
		}
	}
	ada.Get(http.MethodGet, "/api/v1/agents/"+handle, nil, http.StatusOK, &agent)
	if s := agent.Source; agent.Handle != handle || s.ID != a.NetworkID() || !s.Verified || s.Record == "" || s.Sought == "" {
		t.Errorf("%+v", agent)
	}
	ada.Must(http.MethodGet, "/api/v1/agents/"+handle+"/record", nil, http.StatusOK)
	room := ada.Conversation(handle)
	s := ada.Events(room)
	defer s.Close()
	k := ada.Say(room, "hello there").Tasks[0]
	if got := s.Answered(k.ID); got.Plain() != agenttest.Echoed("hello there") {
		t.Errorf("%+v", got)
	}

	var found struct {
		Results []struct{ Agent struct{ Handle string } }
	}
	ada.Get(http.MethodGet, "/api/v1/search?q="+url.QueryEscape(handle), nil, http.StatusOK, &found)
	if len(found.Results) == 0 || found.Results[0].Agent.Handle != handle {
		t.Errorf("%+v", found)
	}

	// What is typed into the search box, called by another protocol or told by its
	// id is found too.
	typed := "guide@" + all[4].Host
	lookups(t, olga, all[4].URL(), func(d federation.DHTAnswer) bool { return len(d.Portals) == 1 })
	if page := ada.Must(http.MethodGet, "/agents?q="+url.QueryEscape(typed), nil, http.StatusOK).Body; !strings.Contains(page, "/agents/"+typed) {
		t.Error("the search box does not find", typed)
	}
	called := "guide@" + all[5].Host
	lookups(t, olga, all[5].URL(), func(d federation.DHTAnswer) bool { return len(d.Portals) == 1 })
	ada.Must(http.MethodPost, "/v1/chat/completions", map[string]any{"model": called, "messages": []map[string]string{{"role": "user", "content": "hello"}}}, http.StatusOK)
	carl := all[6].Operator(t, "carl")
	named := carl.Agent("public", agents.Endpoint(agenttest.Echo)) + "@" + all[6].Host
	id := lookups(t, carl, named, func(d federation.DHTAnswer) bool { return len(d.Portals) == 1 }).Name
	lookups(t, olga, id, func(d federation.DHTAnswer) bool { return len(d.Portals) == 1 })
	if to := ada.Must(http.MethodGet, "/agents/"+url.PathEscape(id), nil, http.StatusFound).Header.Get("Location"); to != "/agents/"+named {
		t.Errorf("its id leads to %q", to)
	}
	var byID struct{ Handle string }
	ada.Get(http.MethodGet, "/api/v1/agents/"+url.PathEscape(id), nil, http.StatusOK, &byID)
	if byID.Handle != named {
		t.Errorf("by its id it is %+v", byID)
	}

	// Whom an operator shut out is not found by way of the DHT.
	if err := b.Rule(t.Context(), all[6].NetworkID(), "deny"); err != nil {
		t.Fatal(err)
	}
	ada.Must(http.MethodGet, "/agents/"+named, nil, http.StatusNotFound)
	ada.Must(http.MethodGet, "/api/v1/agents/"+url.PathEscape(id), nil, http.StatusNotFound)
	ada.Must(http.MethodGet, "/agents/nobody@"+all[8].Host, nil, http.StatusNotFound)
	ada.Must(http.MethodGet, "/agents/nobody@nowhere.example", nil, http.StatusNotFound)
	ada.Must(http.MethodGet, "/agents/"+url.PathEscape(id[:54]+"/01none"), nil, http.StatusNotFound)
	// Who only asks for them does not make the portal ask again.
	var before, after federation.DHTStanding
	olga.Get(http.MethodGet, "/api/v1/peers/dht", nil, http.StatusOK, &before)
	guest := b.Guest(t)
	for range 20 {
		guest.Must(http.MethodGet, "/agents/nobody@nowhere.example", nil, http.StatusNotFound)
	}
	olga.Get(http.MethodGet, "/api/v1/peers/dht", nil, http.StatusOK, &after)
	if after.Missed != before.Missed {
		t.Errorf("%d lookups for what is known not to be there", after.Missed-before.Missed)
	}
	// Nor do many that nobody has.
	limited := 0
	for i := range 20 {
		if guest.Do(http.MethodGet, fmt.Sprintf("/agents/nobody-%d@nowhere.example", i), nil).Status == http.StatusTooManyRequests {
			limited++
		}
	}
	if limited < 10 {
		t.Errorf("of 20 unknown agents that a visitor asked for, %d were refused", limited)
	}
}

// TestSearch_AsksWhomTheDHTNames has a portal that knows one other search for a
// capability that only a portal has which it does not know.
func TestSearch_AsksWhomTheDHTNames(t *testing.T) {
	t.Parallel()
	agents := agenttest.NewA2AServer(t, "1.0", "JSONRPC")
	hub, far := apptest.Start(t), apptest.Start(t)
	near := apptest.Start(t, func(c *app.Config) { c.Tier, c.MostPeers = record.TierSummary, 1 })
	for _, p := range []*apptest.Portal{far, near} {
		if err := p.Greet(t.Context(), hub.URL()); err != nil {
			t.Fatal(err)
		}
	}
	if err := near.Rule(t.Context(), hub.NetworkID(), "allow"); err != nil {
		t.Fatal(err)
	}
	far.User(t, "bob").Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "far-echo", "title": "Zanzibar timetable", "description": "Knows every ferry.", "kind": "a2a",
		"skills":   []map[string]any{{"id": "ferries", "name": "Ferries", "description": "When they sail.", "tags": []string{"Ferries"}}},
		"endpoint": agents.Endpoint(agenttest.Echo), "visibility": "public", "config": map[string]any{"binding": "JSONRPC", "version": "1.0", "streaming": true}}, http.StatusCreated)
	olga := near.Operator(t, "olga")
	lookups(t, olga, "ferries", func(d federation.DHTAnswer) bool { return len(d.Portals) == 1 })
	ada := near.User(t, "ada")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	pace := time.NewTicker(300 * time.Millisecond)
	defer pace.Stop()
	var page struct {
		Results []struct{ Agent struct{ Handle string } }
		Portals federation.Coverage
	}
	for len(page.Results) == 0 { // its summary may be known to the other, its agent not yet
		if ctx.Err() != nil {
			t.Fatalf("%+v", page)
		}
		<-pace.C
		ada.Get(http.MethodGet, "/api/v1/search?tag=Ferries", nil, http.StatusOK, &page)
	}
	if page.Results[0].Agent.Handle != "far-echo@"+far.Host || page.Portals.Named != 1 {
		t.Errorf("%+v", page)
	}
	if state := near.State(t.Context(), far.NetworkID()); state != "" {
		t.Errorf("it is known, and %s", state)
	}
	// A portal that answers too late for one page may be in the next.
	for text := ""; !strings.Contains(text, "Zanzibar timetable") || !strings.Contains(text, "1 of them named by the DHT"); {
		if ctx.Err() != nil {
			t.Fatal(text)
		}
		text = ada.Must(http.MethodGet, "/agents?tag=Ferries&wait=1", nil, http.StatusOK).Body
	}
}
