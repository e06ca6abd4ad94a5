package app_test

import "testing"

// openAICells say what the routes of the OpenAI-compatible face are asked.
func openAICells() map[string]cell {
	ask := func(model string) map[string]any {
		return map[string]any{"model": model, "messages": []any{map[string]string{"role": "user", "content": "2+2"}}}
	}
	named := func(of func(w *world) string) func(*testing.T, *world, string) object {
		return func(_ *testing.T, w *world, _ string) object { return object{id: of(w)} }
	}
	public := named(func(w *world) string { return w.public })
	private := named(func(w *world) string { return w.private })
	of := func(_ *world, o object) any { return ask(o.id) }
	return map[string]cell{
		"GET /v1/models":                      {},
		"GET /v1/models/{id} [public]":        {object: public},
		"GET /v1/models/{id} [private]":       {object: private},
		"POST /v1/chat/completions [public]":  {object: public, body: of},
		"POST /v1/chat/completions [private]": {object: private, body: of},
		"POST /v1/chat/completions [conversation]": {
			object: func(t *testing.T, w *world, actor string) object { return object{id: w.roomFor(t, actor).id} },
			body:   func(*world, object) any { return ask("calc") },
			header: func(o object) (string, string) { return "X-Conversation-Id", o.id },
		},
	}
}
