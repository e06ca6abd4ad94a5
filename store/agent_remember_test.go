package store_test

import (
	"context"
	"testing"
	"time"

	"agentsite/internal/account"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/testing/storetest"
)

func TestAgentByName_FollowsEveryChange(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ctx := context.Background()
	ann, bob := storetest.Account(t, db, "ann"), storetest.Account(t, db, "bob")
	echo := storetest.Agent(t, db, "echo", ann).ID
	get := func() (hub.Agent, error) {
		t.Helper()
		var a hub.Agent
		var err error
		for range 2 { // from the disk, and remembered
			if a, err = db.AgentByName(ctx, "echo"); err != nil {
				break
			}
			b, berr := db.AgentByID(ctx, echo)
			if berr != nil || b.Title != a.Title || b.OwnerName != a.OwnerName || b.Liveness.State != a.Liveness.State || len(b.CoOwnerIDs) != len(a.CoOwnerIDs) {
				t.Fatalf("by id %+v, %v; by name %+v", b, berr, a)
			}
		}
		return a, err
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	a, err := get()
	must(err)

	a.Title, a.Version = "Another", a.Version+1
	must(db.UpdateAgent(ctx, a, a.Version-1, nil, ident.Actor{ID: ann.ID}))
	if a, err = get(); err != nil || a.Title != "Another" {
		t.Errorf("after an edit: %q, %v", a.Title, err)
	}
	must(db.AddCoOwner(ctx, echo, bob.ID))
	if a, err = get(); err != nil || len(a.CoOwnerIDs) != 1 {
		t.Errorf("after a new owner: %v, %v", a.CoOwnerIDs, err)
	}
	must(db.SetDisabled(ctx, ann.ID, clock.Now(), ident.Actor{Kind: ident.System}))
	if _, err := get(); !fault.Is(err, fault.NotFound) {
		t.Errorf("of a disabled account: %v", err)
	}
	must(db.SetDisabled(ctx, ann.ID, time.Time{}, ident.Actor{Kind: ident.System}))
	_, err = get()
	must(err)
	must(db.DeleteAgent(ctx, echo))
	if _, err := get(); !fault.Is(err, fault.NotFound) {
		t.Errorf("after it was removed: %v", err)
	}
}

func TestAgentByID_GivesEachCallerTheirOwn(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ctx := context.Background()
	a := storetest.Agent(t, db, "echo", account.Account{})
	a.Skills, a.Version = []hub.Skill{{ID: "say", Name: "Say", Tags: []string{"talk"}}}, 2
	if err := db.UpdateAgent(ctx, a, 1, nil, ident.Actor{Kind: ident.System}); err != nil {
		t.Fatal(err)
	}
	id := a.ID
	for range 2 { // what was read, and what was remembered
		a, err := db.AgentByID(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		a.Skills[0].Name = "spoilt"
		a.Skills[0].Tags = append(a.Skills[0].Tags[:0], "spoilt")
	}
	a, err := db.AgentByID(ctx, id)
	if err != nil || len(a.Skills) != 1 || a.Skills[0].Name == "spoilt" || len(a.Skills[0].Tags) > 0 && a.Skills[0].Tags[0] == "spoilt" {
		t.Errorf("somebody's change is everybody's: %+v, %v", a.Skills[0], err)
	}
}
