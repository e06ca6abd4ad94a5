package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// TestGoals gives a goal with two parts to the agents of the portal, and watches it until it has concluded.
func TestGoals(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	for name, s := range walked("desk", "phone") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := apptest.Start(t)
			b := visit(t, root, p, s).as(p.User(t, "ada"))
			b.open("/goals")
			b.says("You have given no goal yet")
			b.has(`.main-nav a[href="/goals"][aria-current="page"]`)
			b.shot("goals-empty-"+name, true)
			b.open("/")
			b.has(`.guide-goals a.ask`)
			b.fill("#goal-text", "What is 1 + 1?")
			b.press(`.guide-goals .say .button`)
			b.says("Nothing has started.")
			b.holds("#goal", "What is 1 + 1?")
			b.open("/goals/new")
			b.fill("#goal", "What is 15% of 80? How do I register an agent?")
			if s.scripts {
				b.until("the preview while typing", `document.querySelectorAll("[data-goal-preview] .goal-pick a[href='/agents/calc']").length && document.querySelector("[data-goal-status]").textContent === "Preview: 2 parts"`)
			}
			b.press(`button[name="preview"]`)
			b.says("Nothing has started.")
			b.holds("#goal", "What is 15% of 80? How do I register an agent?")
			b.has(`.goal-pick a[href="/agents/calc"]`)
			b.shot("goals-preview-"+name, true)
			b.press(`form[action="/goals"] .button-primary`)
			if !s.scripts {
				return
			}
			b.until("the conclusion", `document.querySelector(".goal-concluded") && document.querySelector(".goal-conclusion").innerText.includes("12")`)
			b.until("the tree and the board", `document.querySelectorAll(".tree-done").length === 2 && document.querySelectorAll(".goal-task-completed").length === 2`)
			b.has(".goal-event-opened")
			b.has(".goal-event-ended .prose strong") // an answer is rendered, not shown as Markdown
			b.until("the slider of a goal that has just ended", `document.querySelector("[data-goal-replay] [data-goal-play]:not([hidden])")`)
			b.has(`.goal-conclusion a[href="/agents/calc"]`)
			b.shot("goals-end-"+name, true)
			eval[bool](b, `(() => { const r = document.querySelector("#at"); r.value = 1; r.dispatchEvent(new Event("input")); return true; })()`)
			b.until("the beginning without another visit", `document.querySelectorAll(".goal-event").length === 1`)
			b.open(b.path())
			eval[bool](b, `(() => { const r = document.querySelector("#at"); r.value = 1; r.dispatchEvent(new Event("input")); return true; })()`)
			b.until("the beginning", `document.querySelectorAll(".goal-event").length === 1 && document.querySelector(".goal-forming")`)
			b.click("[data-goal-play]")
			b.until("the end", `document.querySelector(".goal-concluded") && document.querySelector("[data-goal-play]").textContent === "Play"`)
			b.shot("goals-replay-"+name, true)
			b.open(b.path() + "?at=2")
			b.until("the search", `document.querySelectorAll(".goal-event").length === 2`)
			own, _, _ := strings.Cut(b.path(), "?")
			b.open(own)
			b.press(`form[action$="/share"] .button`)
			b.says("It is shown only now")
			link := eval[string](b, `document.querySelector(".goal-share-link").getAttribute("href")`)
			b.shot("goals-share-"+name, true)
			guest := visit(t, root, p, s)
			guest.open(strings.TrimPrefix(link, p.URL()))
			guest.says("Shared for reading")
			guest.has(".goal-conclusion")
			guest.until("no forms", `!document.querySelector(".goal-live form")`)
			guest.shot("goals-shared-"+name, true)
			if s.width == desk.width {
				guest.look("goal-shared")
			}
			b.open(own)
			b.press(`form[action$="/unshare"] .button`)
			guest.open(strings.TrimPrefix(link, p.URL()))
			guest.says("This link does not work")
			b.open(own)
			if s.width == desk.width {
				b.open(b.path())
				b.look("goal")
				b.open("/goals")
				b.look("goals")
				b.open("/goals/new")
				b.says("The team works by rules, which cost nothing.")
				eval[bool](b, `document.querySelector(".more-fields").open = true`)
				b.look("goal-new")
				b.open("/")
				b.look("home-goals")
			}
			b.clean("goals")
		})
	}
}

// scriptedLead is a model that leads teams: for each word in a goal it has the moves, one after the other; the last one
// again and again.
func scriptedLead(t *testing.T, moves map[string][]string) string {
	t.Helper()
	var mu sync.Mutex // guards asked
	asked := make(map[string]int)
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		move := `{"kind":"give_up","text":"No script."}`
		for word, list := range moves {
			if strings.Contains(string(body), word) {
				mu.Lock()
				move = list[min(asked[word], len(list)-1)]
				asked[word]++
				mu.Unlock()
			}
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": map[string]any{"role": "assistant", "content": move}}},
			"usage": map[string]any{"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}})
	}))
	t.Cleanup(model.Close)
	return model.URL + "/v1"
}

// TestGoals_Led is about teams that a scripted model leads: an agent asks the person, one fails and its task goes to
// another, a team forms below, the portal restarts in the middle, and the person gives a task away and stops everything.
func TestGoals_Led(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	for name, s := range walked("desk", "phone") {
		if !s.scripts {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			give := func(owner, text string) string {
				return `{"kind":"assign","tasks":[{"owner":"` + owner + `","text":"` + text + `"}]}`
			}
			llm := scriptedLead(t, map[string][]string{
				"Approval": {give("echo", "ask"), `{"kind":"conclude","text":"You chose."}`},
				"Failure": {give("echo", "refuse"), `{"kind":"assign","tasks":[{"task":1,"owner":"calc","text":"15% of 80"}]}`,
					`{"kind":"conclude","text":"The second one answered."}`},
				"Nested":  {`{"kind":"assign","tasks":[{"owner":"calc","text":"Lower: how do I register an agent?","team":true}]}`, `{"kind":"conclude","text":"The team below answered."}`},
				"Lower":   {give("guide", "How do I register an agent?"), `{"kind":"conclude","text":"It is in the manual."}`},
				"Halt":    {give("echo", "wait")},
				"Waiting": {give("echo", "wait"), `{"kind":"conclude","text":"Waited."}`},
			})
			dir := t.TempDir()
			at := func(c *app.Config) { c.LLMURL, c.LLMModel, c.Data = llm, "house", dir }
			p := apptest.Start(t, at)
			ada := p.User(t, "ada")
			agent := agenttest.NewA2AServer(t, "1.0", "JSONRPC")
			ada.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "echo", "description": "Repeats words.", "kind": "a2a",
				"endpoint": agent.Endpoint(agenttest.Echo), "skills": []any{map[string]any{"id": "echo", "name": "Echo", "description": "Repeats words."}},
				"visibility": "public", "config": map[string]any{"binding": "JSONRPC", "version": "1.0"}}, http.StatusCreated)
			b := visit(t, root, p, s).as(ada)
			goal := func(text, members string) {
				b.t.Helper()
				b.open("/goals/new")
				b.fill("#goal", text)
				eval[bool](b, `document.querySelector(".more-fields").open = true`)
				b.fill("#members", members)
				b.press(`form[action="/goals"] .button-primary`)
			}

			b.open("/goals/new")
			b.says("A model leads the team")
			goal("Approval, please", "echo")
			b.until("the question", `document.querySelector("#answer-1") && document.body.innerText.includes("Which one?")`)
			b.shot("goals-asks-"+name, true)
			b.fill("#answer-1", "the left one")
			b.press(".goal-ask .button-primary")
			b.until("the end", `document.querySelector(".goal-concluded") && document.body.innerText.includes("You said: the left one")`)

			goal("Failure is possible", "echo, calc")
			b.until("the end", `document.querySelector(".goal-concluded") && document.querySelector(".goal-event-ended") && document.body.innerText.includes("attempt 2")`)
			b.says("not my job")
			b.shot("goals-failed-"+name, true)

			goal("Nested work", "calc, guide")
			b.until("the end", `document.querySelector(".goal-concluded") && document.querySelectorAll(".tree-done").length === 2`)
			b.shot("goals-nested-"+name, true)
			b.press(`.goal-task-line a[href^="/goals/"]`)
			b.says("Part of another goal")
			b.says("It is in the manual.")

			goal("Waiting is hard", "echo, calc")
			b.until("the work", `document.querySelector(".goal-task-working") && document.querySelector(".tree-works")`)
			path := b.path()
			p.Stop()
			b.allow("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE", "Failed to load")
			p = apptest.Start(t, at)
			b = visit(t, root, p, s).as(p.LogIn(t, "ada"))
			b.allow("/reassign") // a name that is not there is 400
			b.open(path)
			b.until("the work after the restart", `document.querySelector(".goal-task-working")`)
			b.shot("goals-works-"+name, true)
			b.click("#move-1 > summary")
			b.fill("#to-1", "nobody-there")
			b.press("#move-1 .button")
			b.says("There is no agent")
			b.click("#move-1 > summary")
			b.fill("#to-1", "calc")
			b.press("#move-1 .button")
			b.until("the end", `document.querySelector(".goal-concluded")`)
			b.has(`.goal-task-completed a[href="/agents/calc"]`)

			goal("Halt at once", "echo")
			b.until("the work", `document.querySelector(".goal-task-working")`)
			b.press(`form[action$="/cancel"] .button`)
			b.has(".goal-canceled")
			b.has(".goal-task-canceled")
			b.shot("goals-stopped-"+name, true)
			b.clean("goals that a model leads")
		})
	}
}
