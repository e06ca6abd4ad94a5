package app_test

import (
	"net/http"
	"testing"

	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// a2aCells ask as clients of the A2A protocol do. Sessions do not count there:
// whoever sends a cookie and no token is a visitor. Who asks does so alone, from
// an address of their own: how many contexts one address opens is bounded.
func a2aCells() map[string]cell {
	sent := func(*world, object) any {
		return map[string]any{"message": map[string]any{"messageId": apptest.Fresh("m"), "role": "ROLE_USER", "parts": []any{map[string]string{"text": "2+2"}}},
			"configuration": map[string]bool{"returnImmediately": true}}
	}
	called := func(w *world, o object) any {
		return map[string]any{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": sent(w, o)}
	}
	// asked is a task of the owner; other is the agent it is of.
	asked := func(mode agenttest.Mode) func(*testing.T, *world, string) object {
		return func(t *testing.T, w *world, _ string) object {
			owner, agent := w.as["owner"].With(t), w.public
			if mode == agenttest.Hang {
				agent = w.hanging
			}
			return object{id: owner.Say(owner.Conversation(agent), "Hello").Tasks[0].ID, other: agent}
		}
	}
	// pushed is such a task with a push notification config.
	pushed := func(t *testing.T, w *world, actor string) object {
		o := asked(agenttest.Echo)(t, w, actor)
		w.tokens["chat:write"].With(t).Must(http.MethodPost, "/agents/"+o.other+"/a2a/tasks/"+o.id+"/pushNotificationConfigs",
			map[string]any{"id": "hook", "url": "http://127.0.0.1:2/hook"}, http.StatusOK, func(r *http.Request) { r.Header.Set("A2A-Version", "1.0") })
		return o
	}
	out := map[string]cell{
		"GET /.well-known/agent-card.json": {}, "GET /a2a/.well-known/agent-card.json": {},
		"GET /.well-known/jwks.json": {},
		"POST /a2a":                  {body: called, alone: true},
		"GET /a2a/* [task]":          {object: asked(agenttest.Echo), rest: "{owner}/tasks/{id}"},
		"POST /a2a/* [cancel]":       {object: asked(agenttest.Hang), rest: "{owner}/tasks/{id}:cancel"},
		"DELETE /a2a/*":              {rest: "tasks/one/pushNotificationConfigs/two"},
		"GET /a2a/* [push]":          {object: pushed, rest: "{owner}/tasks/{id}/pushNotificationConfigs/hook"},
		"DELETE /a2a/* [push]":       {object: pushed, rest: "{owner}/tasks/{id}/pushNotificationConfigs/hook"},
		"POST /a2a/* [push]": {object: asked(agenttest.Echo), rest: "{owner}/tasks/{id}/pushNotificationConfigs",
			body: func(*world, object) any { return map[string]any{"url": "http://127.0.0.1:2/hook"} }},
		"GET /.well-known/http-message-signatures-directory": {},
	}
	for _, v := range []string{"public", "private"} {
		same := func(_ *testing.T, w *world, _ string) object {
			if v == "private" {
				return object{name: w.private}
			}
			return object{name: w.public}
		}
		out["GET /agents/{name}/.well-known/agent-card.json ["+v+"]"] = cell{object: same}
		out["GET /agents/{name}/a2a/.well-known/agent-card.json ["+v+"]"] = cell{object: same}
		out["POST /agents/{name}/a2a ["+v+"]"] = cell{object: same, body: called, alone: true}
		out["GET /agents/{name}/a2a/* ["+v+"]"] = cell{object: same, rest: "tasks"}
		out["POST /agents/{name}/a2a/* ["+v+"]"] = cell{object: same, rest: "message:send", body: sent, alone: true}
		out["DELETE /agents/{name}/a2a/* ["+v+"]"] = cell{object: same, rest: "tasks/one/pushNotificationConfigs/two"}
	}
	return out
}
