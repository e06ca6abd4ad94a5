package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/testing/storetest"
)

// unpublished takes all changes that wait and returns whose they are.
func unpublished(t *testing.T, db *storetest.DB) []string {
	t.Helper()
	numbers, ids, err := db.Unpublished(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Published(t.Context(), numbers); err != nil {
		t.Fatal(err)
	}
	return ids
}

func told(db *storetest.DB) bool {
	select {
	case <-db.Publishing():
		return true
	default:
		return false
	}
}

func TestUnpublished_HasWhateverOthersMayHaveToLearn(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada, bob := storetest.Account(t, db, "ada"), storetest.Account(t, db, "bob")
	unpublished(t, db)
	told(db)
	a := storetest.Agent(t, db, "words", ada)
	if got := unpublished(t, db); !slices.Equal(got, []string{a.ID}) || !told(db) {
		t.Fatalf("after it was registered: %q", got)
	}
	update := func(change func(a *hub.Agent)) func() error {
		return func() error {
			now := byID(t, db, a.ID)
			next := now
			next.Version++
			change(&next)
			return db.UpdateAgent(t.Context(), next, now.Version, nil, ident.Actor{})
		}
	}
	for _, c := range []struct {
		what string
		do   func() error
		want bool
	}{
		{"its description", update(func(a *hub.Agent) { a.Description = "Other words." }), true},
		{"unlisted", update(func(a *hub.Agent) { a.Visibility = hub.Unlisted }), true},
		{"unlisted, another title", update(func(a *hub.Agent) { a.Title = "Hidden" }), false},
		{"public again", update(func(a *hub.Agent) { a.Visibility = hub.Public }), true},
		{"withdrawn", update(func(a *hub.Agent) { a.Status.State = hub.Withdrawn }), true},
		{"held", update(func(a *hub.Agent) { a.Status.Held = true }), true},
		{"active", update(func(a *hub.Agent) { a.Status = hub.Status{State: hub.Active} }), true},
		{"proved", func() error {
			return db.SetProof(t.Context(), a.ID, ada.ID, hub.Proof{Method: hub.ProofToken, Origin: "https://x.example", At: clock.Now()})
		}, true},
		{"probed", func() error {
			return db.SetLiveness(t.Context(), a.ID, hub.Liveness{State: hub.Alive, CheckedAt: clock.Now()}, clock.Now(), 0)
		}, false},
		{"its owner disabled", func() error { return db.SetDisabled(t.Context(), ada.ID, clock.Now(), ident.Actor{}) }, true},
		{"its owner disabled again", func() error { return db.SetDisabled(t.Context(), bob.ID, time.Time{}, ident.Actor{}) }, false},
		{"its owner enabled", func() error { return db.SetDisabled(t.Context(), ada.ID, time.Time{}, ident.Actor{}) }, true},
		{"offered", func() error { return db.SetOffer(t.Context(), a.ID, bob.ID) }, false},
		{"given away", func() error { return db.Transfer(t.Context(), a.ID, bob.ID, false, 10) }, true},
		{"removed", func() error { return db.DeleteAgent(t.Context(), a.ID) }, true},
	} {
		told(db)
		if err := c.do(); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		if got := unpublished(t, db); c.want != slices.Equal(got, []string{a.ID}) || !c.want && len(got) > 0 {
			t.Errorf("%s: %q waits", c.what, got)
		}
		if got := told(db); c.want && !got {
			t.Errorf("%s: nobody was told", c.what)
		}
	}
	storetest.Sound(t, db)
}

func TestPublished_LeavesWhatChangedAgain(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	unpublished(t, db)
	a, b := storetest.Agent(t, db, "words", ada), storetest.Agent(t, db, "other", ada)
	numbers, ids, err := db.Unpublished(t.Context(), 100)
	if err != nil || !slices.Equal(ids, []string{a.ID, b.ID}) {
		t.Fatal(ids, err)
	}
	next := byID(t, db, a.ID)
	next.Version, next.Title = 2, "Changed"
	if err := db.UpdateAgent(t.Context(), next, 1, nil, ident.Actor{}); err != nil {
		t.Fatal(err)
	}
	if err := db.Published(t.Context(), numbers); err != nil {
		t.Fatal(err)
	}
	if got := unpublished(t, db); !slices.Equal(got, []string{a.ID}) {
		t.Errorf("%q wait", got)
	}
}

func TestUnpublished_HasAllOfMany(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	unpublished(t, db)
	var list []hub.Agent
	for i := range 300 {
		a := hub.Agent{ID: ident.NewID(), Name: fmt.Sprintf("many-%d", i), Title: "Many", Description: "One of many.", Kind: hub.Link, Visibility: hub.Public, OwnerID: ada.ID,
			Version: 1, Status: hub.Status{State: hub.Active}, CreatedAt: clock.Now(), UpdatedAt: clock.Now()}
		if i%3 == 0 {
			a.Visibility = hub.Private
		}
		list = append(list, a)
	}
	if err := db.CreateAgents(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	_, ids, err := db.Unpublished(t.Context(), 1000)
	if err != nil || len(ids) != 200 || !told(db) {
		t.Fatalf("%d wait, %v", len(ids), err)
	}
	far := hub.Agent{ID: ident.NewID(), Kind: hub.Peer, Name: "far", Portal: "b.example", PortalID: "p1b", NetworkID: "p1b/far"}
	if err := db.KeepElsewhere(t.Context(), far); err != nil {
		t.Fatal(err)
	}
	got, err := db.AgentsByIDs(t.Context(), append(ids[:50:50], "nobody", far.ID))
	if err != nil || len(got) != 50 || got[0].OwnerName != "ada" || got[0].Description != "One of many." {
		t.Errorf("%d agents, %v", len(got), err)
	}
}

// TestAgentsByIDs_LeavesOutThoseElsewhere: nobody signs for the agents of
// others, whose rows are noted as all rows are.
func TestAgentsByIDs_LeavesOutThoseElsewhere(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	if err := db.KeepElsewhere(t.Context(), hub.Agent{ID: "e1", Kind: hub.Peer, Name: "far", Portal: "b.example", PortalID: "p1b", NetworkID: "p1b/far"}); err != nil {
		t.Fatal(err)
	}
	if got, err := db.AgentsByIDs(t.Context(), []string{"e1"}); err != nil || len(got) != 0 {
		t.Errorf("%d agents, %v", len(got), err)
	}
}
