package app_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentsite/internal/app"
	"agentsite/internal/federation"
	"agentsite/internal/record"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// TestSearch_AsksPortalsOverTheirQuota has a portal that keeps next to nothing
// of another find, open and call its agents.
func TestSearch_AsksPortalsOverTheirQuota(t *testing.T) {
	t.Parallel()
	a := apptest.Start(t)
	a.Operator(t, "olga").Must(http.MethodPatch, "/api/v1/peers/policy", map[string]any{"max_agents": 1}, http.StatusOK)
	findsElsewhere(t, a, "replica", func(p federation.Peer) bool { return p.Truncated && p.Listed > 1 })
}

// TestSearch_AsksPortalsAtTierSummary is the same of a portal that keeps only
// summaries.
func TestSearch_AsksPortalsAtTierSummary(t *testing.T) {
	t.Parallel()
	a := apptest.Start(t, func(c *app.Config) { c.Tier = record.TierSummary })
	findsElsewhere(t, a, "summary", func(p federation.Peer) bool { return !p.Truncated && p.Listed > 1 && p.Agents == 0 })
	var status struct{ Tier string }
	a.User(t, "eve").Get(http.MethodGet, "/peering/v1/status", nil, http.StatusOK, &status)
	if status.Tier != "summary" {
		t.Errorf("it says that it is %q", status.Tier)
	}
}

// findsElsewhere has a portal find, open and call an agent of another that it
// does not hold, once it stands with that as it should.
func findsElsewhere(t *testing.T, a *apptest.Portal, tier string, stands func(federation.Peer) bool) {
	t.Helper()
	agents := agenttest.NewA2AServer(t, "1.0", "JSONRPC")
	b := apptest.Start(t)
	bob := b.User(t, "bob")
	bob.Agent("public", agents.Endpoint(agenttest.Echo))
	bob.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "far-echo", "title": "Zanzibar timetable", "description": "Knows every ferry.", "kind": "a2a",
		"endpoint": agents.Endpoint(agenttest.Echo), "visibility": "public", "config": map[string]any{"binding": "JSONRPC", "version": "1.0", "streaming": true}}, http.StatusCreated)
	if err := a.Greet(t.Context(), b.URL()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := a.Until(ctx, b.NetworkID(), stands); err != nil {
		t.Fatal("its agents are held:", err, a.Log())
	}
	handle := "far-echo@" + b.Host
	ada := a.User(t, "ada")
	var page struct {
		Results []struct {
			Agent    struct{ Handle string }
			Verified bool
			Source   struct{ Portal, Record string }
		}
		Portals federation.Coverage
		Total   int
	}
	// The agent itself may be in a later head of the other portal, which may be
	// asked five times a second.
	pace := time.NewTicker(300 * time.Millisecond)
	defer pace.Stop()
	for ctx.Err() == nil && page.Total == 0 {
		<-pace.C
		ada.Get(http.MethodGet, "/api/v1/search?q=zanzibar", nil, http.StatusOK, &page)
	}
	if len(page.Results) != 1 || page.Results[0].Agent.Handle != handle || page.Results[0].Source.Record == "" || page.Portals.Asked != 2 || page.Portals.Answered != 2 || page.Portals.Tier != tier {
		t.Fatalf("%+v", page)
	}
	if text := ada.Must(http.MethodGet, "/agents?q=zanzibar", nil, http.StatusOK).Body; !strings.Contains(text, handle) {
		t.Error("the page does not show it")
	}
	if text := ada.Must(http.MethodGet, "/agents/"+handle, nil, http.StatusOK).Body; !strings.Contains(text, "Zanzibar timetable") {
		t.Error("it cannot be opened")
	}
	ada.Must(http.MethodGet, "/api/v1/agents/"+handle+"/record", nil, http.StatusOK)
	comesLate(t, a, ada, handle)
	room := ada.Conversation(handle)
	s := ada.Events(room)
	defer s.Close()
	k := ada.Say(room, "hello there").Tasks[0]
	if got := s.Answered(k.ID); got.Plain() != agenttest.Echoed("hello there") {
		t.Errorf("%+v", got)
	}
}

// comesLate finds an agent here at once, and that of another portal when it has
// answered.
func comesLate(t *testing.T, a *apptest.Portal, ada *apptest.Client, handle string) {
	t.Helper()
	ada.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "near", "title": "Zanzibar stories", "description": "Tells of it.", "kind": "link", "visibility": "public"}, http.StatusCreated)
	const page = "/agents?q=zanzibar"
	if text := ada.Must(http.MethodGet, page, nil, http.StatusOK).Body; strings.Contains(text, handle) || !strings.Contains(text, "Zanzibar stories") || !strings.Contains(text, `data-late="`+page+`"`) || !strings.Contains(text, `href="/agents?q=zanzibar&amp;wait=1"`) {
		t.Error("the page waits, or asks nobody:", text)
	}
	if text := ada.Must(http.MethodGet, page+"&wait=1", nil, http.StatusOK).Body; !strings.Contains(text, handle) || !strings.Contains(text, "Zanzibar stories") || strings.Contains(text, "data-late=") {
		t.Error("the page that waits does not show all")
	}
	events := func(path string) (names []string, data []string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.URL()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "text/event-stream")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") || res.Header.Get("Vary") != "Accept" {
			t.Fatalf("%v: %v %s", err, res.Header, body)
		}
		for event := range strings.SplitSeq(strings.TrimSuffix(string(body), "\n\n"), "\n\n") {
			name, text, _ := strings.Cut(event, "\ndata: ")
			names, data = append(names, name), append(data, text)
		}
		return names, data
	}
	names, data := events("/api/v1/search?q=zanzibar")
	if strings.Join(names, " ") != "event: page event: late event: end" || !strings.Contains(data[0], `"handle":"near"`) || strings.Contains(data[0], handle) || !strings.Contains(data[1], handle) || !strings.Contains(data[2], `"answered":2`) {
		t.Errorf("%q %q", names, data)
	}
	names, data = events(page)
	if strings.Join(names, " ") != "event: late event: end" || !strings.Contains(data[0], handle) || !strings.Contains(data[1], "1 more agent from other portals") || !strings.Contains(data[1], "2 of 2 portals") {
		t.Errorf("%q %q", names, data)
	}
	names, _ = events("/api/v1/search?q=zanzibar&scope=portal")
	if strings.Join(names, " ") != "event: page event: end" {
		t.Errorf("of this portal alone: %q", names)
	}
	ada.Must(http.MethodDelete, "/api/v1/agents/near", nil, http.StatusNoContent)
}
