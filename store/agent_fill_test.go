package store_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"agentsite/internal/clock"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/testing/storetest"
)

// AllAgents reads as AgentByID does, but for the settings, and leaves out what
// that does not find.
func TestAllAgents_ReadsAsByID(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada, bob, eve := storetest.Account(t, db, "ada"), storetest.Account(t, db, "bob"), storetest.Account(t, db, "eve")
	var list []hub.Agent
	for i := range 40 {
		a := full(ada, fmt.Sprintf("agent-%d", i))
		switch i % 8 {
		case 1:
			a.Description, a.Title = "a <b> & \"c\"\n\U0001F600", ""
		case 2:
			a.Config = json.RawMessage(`{"long":"` + strings.Repeat("x", 9000) + `"}`)
		case 3:
			a.Skills, a.InputModes, a.Limits, a.Config = nil, nil, hub.Limits{}, nil
		case 4:
			a.OwnerID, a.OwnerName, a.Kind = "", "", hub.Builtin
		case 5:
			a.OwnerID, a.OwnerName = eve.ID, eve.Name
		case 6:
			a.Kind = hub.Link
		}
		list = append(list, a)
	}
	if err := db.CreateAgents(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	sealed := full(bob, "sealed")
	if err := db.CreateAgent(t.Context(), sealed, []byte("sealed")); err != nil {
		t.Fatal(err)
	}
	if err := db.AddCoOwner(t.Context(), list[6].ID, bob.ID); err != nil {
		t.Fatal(err)
	}
	if err := db.AddCoOwner(t.Context(), list[6].ID, eve.ID); err != nil {
		t.Fatal(err)
	}
	if err := db.DeleteAgent(t.Context(), list[7].ID); err != nil {
		t.Fatal(err)
	}
	if err := db.SetDisabled(t.Context(), eve.ID, clock.Now(), ident.Actor{}); err != nil {
		t.Fatal(err)
	}
	var want []hub.Agent
	var links []string
	for i, a := range append(list, sealed) {
		if i == 7 || a.OwnerID == eve.ID {
			continue
		}
		a = byID(t, db, a.ID)
		a.Config = nil
		want = append(want, a)
		if a.Kind == hub.Link {
			links = append(links, a.ID)
		}
	}
	if len(want) != 35 || len(links) != 5 {
		t.Fatal(len(want), len(links))
	}
	var got []hub.Agent
	if err := db.AllAgents(t.Context(), func(a hub.Agent) bool {
		a.Config = nil
		got = append(got, a)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if i >= len(got) || !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("%d of %d, the %d-th\n got %+v\nwant %+v", len(got), len(want), i, got[min(i, len(got)-1)], want[i])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d agents, want %d", len(got), len(want))
	}
	if ids, err := db.AgentsOfKind(t.Context(), hub.Link); err != nil || !slices.Equal(ids, links) {
		t.Errorf("%v %v, want %v", ids, err, links)
	}
}
