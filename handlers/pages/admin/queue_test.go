package admin_test

import (
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/account"
	"agentsite/internal/scheduler"
	"agentsite/internal/testing/sitetest"
)

func TestQueue_ShowsTheOperatorWhoseTasksRun(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	oper, ann := s.Operator("oper"), s.Person("ann")
	s.QueueState = scheduler.Snapshot{Running: 12, Waiting: 40, Limits: scheduler.Limits{Running: 512, Waiting: 10_000},
		Classes: []scheduler.ClassState{{Class: scheduler.Accounts, Running: 9, Waiting: 30, Lately: 4, Refused: 700, Share: .75},
			{Class: scheduler.Guests, Running: 3, Waiting: 10, Lately: 2, Share: .25}},
		Accounts: []scheduler.AccountState{{Account: ann.Actor.ID, Name: "ann", Running: 8, Waiting: 30, Share: .6667, Refused: 5},
			{Account: oper.Actor.ID, Name: "oper", Running: 1},
			{Class: scheduler.Guests, Account: "192.0.2.0/24", Name: "192.0.2.0/24", Running: 3}},
		Agents:    []scheduler.PlaceState{{Key: "01J", Name: "guide", Running: 11, Waiting: 40}},
		Providers: []scheduler.PlaceState{{Key: "models.example", Name: "models.example", Running: 1}}}
	p := oper.Get("/admin/queue").Is(http.StatusOK)
	for _, want := range []string{"running 12 of 512", "waiting 40 of 10000", "refused in the last hour 6", "Accounts 9 30 75 % 4",
		"ann 8 30 67 % 5", "192.0.2.0/24 guests 3", "guide 11 40", "models.example 1 0"} {
		if !p.Says(want) {
			t.Errorf("the page lacks %q: %s", want, sitetest.Words(p.One("main")))
		}
	}
	forms := p.All("form", "method", "post")
	var disable []string
	for _, f := range forms {
		if a := sitetest.Attribute(f, "action"); strings.HasSuffix(a, "/disable") {
			disable = append(disable, a)
		}
	}
	if len(disable) != 1 || disable[0] != "/admin/people/ann/disable" {
		t.Errorf("accounts to disable: %v", disable)
	}
	if !oper.Get("/admin").Is(http.StatusOK).Has("a", "href", "/admin/queue") {
		t.Error("no page leads there")
	}
	ann.Get("/admin/queue").Is(http.StatusForbidden)
}
