package app_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"agentsite/docs"
	"agentsite/handlers/api/goals"
	"agentsite/internal/app"
	"agentsite/internal/testing/apptest"
	"agentsite/internal/testing/racetest"
)

// startGoal gives a goal to a team and returns its id.
func startGoal(c *apptest.Client, body map[string]any) string {
	var out struct{ ID string }
	c.Get(http.MethodPost, "/api/v1/goals", body, http.StatusAccepted, &out)
	return out.ID
}

// followGoal reads the events of a goal after a number until the goal has ended.
func followGoal(t *testing.T, c *apptest.Client, id string) (list []goals.Event) {
	t.Helper()
	req := c.Request(t.Context(), http.MethodGet, "/api/v1/goals/"+id+"/events", nil)
	req.Header.Set("Accept", "text/event-stream")
	resp, err := c.HTTP.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	in := bufio.NewScanner(resp.Body)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		data, ok := strings.CutPrefix(in.Text(), "data: ")
		if !ok {
			continue
		}
		var e goals.Event
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatal(err)
		}
		if e.Seq != int64(len(list)+1) {
			t.Fatalf("event %d after %d", e.Seq, len(list))
		}
		list = append(list, e)
	}
	if err := in.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

func readGoal(c *apptest.Client, id string) (g goals.Goal) {
	c.Get(http.MethodGet, "/api/v1/goals/"+id, nil, http.StatusOK, &g)
	return g
}

func kindsOf(list []goals.Event) (kinds []string) {
	for _, e := range list {
		k := e.Kind
		if e.Move != nil {
			k += " " + e.Move.Kind
		}
		kinds = append(kinds, k)
	}
	return kinds
}

// A step on the result before it goes to the calculator, also if a program that does not understand it is asked first.
func TestGoals_AStepFollowsAResult(t *testing.T) {
	t.Parallel()
	racetest.Skip(t)
	ada := apptest.Start(t, apptest.WithPrograms).User(t, "ada")
	id := startGoal(ada, map[string]any{"goal": "What is 15% of 80? Then add 10.", "recruit": "here"})
	list := followGoal(t, ada, id)
	if got := readGoal(ada, id); got.State != "concluded" || !strings.Contains(got.Conclusion, "**22**") ||
		strings.Contains(got.Conclusion, "Send an amount") {
		t.Errorf("%s\n%q", got.Conclusion, kindsOf(list))
	}
}

// A person gives a goal; the built-in agents work on its parts without a model, and the goal concludes with their
// results, which are there after a restart.
func TestGoals_ATeamOfBuiltInAgentsConcludes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(c *app.Config) { c.Data = dir }
	p := apptest.Start(t, at)
	ada := p.User(t, "ada")
	body := map[string]any{"goal": "What is 15% of 80? How do I register an agent? Juggle three balls.",
		"recruit": "here", "idempotency_key": "first"}
	id := startGoal(ada, body)
	list := followGoal(t, ada, id)
	got := readGoal(ada, id)
	if got.State != "concluded" || !strings.Contains(got.Conclusion, "12") || got.Turns != 2 || len(got.Tasks) != 2 {
		t.Fatalf("%+v\n%q", got, kindsOf(list))
	}
	for _, want := range []string{"calc: ", "guide: ", "Missing:", "Juggle three balls", "by rules"} {
		if !strings.Contains(got.Conclusion, want) {
			t.Errorf("the conclusion lacks %q:\n%s", want, got.Conclusion)
		}
	}
	team := []string{}
	for _, m := range got.Team {
		team = append(team, m.Handle+" "+m.Role+" "+m.State)
	}
	slices.Sort(team)
	if want := "calc member joined, guide member joined, portal lead joined"; strings.Join(team, ", ") != want {
		t.Errorf("team %v", team)
	}
	if again := startGoal(ada, body); again != id {
		t.Errorf("the same key started %s after %s", again, id)
	}
	kinds := kindsOf(list)
	for i, want := range []string{"opened", "found", "joined", "joined", "moved assign"} {
		if kinds[i] != want {
			t.Errorf("event %d is %q, want %q", i+1, kinds[i], want)
		}
	}
	if last := kinds[len(kinds)-1]; last != "moved conclude" {
		t.Errorf("the last event is %q", last)
	}
	ada.Get(http.MethodGet, "/api/v1/conversations/"+got.Tasks[0].ConversationID, nil, http.StatusOK, &struct{}{})
	p.Stop()
	p = apptest.Start(t, at)
	if again := readGoal(p.LogIn(t, "ada"), id); again.Conclusion != got.Conclusion || again.Seq != got.Seq {
		t.Errorf("after a restart: %+v", again)
	}
}

// Only the person that gave a goal sees or changes it.
func TestGoals_AreOfTheirOwnerAlone(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada, ben := p.User(t, "ada"), p.User(t, "ben")
	id := startGoal(ada, map[string]any{"goal": "What is 1 + 1?", "recruit": "here"})
	followGoal(t, ada, id)
	none := strings.Repeat("0", 26)
	for _, c := range []struct{ method, path string }{{http.MethodGet, ""}, {http.MethodGet, "/events"},
		{http.MethodPost, "/cancel"}, {http.MethodPost, "/say"}, {http.MethodPost, "/approve"},
		{http.MethodPost, "/tasks/1/reassign"}} {
		var body any
		if c.method == http.MethodPost && c.path != "/cancel" {
			body = map[string]any{}
		}
		got := ben.Must(c.method, "/api/v1/goals/"+id+c.path, body, http.StatusNotFound)
		missing := ben.Must(c.method, "/api/v1/goals/"+none+c.path, body, http.StatusNotFound)
		if strings.ReplaceAll(cutID(got.Body), id, none) != cutID(missing.Body) {
			t.Errorf("%s %s:\n%s\n%s", c.method, c.path, got.Body, missing.Body)
		}
		p.Guest(t).Must(c.method, "/api/v1/goals/"+id+c.path, body, http.StatusUnauthorized)
	}
	var list struct{ Goals []goals.Summary }
	ben.Get(http.MethodGet, "/api/v1/goals", nil, http.StatusOK, &list)
	if len(list.Goals) != 0 {
		t.Error(list)
	}
	ada.Get(http.MethodGet, "/api/v1/goals", nil, http.StatusOK, &list)
	if len(list.Goals) != 1 || list.Goals[0].ID != id {
		t.Error(list)
	}
}

// cutID removes the id of the request from the body of an error.
func cutID(body string) string {
	head, _, _ := strings.Cut(body, `"request_id"`)
	return head
}

// The worked example of docs/teams.md is what happens.
func TestGoals_TheExampleOfTheManual(t *testing.T) {
	t.Parallel()
	page, ok := docs.FindPage("teams")
	if !ok {
		t.Fatal("no page")
	}
	_, example, _ := strings.Cut(page.Source, "## Example: a goal from begin to end")
	_, text, _ := strings.Cut(example, "“")
	text, _, _ = strings.Cut(text, "”")
	var want []string
	for line := range strings.Lines(example) {
		if cells := strings.Split(line, "|"); len(cells) == 5 && !strings.HasPrefix(cells[1], "---") {
			want = append(want, strings.Join(strings.Fields(strings.Join(cells, " ")), " "))
		}
	}
	ada := apptest.Start(t).User(t, "ada")
	got := []string{"event by what"}
	for _, e := range followGoal(t, ada, startGoal(ada, map[string]any{"goal": text, "recruit": "here"})) {
		words := []string{e.Kind, e.Agent, e.Task, e.State}
		switch {
		case e.Kind == "opened":
			words = append(words, e.Text)
		case e.Kind == "found":
			words = append(words, "1 "+e.Parts[0].Candidates[0].Handle+", 2 none")
			if len(e.Parts) != 2 || len(e.Parts[1].Candidates) > 0 {
				t.Error(e.Parts)
			}
		case e.Move != nil:
			words = append(words, e.Move.Kind)
			for i, k := range e.Move.Tasks {
				words = append(words, strconv.Itoa(i+1), "to", k.Owner)
			}
		}
		got = append(got, strings.Join(strings.Fields(strings.Join(words, " ")), " "))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nin the manual %q", got, want)
	}
}

// The portal's model leads a team: garbage is asked again, and the answer is that of the agent.
func TestGoals_AModelLeads(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex // guards asked
	var asked []string
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		asked = append(asked, string(b))
		n := len(asked)
		mu.Unlock()
		move := `{"kind":"conclude","text":"The answer is 12."}`
		switch n {
		case 1:
			move = "I think that we should begin."
		case 2:
			move = `{"kind":"assign","tasks":[{"owner":"calc","text":"15% of 80"}]}`
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": map[string]any{
			"role": "assistant", "content": move}}}, "usage": map[string]any{"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}})
	}))
	t.Cleanup(model.Close)
	p := apptest.Start(t, func(c *app.Config) { c.LLMURL, c.LLMModel = model.URL+"/v1", "house" })
	ada := p.User(t, "ada")
	id := startGoal(ada, map[string]any{"goal": "What is 15% of 80?", "recruit": "here"})
	kinds := kindsOf(followGoal(t, ada, id))
	got := readGoal(ada, id)
	if got.State != "concluded" || got.Conclusion != "The answer is 12." || !got.ByModel || got.Turns != 2 ||
		got.Cost.TalkTokens != 36 || got.Tasks[0].Owner != "calc" || !slices.Contains(kinds, "rejected") {
		t.Fatalf("%+v\n%q", got, kinds)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(asked) != 3 || !strings.Contains(asked[1], "no JSON object with a move") || !strings.Contains(asked[2], "12") {
		t.Errorf("%d questions: %q", len(asked), asked)
	}
}

// A link made over the API lets anyone read the goal, without links into the owner's account, until it is ended.
func TestGoals_LinksOverTheAPI(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada, guest := p.User(t, "ada"), p.Guest(t)
	id := startGoal(ada, map[string]any{"goal": "What is 15% of 80?", "recruit": "here"})
	followGoal(t, ada, id)
	var link goals.Link
	ada.Get(http.MethodPost, "/api/v1/goals/"+id+"/links", map[string]any{"life": "2h"}, http.StatusCreated, &link)
	path, ok := strings.CutPrefix(link.URL, p.URL())
	if !ok || !strings.HasPrefix(path, "/goals/"+id+"/shared/agsg_") {
		t.Fatalf("%+v", link)
	}
	guest.Must(http.MethodGet, path, nil, http.StatusOK)
	var got struct {
		Goal   goals.Goal
		Events []goals.Event
	}
	body := guest.Must(http.MethodGet, "/api/v1"+path, nil, http.StatusOK).Body
	if err := json.Unmarshal([]byte(body), &got); err != nil || got.Goal.State != "concluded" || len(got.Events) < 8 {
		t.Errorf("%v %s", err, body)
	}
	own := readGoal(ada, id)
	for _, secret := range []string{own.Tasks[0].ConversationID, own.Tasks[0].TaskID, link.ID} {
		if secret == "" || strings.Contains(body, secret) {
			t.Errorf("the reader gets %q: %s", secret, body)
		}
	}
	var list struct{ Links []goals.Link }
	ada.Get(http.MethodGet, "/api/v1/goals/"+id+"/links", nil, http.StatusOK, &list)
	if len(list.Links) != 1 || list.Links[0].ID != link.ID || list.Links[0].URL != "" {
		t.Errorf("%+v", list)
	}
	for _, life := range []string{"1s", "x", "-1h", "9000h"} {
		ada.Must(http.MethodPost, "/api/v1/goals/"+id+"/links", map[string]any{"life": life}, http.StatusBadRequest)
	}
	ada.Must(http.MethodDelete, "/api/v1/goals/"+id+"/links/"+link.ID, nil, http.StatusNoContent)
	ada.Must(http.MethodDelete, "/api/v1/goals/"+id+"/links/"+link.ID, nil, http.StatusNotFound)
	guest.Must(http.MethodGet, "/api/v1"+path, nil, http.StatusNotFound)
}
