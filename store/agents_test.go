package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/internal/account"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/testing/storetest"
)

// full is an agent with something in every field that is stored.
func full(owner account.Account, name string) hub.Agent {
	now := clock.Now()
	return hub.Agent{ID: ident.NewID(), Name: name, Title: "Full", Description: "Has it all.", Kind: hub.A2A, Endpoint: "https://Agent.example:443/a2a",
		Skills: []hub.Skill{{ID: "s", Name: "Skill", Description: "d", Tags: []string{"a", "b"}, Examples: []string{"e"}}}, Visibility: hub.Unlisted,
		OwnerID: owner.ID, OwnerName: owner.Name, Version: 1, Config: json.RawMessage(`{"binding":"JSONRPC"}`), InputModes: []string{"text/plain"},
		OutputModes: []string{"image/png"}, Languages: []string{"de", "en"}, Icon: strings.Repeat("ab", 16), Publisher: "agent.example",
		Limits: hub.Limits{Callers: "listed", Listed: []string{"bob"}, PerMinute: 3, PerDay: 40, MaxBytes: 500}, EmbedOrigins: []string{"https://shop.example"},
		Proof:     hub.Proof{State: hub.Unproven},
		Status:    hub.Status{State: hub.Deprecated, Message: "Use another.", Held: true},
		Liveness:  hub.Liveness{State: hub.NeedsAuth, CheckedAt: now, Reason: "It wants a key."},
		CreatedAt: now, UpdatedAt: now, CoOwnerIDs: []string{}}
}

func byID(t *testing.T, db *storetest.DB, id string) hub.Agent {
	t.Helper()
	a, err := db.AgentByID(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestCreateAgent_KeepsEveryField(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	one, two := full(ada, "one"), full(ada, "two")
	if err := db.CreateAgent(t.Context(), one, []byte("sealed")); err != nil {
		t.Fatal(err)
	}
	if err := db.CreateAgents(t.Context(), []hub.Agent{two}); err != nil {
		t.Fatal(err)
	}
	one.HasSecret = true
	for _, want := range []hub.Agent{one, two} {
		if got := byID(t, db, want.ID); !reflect.DeepEqual(got, want) {
			t.Errorf("stored\n%+v\nread\n%+v", want, got)
		}
		if got, err := db.AgentByName(t.Context(), want.Name); err != nil || got.ID != want.ID {
			t.Error(got.ID, err)
		}
	}
	if b, err := db.SealedSecret(t.Context(), one.ID); err != nil || string(b) != "sealed" {
		t.Errorf("%q %v", b, err)
	}
	if _, err := db.SealedSecret(t.Context(), two.ID); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	storetest.Sound(t, db)
}

func many(owner account.Account, n int) []hub.Agent {
	list := make([]hub.Agent, n)
	for i := range list {
		list[i] = full(owner, fmt.Sprintf("many-%d", i))
	}
	return list
}

// All or none: a taken name, wherever it is, leaves nothing behind.
func TestCreateAgents_AllOrNone(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	count := func() int {
		n := 0
		if err := db.AllAgents(t.Context(), func(hub.Agent) bool { n++; return true }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	refused := func(list []hub.Agent, fields ...string) {
		t.Helper()
		err := db.CreateAgents(t.Context(), list)
		var got []string
		for name := range fault.As(err).Fields {
			got = append(got, name)
		}
		slices.Sort(got)
		if !fault.Is(err, fault.Conflict) || !slices.Equal(got, fields) {
			t.Errorf("%v names %v, want %v", err, got, fields)
		}
		if n := count(); n != 0 {
			t.Errorf("%d agents were stored", n)
		}
	}
	list := many(ada, 1000)
	list[0].Name, list[999].Name = "ada", "ada2"
	refused(list, "agents[0].name")
	list = many(ada, 1000)
	list[7].Name, list[900].Name = "many-8", "ada"
	refused(list, "agents[8].name") // twice in the list
	list = many(ada, 1000)
	list[500].Name = "ada"
	refused(list, "agents[500].name")
	if err := db.CreateAgents(t.Context(), many(ada, 1001)); !fault.Is(err, fault.Invalid) {
		t.Error(err)
	}
	if err := db.CreateAgents(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if err := db.CreateAgents(t.Context(), many(ada, 1000)); err != nil || count() != 1000 {
		t.Error(count(), err)
	}
	again := many(ada, 8)
	err := db.CreateAgents(t.Context(), again)
	if f := fault.As(err); f.Kind != fault.Conflict || len(f.Fields) != 8 || !strings.Contains(f.Safe, "and 3 more") {
		t.Errorf("%+v", f)
	}
	if r := storetest.Sound(t, db); r.Agents != 1000 {
		t.Errorf("%+v", r)
	}
}

// An import beside other writes costs them nothing but time.
func TestCreateAgents_BesideOthers(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	done := make(chan error)
	for k := range 4 {
		go func() {
			list := make([]hub.Agent, 200)
			for i := range list {
				list[i] = full(ada, fmt.Sprintf("p%d-%d", k/2, i)) // two of each
			}
			done <- db.CreateAgents(context.Background(), list)
		}()
		go func() { done <- db.CreateAgent(context.Background(), full(ada, fmt.Sprintf("single-%d", k)), nil) }()
	}
	conflicts := 0
	for range 8 {
		if err := <-done; fault.Is(err, fault.Conflict) {
			conflicts++
		} else if err != nil {
			t.Error(err)
		}
	}
	if r := storetest.Sound(t, db); conflicts != 2 || r.Agents != 404 {
		t.Errorf("%d conflicts, %d agents", conflicts, r.Agents)
	}
}

func TestUpdateAgent_Versions(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada, bob := storetest.Account(t, db, "ada"), storetest.Account(t, db, "bob")
	a := full(ada, "helper")
	a.Note = "First."
	if err := db.CreateAgent(t.Context(), a, nil); err != nil {
		t.Fatal(err)
	}
	b := a
	b.Version, b.Title, b.Kind, b.Status, b.Note, b.Limits, b.Icon = 2, "Other", hub.Prompt, hub.Status{State: hub.Active}, "Runs here now.", hub.Limits{}, ""
	b.EmbedOrigins = nil
	if err := db.UpdateAgent(t.Context(), b, 1, nil, ident.Actor{ID: bob.ID}); err != nil {
		t.Fatal(err)
	}
	for _, base := range []int{1, 3} {
		if err := db.UpdateAgent(t.Context(), b, base, nil, ident.Actor{ID: bob.ID}); !fault.Is(err, fault.Conflict) {
			t.Errorf("from %d: %v", base, err)
		}
	}
	list, err := db.Versions(t.Context(), a.ID, 0, 100)
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	for i, want := range []hub.Agent{
		{ID: a.ID, Version: 2, Title: "Other", Kind: hub.Prompt, Visibility: b.Visibility, Status: hub.Status{State: hub.Active}, Note: "Runs here now.", Author: "bob"},
		{ID: a.ID, Version: 1, Title: "Full", Kind: hub.A2A, Visibility: b.Visibility, Status: hub.Status{State: hub.Deprecated}, Note: "First.", Author: "ada",
			Limits: a.Limits, EmbedOrigins: a.EmbedOrigins, Icon: a.Icon},
	} {
		want.Description, want.Endpoint, want.Skills, want.Config = a.Description, a.Endpoint, a.Skills, a.Config
		want.InputModes, want.OutputModes, want.Languages, want.Publisher, want.UpdatedAt = a.InputModes, a.OutputModes, a.Languages, a.Publisher, a.UpdatedAt
		if !reflect.DeepEqual(list[i], want) {
			t.Errorf("version\n%+v\nwant\n%+v", list[i], want)
		}
	}
	if got := byID(t, db, a.ID); got.Status != b.Status || got.Version != 2 {
		t.Errorf("%+v", got)
	}
	storetest.Sound(t, db)
}

// Another address, or another way to reach it, is another agent as far as
// checks and proofs go; its history is kept.
func TestUpdateAgent_OtherAddress(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	for i, tt := range []struct {
		change func(*hub.Agent)
		ends   bool
	}{
		{func(a *hub.Agent) { a.Title = "New" }, false},
		{func(a *hub.Agent) { a.Endpoint = "https://agent.example/other" }, true},
		{func(a *hub.Agent) { a.Endpoint = "https://other.example/a2a" }, true},
		{func(a *hub.Agent) { a.Kind = hub.MCP }, true},
	} {
		a := full(ada, fmt.Sprintf("agent-%d", i))
		if err := db.CreateAgent(t.Context(), a, nil); err != nil {
			t.Fatal(err)
		}
		next := clock.Now().Add(time.Hour)
		if err := db.SetLiveness(t.Context(), a.ID, hub.Liveness{State: hub.Unreachable, CheckedAt: clock.Now()}, next, 3); err != nil {
			t.Fatal(err)
		}
		if err := db.SetProof(t.Context(), a.ID, a.OwnerID, hub.Proof{Method: hub.ProofToken, Origin: "https://agent.example", At: clock.Now()}); err != nil {
			t.Fatal(err)
		}
		a.Version = 2
		tt.change(&a)
		if err := db.UpdateAgent(t.Context(), a, 1, nil, ident.Actor{ID: ada.ID}); err != nil {
			t.Fatal(err)
		}
		c, err := db.Checkup(t.Context(), a.ID)
		if err != nil || len(c.History) != 1 {
			t.Fatal(c, err)
		}
		due, err := db.Due(t.Context(), clock.Now(), 10)
		if err != nil {
			t.Fatal(err)
		}
		isDue := slices.ContainsFunc(due, func(c hub.Checkup) bool { return c.Agent.ID == a.ID })
		if tt.ends != (c.Failures == 0) || tt.ends != (c.Agent.Proof.State == hub.Unproven) || tt.ends != isDue {
			t.Errorf("change %d: %d failures, proof %+v, due %v", i, c.Failures, c.Agent.Proof, isDue)
		}
	}
}

func TestDeleteAgent_LeavesNothingButItsName(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada, bob := storetest.Account(t, db, "ada"), storetest.Account(t, db, "bob")
	a := storetest.Agent(t, db, "helper", ada)
	room := storetest.Conversation(t, db, ada, a)
	done := storetest.Say(t, db, room, ada, "hello", a)
	for _, err := range []error{
		db.SetLiveness(t.Context(), a.ID, hub.Liveness{State: hub.Alive, CheckedAt: clock.Now()}, clock.Now(), 0),
		db.AddCoOwner(t.Context(), a.ID, bob.ID),
		db.SetOffer(t.Context(), a.ID, bob.ID),
		db.AddTraces(t.Context(), a.ID, done.Tasks[0].ID, []hub.Trace{{Head: "POST /"}}),
		db.AddReport(t.Context(), hub.Report{ID: ident.NewID(), AgentID: a.ID, Reason: "spam"}),
		db.DeleteAgent(t.Context(), a.ID),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	// Its work ends after it.
	storetest.Finish(t, db, done.Tasks[0], "failed", "gone")
	history, err := db.History(t.Context(), a.ID)
	if err != nil || len(history) != 0 {
		t.Error(history, err)
	}
	offers, err := db.Offers(t.Context(), bob.ID)
	if err != nil || len(offers) != 0 {
		t.Error(offers, err)
	}
	if owners, err := db.CoOwners(t.Context(), a.ID); err != nil || len(owners) != 0 {
		t.Error(owners, err)
	}
	if traces, err := db.Traces(t.Context(), a.ID, done.Tasks[0].ID, done.Tasks[0].CallerID); err != nil || len(traces) != 0 {
		t.Error(traces, err)
	}
	if days, err := db.Days(t.Context(), a.ID, time.Time{}); err != nil || len(days) != 0 {
		t.Error(days, err)
	}
	if list, err := db.Reports(t.Context(), true, "", 10); err != nil || len(list) != 1 || list[0].AgentName != "helper" {
		t.Error(list, err)
	}
	for what, err := range map[string]error{
		"liveness": db.SetLiveness(t.Context(), a.ID, hub.Liveness{}, clock.Now(), 0),
		"due":      db.DueAt(t.Context(), a.ID, clock.Now()),
		"co-owner": db.AddCoOwner(t.Context(), a.ID, bob.ID),
		"offer":    db.SetOffer(t.Context(), a.ID, bob.ID),
		"proof":    db.SetProof(t.Context(), a.ID, a.OwnerID, hub.Proof{}),
		"traces":   db.AddTraces(t.Context(), a.ID, done.Tasks[0].ID, []hub.Trace{{}}),
		"report":   db.AddReport(t.Context(), hub.Report{ID: ident.NewID(), AgentID: a.ID}),
		"transfer": db.Transfer(t.Context(), a.ID, bob.ID, false, 10),
	} {
		if !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := db.CreateAgent(t.Context(), full(ada, "helper"), nil); !fault.Is(err, fault.Conflict) {
		t.Error(err)
	}
	storetest.Sound(t, db)
}

// Reading stops when it is told to, with no error, and when its context ends,
// with one.
func TestAllAgents_Stops(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	for k := range 4 {
		list := many(ada, 1000)
		for i := range list {
			list[i].Name = fmt.Sprintf("a%d-%d", k, i)
		}
		if err := db.CreateAgents(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	last, seen := "nobody", 0
	if err := db.AllAgents(t.Context(), func(a hub.Agent) bool {
		// Ids made in one millisecond may be in any order.
		if want := fmt.Sprintf("a%d-%d", seen/1000, seen%1000); a.Name != want {
			t.Errorf("%s after %s, want %s", a.Name, last, want)
		}
		seen++
		last = a.Name
		return true
	}); err != nil || seen != 4000 {
		t.Error(seen, err)
	}
	for _, at := range []int{1, 1000, 1001, 3999, 4000} {
		seen := 0
		if err := db.AllAgents(t.Context(), func(hub.Agent) bool { seen++; return seen < at }); err != nil || seen != at {
			t.Error(seen, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := db.AllAgents(ctx, func(hub.Agent) bool { cancel(); return true }); err == nil {
		t.Error("went on without a context")
	}
}
