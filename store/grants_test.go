package store_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/grant"
	"agentsite/internal/ident"
	"agentsite/internal/testing/storetest"
)

func TestGrants_AreKeptPerPerson(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ctx, ada, bob := t.Context(), grant.Person{Kind: "person", ID: ident.NewID()}, grant.Person{Kind: "person", ID: ident.NewID()}
	g := grant.Grant{ID: ident.NewID(), Person: ada, AgentID: "a1", Agent: "helper", Tool: grant.Ask, Target: "calc", Allow: true, Calls: 2,
		Until: clock.Now().Add(time.Hour).Truncate(time.Millisecond), CreatedAt: clock.Now().Truncate(time.Millisecond),
		Binds: grant.Binding{Owner: "ben", Origin: "https://x.example", Needs: "ask"}}
	put := func(g grant.Grant) {
		t.Helper()
		if err := db.Grants.PutGrant(ctx, g); err != nil {
			t.Fatal(err)
		}
	}
	list := func(p grant.Person, agent string) []grant.Grant {
		t.Helper()
		list, err := db.Grants.GrantsOf(ctx, p, agent)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	put(g)
	if got := list(ada, "a1"); len(got) != 1 || got[0] != g {
		t.Fatalf("%+v, want %+v", got, g)
	}
	theirs := g
	theirs.Person = bob // the same id of another person is another grant
	put(theirs)
	for i, want := range []bool{true, true, false} {
		if ok, err := db.Grants.SpendCall(ctx, ada, g.ID); err != nil || ok != want {
			t.Errorf("call %d: %v, %v", i, ok, err)
		}
	}
	if got := list(bob, ""); len(got) != 1 || got[0].Used != 0 {
		t.Errorf("calls of one person count for another: %+v", got)
	}
	// Another decision about the same replaces it, whatever its id.
	other := g
	other.ID, other.Allow = ident.NewID(), false
	put(other)
	if got := list(ada, ""); len(got) != 1 || got[0] != other {
		t.Errorf("%+v", got)
	}
	if got := list(ada, "a2"); len(got) != 0 {
		t.Errorf("of another agent: %+v", got)
	}
	if err := db.Grants.DeleteGrant(ctx, bob, other.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("somebody else's: %v", err)
	}
	if err := db.Grants.DeleteGrant(ctx, ada, other.ID); err != nil || len(list(ada, "")) != 0 {
		t.Error(err)
	}
	if ok, err := db.Grants.SpendCall(ctx, ada, other.ID); err != nil || ok {
		t.Errorf("a deleted grant allows a call: %v, %v", ok, err)
	}
}

func TestGrants_AreBounded(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	p := grant.Person{Kind: "person", ID: ident.NewID()}
	for range grant.MaxGrants {
		if err := db.Grants.PutGrant(t.Context(), grant.Grant{ID: ident.NewID(), Person: p, AgentID: ident.NewID(), Agent: "a", Tool: grant.Find}); err != nil {
			t.Fatal(err)
		}
	}
	last := grant.Grant{ID: ident.NewID(), Person: p, AgentID: "new", Agent: "a", Tool: grant.Find}
	if err := db.Grants.PutGrant(t.Context(), last); !fault.Is(err, fault.Conflict) {
		t.Errorf("%v", err)
	}
	had, err := db.Grants.GrantsOf(t.Context(), p, "")
	if err != nil || len(had) != grant.MaxGrants {
		t.Fatal(len(had), err)
	}
	last.AgentID = had[0].AgentID // it replaces one
	if err := db.Grants.PutGrant(t.Context(), last); err != nil {
		t.Error(err)
	}
}

// noAgents is a directory without agents.
type noAgents struct{}

func (noAgents) AgentBinding(context.Context, ident.Actor, string) (string, string, grant.Binding, error) {
	return "", "", grant.Binding{}, fault.New(fault.NotFound, "There is no such agent.")
}

func (noAgents) BindingOf(context.Context, string) (grant.Binding, error) {
	return grant.Binding{}, fault.New(fault.NotFound, "There is no such agent.")
}

// A call that runs by a grant ends when the person takes the grant back, and no other does.
func TestGrants_RevocationEndsRunningCalls(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	s := grant.NewService(db.Grants, noAgents{})
	actor := ident.Actor{Kind: ident.Person, ID: ident.NewID(), Name: "ada"}
	use := grant.Use{Person: grant.Person{Kind: "person", ID: actor.ID}, AgentID: "a1", Agent: "helper", Tool: grant.Ask, Target: "calc"}
	other := use
	other.Target = "guide"
	begin := func(u grant.Use) (context.Context, func()) {
		t.Helper()
		if err := s.Remember(t.Context(), u, true, false); err != nil {
			t.Fatal(err)
		}
		d, ctx, done, err := s.Begin(t.Context(), u)
		if err != nil || d != grant.Allowed {
			t.Fatal(d, err)
		}
		return ctx, done
	}
	ctx, done := begin(use)
	defer done()
	kept, keptDone := begin(other)
	defer keptDone()
	list, err := s.List(t.Context(), actor)
	i := slices.IndexFunc(list, func(g grant.Listed) bool { return g.Target == "calc" })
	if err != nil || len(list) != 2 || i < 0 {
		t.Fatal(list, err)
	}
	if err := s.Delete(t.Context(), actor, list[i].ID); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, grant.ErrRevoked) {
		t.Errorf("cause %v", cause)
	}
	if kept.Err() != nil {
		t.Error("a call by another grant ended")
	}
	if d, _, _, err := s.Begin(t.Context(), use); d != grant.Undecided || err != nil {
		t.Error(d, err)
	}
}
