package app_test

import (
	"net/http"
	"testing"

	"agentsite/internal/testing/apptest"
)

// webhookCells ask for webhooks.
func webhookCells() map[string]cell {
	// An account has few webhooks: a row has one, and another once that is gone.
	hook := func() func(*testing.T, *world, string) object {
		var id string
		return func(t *testing.T, w *world, _ string) object {
			owner := w.as["owner"].With(t)
			if id != "" && owner.Do(http.MethodGet, "/api/v1/webhooks/"+id, nil).Status == http.StatusOK {
				return object{id: id}
			}
			var out struct{ ID string }
			owner.Get(http.MethodPost, "/api/v1/webhooks", map[string]any{"url": "http://127.0.0.1:2/hook", "events": []string{"task.ended"}}, http.StatusCreated, &out)
			id = out.ID
			return object{id: id}
		}
	}
	body := func(*world, object) any {
		return map[string]any{"url": "http://127.0.0.1:2/hook", "label": apptest.Fresh("hook"), "events": []string{"message.said"}}
	}
	return map[string]cell{
		"GET /api/v1/webhooks":                 {},
		"POST /api/v1/webhooks":                {body: body},
		"GET /api/v1/webhooks/{id}":            {object: hook()},
		"PATCH /api/v1/webhooks/{id}":          {object: hook(), body: func(*world, object) any { return map[string]any{"active": false} }},
		"DELETE /api/v1/webhooks/{id}":         {object: hook()},
		"POST /api/v1/webhooks/{id}/test":      {object: hook()},
		"GET /api/v1/webhooks/{id}/deliveries": {object: hook()},

		"GET /account/webhooks":              {},
		"POST /account/webhooks":             {body: func(*world, object) any { return form("url", "http://127.0.0.1:2/hook", "events", "task.ended") }},
		"POST /account/webhooks/{id}/test":   {object: hook(), body: func(*world, object) any { return form() }},
		"POST /account/webhooks/{id}/active": {object: hook(), body: func(*world, object) any { return form("active", "no") }},
		"POST /account/webhooks/{id}/delete": {object: hook(), body: func(*world, object) any { return form() }},
	}
}
