package app_test

import (
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/ident"
	"agentsite/internal/testing/apptest"
)

// grantCells ask for grants.
func grantCells() map[string]cell {
	body := func(*world, object) any {
		return map[string]any{"agent": "calc", "tool": "ask", "scope": apptest.Fresh("other"), "decision": "deny"}
	}
	granted := func(t *testing.T, w *world, _ string) object {
		id := ident.NewID()
		w.as["owner"].With(t).Must(http.MethodPut, "/api/v1/grants/"+id, body(w, object{}), http.StatusOK)
		return object{id: id}
	}
	model := func(*world, object) any {
		return map[string]any{"name": strings.ToLower(apptest.Fresh("m")), "url": "https://llm.example/v1", "model": "m-1"}
	}
	named := func(t *testing.T, w *world, _ string) object {
		name := strings.ToLower(apptest.Fresh("m"))
		w.as["owner"].With(t).Must(http.MethodPost, "/api/v1/models",
			map[string]any{"name": name, "url": "https://llm.example/v1", "model": "m-1"}, http.StatusCreated)
		return object{name: name, id: name}
	}
	modelForm := func(*world, object) any {
		return form("name", strings.ToLower(apptest.Fresh("m")), "url", "https://llm.example/v1", "model", "m-1", "provider", "openai")
	}
	slow := func(*world, object) any { return map[string]any{"reason": "slow"} }
	// A person that no other row uses, because the agents of a stopped owner take no work.
	stranger := func(t *testing.T, w *world, _ string) object {
		name := strings.ToLower(apptest.Fresh("p"))
		w.p.User(t, name)
		return object{name: name}
	}
	llm := func(*testing.T, *world, string) object { return object{name: "llm.example"} }
	given := func(members ...string) func(*testing.T, *world, string) object {
		return func(t *testing.T, w *world, _ string) object {
			c := w.as["owner"].With(t)
			if len(members) == 0 {
				members = []string{w.hanging}
			}
			id := startGoal(c, map[string]any{"goal": "What is 1 + 1?", "members": members})
			if members[0] == w.hanging {
				t.Cleanup(func() { c.Do(http.MethodPost, "/api/v1/goals/"+id+"/cancel", nil) })
			} else {
				followGoal(t, c, id)
			}
			return object{id: id}
		}
	}
	readable := func(t *testing.T, w *world, actor string) object {
		o := given("calc")(t, w, actor)
		page := w.as["owner"].With(t).Must(http.MethodPost, "/goals/"+o.id+"/share", form("days", "7"), http.StatusOK)
		_, secret, _ := strings.Cut(page.Body, "/shared/")
		o.name, _, _ = strings.Cut(secret, `"`)
		return o
	}
	return map[string]cell{
		"GET /api/v1/goals": {},
		"POST /api/v1/goals": {body: func(*world, object) any {
			return map[string]any{"goal": "What is 1 + 1?", "members": []string{"calc"}}
		}},
		"GET /api/v1/goals/{id}":         {object: given("calc")},
		"GET /api/v1/goals/{id}/events":  {object: given("calc")},
		"POST /api/v1/goals/{id}/cancel": {object: given()},
		"POST /api/v1/goals/{id}/say":    {object: given("calc"), body: func(*world, object) any { return map[string]any{"text": "2+2"} }},
		"POST /api/v1/goals/{id}/approve": {object: given("calc"), body: func(*world, object) any {
			return map[string]any{"task": 1, "answer": "yes"}
		}},
		"POST /api/v1/goals/{id}/tasks/{task}/reassign": {object: func(t *testing.T, w *world, actor string) object {
			o := given("calc")(t, w, actor)
			o.seq = "1" // of the task
			return o
		}, body: func(*world, object) any {
			return map[string]any{"to": "guide"}
		}},
		"GET /api/v1/goals/{id}/links":  {object: given("calc")},
		"POST /api/v1/goals/{id}/links": {object: given("calc"), body: func(*world, object) any { return map[string]any{"life": "24h"} }},
		"DELETE /api/v1/goals/{id}/links/{link}": {object: func(t *testing.T, w *world, actor string) object {
			o := given("calc")(t, w, actor)
			var link struct{ ID string }
			w.as["owner"].With(t).Get(http.MethodPost, "/api/v1/goals/"+o.id+"/links", map[string]any{}, http.StatusCreated, &link)
			o.other = link.ID
			return o
		}},
		"GET /api/v1/goals/{id}/shared/{secret}": {object: readable},
		"GET /goals":                             {},
		"GET /goals/new":                         {},
		"POST /goals": {body: func(*world, object) any {
			return form("goal", "What is 1 + 1?", "members", "calc", "recruit", "members")
		}},
		"GET /goals/{id}":                      {object: given("calc")},
		"GET /goals/{id}/export.md":            {object: given("calc")},
		"POST /goals/{id}/cancel":              {object: given(), body: func(*world, object) any { return form() }},
		"POST /goals/{id}/say":                 {object: given("calc"), body: func(*world, object) any { return form("text", "2+2") }},
		"POST /goals/{id}/approve":             {object: given("calc"), body: func(*world, object) any { return form("task", "1", "answer", "yes") }},
		"POST /goals/{id}/reassign":            {object: given("calc"), body: func(*world, object) any { return form("task", "1", "to", "guide") }},
		"POST /goals/{id}/share":               {object: given("calc"), body: func(*world, object) any { return form("days", "7") }},
		"POST /goals/{id}/unshare":             {object: given("calc"), body: func(*world, object) any { return form("link", "x") }},
		"GET /goals/{id}/shared/{secret}":      {object: readable},
		"POST /api/v1/owners/{name}/stop":      {object: stranger, body: slow},
		"POST /api/v1/owners/{name}/resume":    {object: stranger},
		"POST /api/v1/providers/{host}/stop":   {object: llm, body: slow},
		"POST /api/v1/providers/{host}/resume": {object: llm},
		"GET /api/v1/ceilings":                 {},
		"PUT /api/v1/ceilings":                 {body: func(*world, object) any { return map[string]any{"tokens": 1_000_000_000} }},
		"POST /account/usage/ceiling":          {body: func(*world, object) any { return form("tokens", "1000000000") }},
		"GET /api/v1/halts":                    {},
		"GET /api/v1/settings":                 {},
		"PATCH /api/v1/settings": {body: func(*world, object) any {
			return map[string]any{"settings": map[string]string{}, "password": apptest.Password}
		}},
		"POST /api/v1/settings/{name}/undo": {object: fixedName("contact"), body: func(*world, object) any { return map[string]any{"password": apptest.Password} }},
		"GET /api/v1/attention":             {},
		"GET /api/v1/figures":               {},
		"GET /api/v1/people/{name}":         {object: fixedName(people["owner"])},
		"POST /admin/queue/stop": {body: func(*world, object) any {
			return form("kind", "provider", "name", "llm.example")
		}},
		"GET /api/v1/models":               {},
		"POST /api/v1/models":              {body: model},
		"PATCH /api/v1/models/{name}":      {object: named, body: func(*world, object) any { return map[string]any{"model": "m-2"} }},
		"DELETE /api/v1/models/{name}":     {object: named},
		"GET /account/models":              {},
		"POST /account/models":             {body: modelForm},
		"POST /account/models/{id}":        {object: named, body: modelForm},
		"POST /account/models/{id}/delete": {object: named, body: func(*world, object) any { return form() }},
		"GET /api/v1/usage":                {},
		"GET /account/usage":               {},
		"GET /api/v1/grants":               {},
		"PUT /api/v1/grants/{id}":          {object: granted, body: body},
		"DELETE /api/v1/grants/{id}":       {object: granted},
		"GET /account/grants":              {},
		"POST /account/grants": {body: func(*world, object) any {
			return form("agent", "calc", "tool", "ask", "scope", "guide", "decision", "deny")
		}},
		"POST /account/grants/{id}/delete": {object: granted, body: func(*world, object) any { return form() }},
	}
}
