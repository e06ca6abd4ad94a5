package app_test

import (
	"net/http"
	"strings"
	"testing"

	"agentsite/agentruntime/bundle"
	"agentsite/internal/testing/apptest"
	"agentsite/internal/testing/racetest"
)

// A visitor of a fresh portal talks to each of the programs that come with it, and they answer their own examples.
func TestBundle_AnswersItsExamples(t *testing.T) {
	t.Parallel()
	racetest.Skip(t)
	p := apptest.Start(t, apptest.WithPrograms)
	wants := map[string][]string{
		"tables":  {"| Rome | 15 |", "| Bob | 41 |"},
		"diff":    {"-bread\n+butter", "milk\nbutter"},
		"rates":   {"USD", "European Central Bank", "5.443108"},
		"planner": {"| design |", "2026-12-15"},
		"summary": {"Tickets for the ferry are sold at the harbour."},
	}
	guest := p.Guest(t)
	for _, d := range bundle.Drafts() {
		for i, ask := range (*d.Skills)[0].Examples {
			room := guest.Conversation(*d.Name)
			got := actor{guest, t, room, guest.Socket(room)}.say(ask)
			if want := wants[*d.Name][i]; !strings.Contains(got, want) {
				t.Errorf("%s, asked %q, answers without %q:\n%s", *d.Name, ask, want, got)
			}
		}
	}
	page := guest.Must(http.MethodGet, "/agents/tables", nil, http.StatusOK).Body
	if !strings.Contains(page, "sandbox") {
		t.Error("the page of a program does not name the sandbox")
	}
}

// An operator stops the programs like any other module.
func TestBundle_IsStoppedByItsOperator(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t, apptest.WithPrograms)
	rob := p.Operator(t, "rob")
	if page := rob.Must(http.MethodGet, "/admin/hosting", nil, http.StatusOK).Body; !strings.Contains(page, bundle.Hash) {
		t.Error("the page of hosting does not name their module")
	}
	rob.NewToken().Must(http.MethodPut, "/api/v1/hosting", map[string]string{"policy": "off"}, http.StatusOK)
	open := rob.Conversation("tables")
	if got := (actor{rob, t, open, rob.Socket(open)}).say("a,b\n1,2"); strings.Contains(got, "cannot run") {
		t.Errorf("with the policy off, tables answers %q", got)
	}
	rob.NewToken().Must(http.MethodPut, "/api/v1/hosting/kills/"+bundle.Hash, map[string]string{"reason": "A test."},
		http.StatusOK)
	room := rob.Conversation("tables")
	if got := (actor{rob, t, room, rob.Socket(room)}).say("a,b\n1,2"); !strings.Contains(got, "cannot run here now") {
		t.Errorf("a stopped program answers %q", got)
	}
}
