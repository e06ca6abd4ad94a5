package app_test

import (
	"bytes"
	"image"
	"image/png"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"agentsite/internal/testing/apptest"
)

// agentCells ask of one agent: its versions, its owners, how it is used, and
// what people report about it.
func agentCells() map[string]cell {
	fixed := func(v any) func(*world, object) any { return func(*world, object) any { return v } }
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 8, 8))); err != nil {
		panic(err)
	}
	out := map[string]cell{
		"GET /api/v1/offers":        {},
		"GET /admin/reports":        {},
		"GET /admin/storage":        {},
		"GET /admin/settings":       {},
		"POST /admin/examine":       {},
		"POST /admin/settings":      {body: fixed(form("confirm", apptest.Password))},
		"POST /admin/settings/undo": {body: fixed(form("confirm", apptest.Password, "setting", "contact"))},
		"GET /admin/welcome":        {},
		"POST /admin/welcome":       {body: fixed(form("contact", ""))},
		"POST /admin/reports/{id}/close": {object: func(t *testing.T, w *world, _ string) object {
			reporter := w.p.User(t, apptest.Fresh("rita"))
			reporter.Must(http.MethodPost, "/api/v1/agents/"+w.public+"/report", map[string]string{"reason": "spam"}, http.StatusNoContent)
			ids := between(w.oper.With(t).Must(http.MethodGet, "/admin/reports", nil, http.StatusOK).Body, "/admin/reports/", "/close")
			if len(ids) == 0 {
				t.Fatal("no report on the page")
			}
			return object{id: ids[len(ids)-1]}
		}, body: fixed(form("outcome", "Looked at it."))},
	}
	for _, v := range []string{"public", "private"} {
		// as it is shared by rows that change nothing of it
		same := func(_ *testing.T, w *world, _ string) object {
			if v == "private" {
				return object{name: w.private}
			}
			return object{name: w.public}
		}
		fresh := func(t *testing.T, w *world, _ string) object { return object{name: w.agent(t, v)} }
		edited := func(t *testing.T, w *world, actor string) object {
			o := fresh(t, w, actor)
			w.as["owner"].With(t).Must(http.MethodPatch, "/api/v1/agents/"+o.name, map[string]string{"title": "Changed"}, http.StatusOK)
			return o
		}
		// How much somebody shares and offers is bounded: who may not touch an
		// agent gets the same one as the others, and a new operator does the sharing.
		prepared := func(changes []string, prepare func(owner *apptest.Client, o *object)) func(*testing.T, *world, string) object {
			var once sync.Once
			var kept object
			return func(t *testing.T, w *world, actor string) object {
				ready := func() object {
					o := fresh(t, w, actor)
					prepare(w.p.Operator(t, apptest.Fresh("oper")), &o)
					return o
				}
				if slices.Contains(changes, actor) {
					return ready()
				}
				once.Do(func() { kept = ready() })
				return kept
			}
		}
		shared := func() func(*testing.T, *world, string) object {
			return prepared([]string{"owner", "oper", "right"}, func(oper *apptest.Client, o *object) {
				o.other = people["other"] + "x"
				oper.Must(http.MethodPost, "/api/v1/agents/"+o.name+"/owners", map[string]string{"name": o.other}, http.StatusOK)
			})
		}
		offered := func() func(*testing.T, *world, string) object {
			return prepared([]string{"other"}, func(oper *apptest.Client, o *object) {
				oper.Must(http.MethodPost, "/api/v1/agents/"+o.name+"/offer", map[string]string{"to": people["other"]}, http.StatusNoContent)
			})
		}
		// The operator gives it, once: how many pictures somebody sends is bounded.
		var once sync.Once
		var withIcon object
		pictured := func(t *testing.T, w *world, actor string) object {
			once.Do(func() {
				withIcon = fresh(t, w, actor)
				w.oper.With(t).Must(http.MethodPatch, "/api/v1/agents/"+withIcon.name, map[string]any{"icon": picture.Bytes()}, http.StatusOK)
			})
			return withIcon
		}
		called := func(t *testing.T, w *world, actor string) object {
			o := same(t, w, actor)
			owner := w.as["owner"].With(t)
			o.id = owner.Say(owner.Conversation(o.name), "Hello").Tasks[0].ID
			return o
		}
		var published sync.Once
		signed := func(t *testing.T, w *world, actor string) object {
			o := same(t, w, actor)
			published.Do(func() {
				// It is signed some time after it was registered. The deadline of
				// the test ends the wait.
				for v == "public" && w.as["owner"].With(t).Do(http.MethodGet, "/api/v1/agents/"+o.name+"/record", nil).Status != http.StatusOK {
					select {
					case <-t.Context().Done():
						t.Fatal("nothing was signed")
					case <-time.After(100 * time.Millisecond):
					}
				}
			})
			return o
		}
		for route, c := range map[string]cell{
			"GET /api/v1/agents/{name}/versions/{version}": {object: same},
			"POST /api/v1/agents/{name}/rollback":          {object: edited, body: fixed(map[string]int{"version": 1})},
			"GET /api/v1/agents/{name}/history":            {object: same},
			"GET /api/v1/agents/{name}/record":             {object: signed},
			"GET /api/v1/agents/{name}/stats":              {object: same},
			"GET /api/v1/agents/{name}/calls/{task}":       {object: called},
			"GET /api/v1/agents/{name}/owners":             {object: same},
			"POST /api/v1/agents/{name}/owners":            {object: fresh, body: fixed(map[string]string{"name": people["other"] + "x"})},
			"DELETE /api/v1/agents/{name}/owners/{owner}":  {object: shared()},
			"POST /api/v1/agents/{name}/offer":             {object: fresh, body: fixed(map[string]string{"to": people["other"] + "x"})},
			"GET /api/v1/agents/{name}/proof":              {object: same},
			"POST /api/v1/agents/{name}/prove":             {object: same},
			"POST /api/v1/agents/{name}/report":            {object: same, body: fixed(map[string]string{"reason": "broken", "text": "It says nothing."})},
			"POST /api/v1/agents/{name}/try":               {object: same, body: fixed(map[string]string{"text": "Hello"})},
			"POST /api/v1/offers/{name}":                   {object: offered(), body: fixed(map[string]bool{"accept": true})},
			"GET /agents/{name}/icon":                      {object: pictured},
			"GET /agents/{name}/versions/{version}":        {object: same},
			"POST /agents/{name}/rollback":                 {object: edited, body: fixed(form("version", "1"))},
			"GET /agents/{name}/report":                    {object: same},
			"POST /agents/{name}/report":                   {object: same, body: fixed(form("reason", "broken"))},
			"GET /agents/{name}/owner":                     {object: same},
			"GET /agents/{name}/owner/calls/{task}":        {object: called},
			"GET /agents/{name}/owner/work":                {object: same},
			"POST /agents/{name}/owners":                   {object: fresh, body: fixed(form("who", people["other"]+"x"))},
			"POST /agents/{name}/owners/remove":            {object: shared(), body: fixed(form("who", people["other"]+"x"))},
			"POST /agents/{name}/offer":                    {object: fresh, body: fixed(form("to", people["other"]+"x", "sure", "yes"))},
			"POST /agents/{name}/answer":                   {object: offered(), body: fixed(form("accept", "no"))},
			"POST /agents/{name}/prove":                    {object: same, body: fixed(form())},
			"POST /agents/{name}/status":                   {object: fresh, body: fixed(form("state", "deprecated", "message", "Use calc instead."))},
		} {
			out[route+" ["+v+"]"] = c
		}
		out["POST /agents/{name}/delete ["+v+"]"] = cell{object: fresh, body: func(_ *world, o object) any { return form("confirm", o.name) }}
	}
	return out
}
