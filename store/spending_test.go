package store_test

import (
	"errors"
	"slices"
	"testing"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/halt"
	"agentsite/internal/ident"
	"agentsite/internal/models"
	"agentsite/internal/testing/storetest"
	"agentsite/internal/usage"
)

func TestModels_AreNamedOnceForEachOwner(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ctx := t.Context()
	now := clock.FromMilli(clock.Milli(clock.Now()))
	m := models.Stored{Model: models.Model{ID: ident.NewID(), OwnerID: "ada", Name: "fast", Provider: models.Anthropic, URL: "https://x.example/v1",
		Model: "m-1", Fallback: "spare", Price: usage.Price{Input: 0.15, Output: 2.5}, HasKey: true, CreatedAt: now, UpdatedAt: now},
		Sealed: []byte{0, 1, 2}}
	if err := db.Models.CreateModel(ctx, m); err != nil {
		t.Fatal(err)
	}
	same, theirs := m, m
	same.ID, theirs.ID, theirs.OwnerID = ident.NewID(), ident.NewID(), ""
	theirs.Sealed, theirs.HasKey = nil, false
	if err := db.Models.CreateModel(ctx, same); !fault.Is(err, fault.Conflict) {
		t.Errorf("a second of the name: %v", err)
	}
	if err := db.Models.CreateModel(ctx, theirs); err != nil {
		t.Error(err)
	}
	m.Model.Model, m.Sealed, m.HasKey = "m-2", nil, false
	if err := db.Models.UpdateModel(ctx, m); err != nil {
		t.Fatal(err)
	}
	if err := db.Models.UpdateModel(ctx, same); !fault.Is(err, fault.Conflict) && !fault.Is(err, fault.NotFound) {
		t.Errorf("%v", err)
	}
	all, err := db.Models.AllModels(ctx)
	if err != nil || len(all) != 2 || all[0].Model != m.Model || all[1].Model != theirs.Model {
		t.Errorf("%+v %v", all, err)
	}
	for range models.MaxModels - 1 {
		n := m
		n.ID, n.Name = ident.NewID(), "m"+ident.NewID()[16:]
		if err := db.Models.CreateModel(ctx, n); err != nil {
			t.Fatal(err)
		}
	}
	m2 := m
	m2.ID, m2.Name = ident.NewID(), "more"
	if err := db.Models.CreateModel(ctx, m2); !fault.Is(err, fault.Conflict) {
		t.Errorf("one too many: %v", err)
	}
	if err := errors.Join(db.Models.DeleteModel(ctx, m.ID), db.Models.CreateModel(ctx, m2)); err != nil {
		t.Error(err)
	}
}

func TestHalts_AreKeptAndLogged(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ctx := t.Context()
	now := clock.FromMilli(clock.Milli(clock.Now()))
	by := ident.Actor{Kind: ident.Operator, ID: ident.NewID(), Name: "op"}
	h := halt.Halt{Subject: halt.Subject{Kind: halt.Agent, Key: "a1"}, Name: "one", Reason: "too slow", CreatedAt: now}
	stopped := h
	stopped.Operator = true
	host := halt.Halt{Subject: halt.Subject{Kind: halt.Provider, Key: "x.example", Operator: true}, Name: "x.example", CreatedAt: now}
	if err := errors.Join(db.Halts.PutHalt(ctx, by, h), db.Halts.PutHalt(ctx, by, stopped), db.Halts.PutHalt(ctx, by, host), db.Halts.PutHalt(ctx, by, host)); err != nil {
		t.Fatal(err)
	}
	if got, err := db.Halts.AllHalts(ctx); err != nil || !slices.Equal(got, []halt.Halt{h, stopped, host}) {
		t.Errorf("%+v %v", got, err)
	}
	if err := db.Halts.DeleteHalt(ctx, by, stopped); err != nil {
		t.Fatal(err)
	}
	if got, err := db.Halts.AllHalts(ctx); err != nil || !slices.Equal(got, []halt.Halt{h, host}) {
		t.Errorf("%+v %v", got, err)
	}
	var acts []string
	if err := db.List(ctx, &acts, `SELECT act FROM audit ORDER BY id`); err != nil ||
		!slices.Equal(acts, []string{"agent.stop", "provider.stop", "provider.stop", "agent.continue"}) {
		t.Errorf("%q %v", acts, err)
	}
}

func TestCeilings_CountWhatTheOwnerPays(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ctx := t.Context()
	owner := storetest.Account(t, db, "ada")
	agent := storetest.Agent(t, db, "one", owner)
	list := []usage.Entry{{Day: 5, Cost: 30, Call: usage.Call{AgentID: agent.ID, Model: "m", Purpose: usage.Work, Input: 3, Output: 2}},
		{Day: 5, Cost: 7, Call: usage.Call{AgentID: agent.ID, Model: "m", Purpose: usage.Work, Portal: true, Input: 10, Output: 1}},
		{Day: 6, Cost: 1, Call: usage.Call{AgentID: agent.ID, Model: "m", Purpose: usage.Work, Input: 100}}}
	if err := db.Usages.AddUsage(ctx, list); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		day     int64
		agentID string
		want    usage.Amount
	}{{5, "", usage.Amount{Tokens: 5, Cost: 30}}, {5, agent.ID, usage.Amount{Tokens: 16, Cost: 37}}, {5, "other", usage.Amount{}}, {6, "", usage.Amount{Tokens: 100, Cost: 1}}, {7, "", usage.Amount{}}} {
		if got, err := db.Usages.SpentOn(ctx, tt.day, owner.ID, tt.agentID); err != nil || got != tt.want {
			t.Errorf("%+v: %+v %v", tt, got, err)
		}
	}
	all, one := usage.Ceiling{OwnerID: owner.ID, Tokens: 9}, usage.Ceiling{OwnerID: owner.ID, AgentID: agent.ID, Agent: agent.Name, Cost: 8}
	if err := errors.Join(db.Usages.PutCeiling(ctx, one), db.Usages.PutCeiling(ctx, usage.Ceiling{OwnerID: owner.ID, Tokens: 1}), db.Usages.PutCeiling(ctx, all)); err != nil {
		t.Fatal(err)
	}
	if got, err := db.Usages.CeilingsOf(ctx, owner.ID); err != nil || !slices.Equal(got, []usage.Ceiling{all, one}) {
		t.Errorf("%+v %v", got, err)
	}
	if err := db.Usages.PutCeiling(ctx, usage.Ceiling{OwnerID: owner.ID}); err != nil {
		t.Fatal(err)
	}
	if got, err := db.Usages.CeilingsOf(ctx, owner.ID); err != nil || !slices.Equal(got, []usage.Ceiling{one}) {
		t.Errorf("%+v %v", got, err)
	}
}
