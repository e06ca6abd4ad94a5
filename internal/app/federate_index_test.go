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
	"agentsite/internal/federation"
	"agentsite/internal/record"
	"agentsite/internal/testing/apptest"
	"agentsite/internal/testing/evil"
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
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
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
		if err := near.Until(ctx, p.NetworkID(), func(p federation.Peer) bool { return p.Agents == 0 && p.Listed == 1 && p.Proven(time.Now()) }); err != nil {
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

// TestSearch_DropsLiesOfAnIndex has an index portal lie about another portal:
// nothing of it is shown, and the index is blamed for it alone.
func TestSearch_DropsLiesOfAnIndex(t *testing.T) {
	t.Parallel()
	near := apptest.Start(t, func(c *app.Config) { c.Tier = record.TierSummary })
	b := apptest.Start(t)
	b.User(t, "bob").Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "ferry", "title": "Zanzibar timetable", "description": "Knows every ferry.", "kind": "link", "visibility": "public"}, http.StatusCreated)
	liar, err := evil.New(app.DefaultNetwork)
	if err != nil {
		t.Fatal(err)
	}
	defer liar.Close()
	c := liar.Card()
	c.Tier = record.TierIndex
	card, err := liar.Sign(c)
	if err != nil {
		t.Fatal(err)
	}
	liar.ShowCard(card)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for _, origin := range []string{b.URL(), liar.Origin} {
		if err := near.Greet(ctx, origin); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{b.NetworkID(), string(liar.ID)} {
		if err := near.Until(ctx, id, func(p federation.Peer) bool {
			return p.State == federation.Active && p.Proven(time.Now()) && !p.HeadExpires.IsZero() && (id == string(liar.ID) || p.Listed == 1)
		}); err != nil {
			t.Fatal(err)
		}
	}
	ada, olga := near.User(t, "ada"), near.Operator(t, "olga")
	type telling struct{ Card, Head json.RawMessage }
	var of telling
	b.Guest(t).Get(http.MethodGet, "/.well-known/agentsite", nil, http.StatusOK, &of)
	// What is invented is an agent of b that only the liar signed, in a tree of
	// its own.
	invented := func(word string) (hit federation.Hit, tree record.Tree) {
		a := liar.Agent(word, word)
		a.Portal = record.PortalID(b.NetworkID())
		wire, err := liar.Sign(a)
		if err != nil {
			t.Fatal(err)
		}
		r, err := record.Open(app.DefaultNetwork, wire)
		if err != nil {
			t.Fatal(err)
		}
		key := record.AgentKey(a.AgentID())
		tree.Set(key, r.Hash)
		proof, err := tree.Prove(key).Encode()
		if err != nil {
			t.Fatal(err)
		}
		return federation.Hit{Record: wire, Proof: proof, Score: 9}, tree
	}
	faults := func(id string) (n int) {
		var p struct{ Faults map[string]int }
		olga.Get(http.MethodGet, "/api/v1/peers/"+id, nil, http.StatusOK, &p)
		for _, c := range p.Faults {
			n += c
		}
		return n
	}
	for word, lie := range map[string]func(word string) federation.SearchAnswer{
		"atlantis": func(word string) federation.SearchAnswer { // under the head that b has
			hit, _ := invented(word)
			return federation.SearchAnswer{Results: []federation.Hit{hit}, Heads: []federation.Told{{Card: of.Card, Head: of.Head}}}
		},
		"lemuria": func(word string) federation.SearchAnswer { // under one that the liar made
			hit, tree := invented(word)
			h := liar.Head(&tree)
			h.Portal = record.PortalID(b.NetworkID())
			head, err := liar.Sign(h)
			if err != nil {
				t.Error(err)
			}
			return federation.SearchAnswer{Results: []federation.Hit{hit}, Heads: []federation.Told{{Card: of.Card, Head: head}}}
		},
		"hyperborea": func(word string) federation.SearchAnswer { // with a card that the liar made besides
			hit, tree := invented(word)
			h, c := liar.Head(&tree), liar.Card()
			h.Portal, c.Portal = record.PortalID(b.NetworkID()), record.PortalID(b.NetworkID())
			head, err := liar.Sign(h)
			card, err2 := liar.Sign(c)
			if err != nil || err2 != nil {
				t.Error(err, err2)
			}
			return federation.SearchAnswer{Results: []federation.Hit{hit}, Heads: []federation.Told{{Card: card, Head: head}}}
		},
	} {
		liar.On("/search", func(w http.ResponseWriter, r *http.Request) {
			a := lie(word)
			_, a.Head = liar.Current()
			evil.Say(w, a)
		})
		before := faults(string(liar.ID))
		asked := liar.Asked("/search")
		var page struct{ Total int }
		ada.Get(http.MethodGet, "/api/v1/search?q="+word, nil, http.StatusOK, &page)
		if page.Total != 0 {
			t.Errorf("%s is found", word)
		}
		if err := liar.Wait(ctx, "/search", asked+1); err != nil {
			t.Error(err)
		}
		if got := faults(string(liar.ID)); got <= before {
			t.Errorf("%s: the index is not blamed: %d faults, then %d", word, before, got)
		}
		if ada.Do(http.MethodGet, "/agents/agent-"+word+"@"+b.Host, nil).Status != http.StatusNotFound {
			t.Errorf("%s can be opened", word)
		}
	}
	if n := faults(b.NetworkID()); n != 0 {
		t.Errorf("%d faults of the portal that it lied about", n)
	}
	if state := b.Guest(t).Must(http.MethodGet, "/agents/ferry", nil, http.StatusOK); !strings.Contains(state.Body, "Zanzibar") {
		t.Error("it is not as it was")
	}
	var page struct{ Total int }
	pace := time.NewTicker(300 * time.Millisecond)
	defer pace.Stop()
	for ctx.Err() == nil && page.Total == 0 { // it may be in a later head of b
		<-pace.C
		ada.Get(http.MethodGet, "/api/v1/search?q=zanzibar", nil, http.StatusOK, &page)
	}
	if page.Total != 1 {
		t.Error("what is true is not found any more")
	}
}
