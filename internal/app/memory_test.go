package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"agentsite/internal/ident"
	"agentsite/internal/openai"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// mind scripts a model with a memory. "remember: X" makes it call the tool with X. It notes of each exchange the lines of
// the message that begin with "fact: ". Otherwise it repeats the memories that it got, or "no memories".
type mind struct {
	mu    sync.Mutex
	seen  []string      // the texts of all requests but those for notes
	noted chan struct{} // one for each request for notes
}

func newMind() *mind { return &mind{noted: make(chan struct{}, 1000)} }

func (m *mind) turn(n int, req openai.ChatRequest) agenttest.Turn {
	first, last := string(req.Messages[0].Content), req.Messages[len(req.Messages)-1]
	if strings.HasPrefix(first, "Below is one exchange") {
		defer func() { m.noted <- struct{}{} }()
		return agenttest.Turn{Text: factsOf(string(last.Content))}
	}
	all := ""
	for _, msg := range req.Messages {
		all += string(msg.Content) + "\n"
	}
	m.mu.Lock()
	m.seen = append(m.seen, all)
	m.mu.Unlock()
	if last.Role == openai.ToolRole {
		return agenttest.Turn{Text: "Tool: " + string(last.Content)}
	}
	if _, what, ok := strings.Cut(string(last.Content), "remember: "); ok {
		return agenttest.Turn{Calls: []openai.ToolCall{agenttest.Want(fmt.Sprint("r", n), "remember", fmt.Sprintf(`{"text":%q}`, what))}}
	}
	_, rest, ok := strings.Cut(all, "[What you remember.")
	if !ok {
		return agenttest.Turn{Text: "no memories"}
	}
	return agenttest.Turn{Text: "I know: " + rest}
}

// factsOf returns the facts in a request for notes, one a line, or none.
func factsOf(text string) string {
	_, said, _ := strings.Cut(text, "[Message of the person]")
	said, _, _ = strings.Cut(said, "[Answer of the assistant]")
	var out []string
	for line := range strings.Lines(said) {
		if fact, ok := strings.CutPrefix(strings.TrimSpace(line), "fact: "); ok {
			out = append(out, fact)
		}
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, "\n")
}

// saw reports whether a request to the model, other than for notes, contained a text.
func (m *mind) saw(text string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Contains(strings.Join(m.seen, "\n"), text)
}

// rememberer registers a public prompt agent with a memory and a model of its owner.
func rememberer(owner *apptest.Client, model *agenttest.OpenAIServer, tools ...string) string {
	name := apptest.Fresh("minder")
	owner.NewToken().Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": name, "description": "Remembers.",
		"kind": "prompt", "visibility": "public", "endpoint": model.Base(agenttest.Scripted),
		"config": map[string]any{"model": "m", "instructions": "Help.", "tools": append(tools, "memory")}}, http.StatusCreated)
	return name
}

func talkTo(t *testing.T, c *apptest.Client, members ...string) actor {
	t.Helper()
	talk := c.Conversation(members...)
	return actor{c, t, talk, c.Socket(talk)}
}

func turnOn(c *apptest.Client, agent string) {
	c.Must(http.MethodPut, "/api/v1/grants/"+ident.NewID(), map[string]any{"agent": agent, "tool": "memory", "decision": "allow"}, http.StatusOK)
}

type memoryList struct {
	Memories []struct {
		ID, Agent, Text string
		Source          struct {
			Conversation, By string
			Seq              int64
		}
	}
	Next string `json:"next_cursor"`
}

func memoriesOf(c *apptest.Client, query string) (list memoryList) {
	c.Get(http.MethodGet, "/api/v1/memories"+query, nil, http.StatusOK, &list)
	return list
}

// An agent asks before it remembers, recalls it in a later conversation, shows it, and forgets it.
func TestMemory_AsksRecallsAndForgets(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	model, m := agenttest.NewOpenAIServer(t), newMind()
	model.Script(m.turn)
	agent := rememberer(p.User(t, "eve"), model)
	first := talkTo(t, ada, agent)
	if got := first.say("remember: The person has a dog named Rex."); !strings.Contains(got, "May I remember this?") ||
		!strings.Contains(got, "named Rex") || !strings.Contains(got, "operator there can read it") {
		t.Fatalf("it did not ask: %q", got)
	}
	if len(memoriesOf(ada, "").Memories) > 0 {
		t.Fatal("it remembered without a yes")
	}
	if got := first.say("yes"); !strings.Contains(got, "Remembered.") {
		t.Fatalf("after a yes: %q", got)
	}
	if got := first.say("remember: The person lives in Bern."); !strings.Contains(got, "May I remember this?") {
		t.Fatalf("a yes counted twice: %q", got)
	}
	if got := first.say("always"); !strings.Contains(got, "Remembered.") {
		t.Fatalf("after an always: %q", got)
	}
	later := talkTo(t, ada, agent)
	if got := later.say("What is the name of my dog, please?"); !strings.Contains(got, "in an earlier conversation: The person has a dog named Rex.") {
		t.Fatalf("not recalled: %q", got)
	}
	list := memoriesOf(ada, "?agent="+agent)
	if len(list.Memories) != 2 || list.Memories[0].Text != "The person lives in Bern." || list.Memories[0].Agent != agent ||
		list.Memories[0].Source.Conversation != first.talk || list.Memories[0].Source.By != "agent" {
		t.Fatalf("listed: %+v", list)
	}
	if got := later.say("What do you remember of me?"); !strings.Contains(got, "1. `The person has a dog named Rex.`") ||
		!strings.Contains(got, "2. `The person lives in Bern.`") {
		t.Fatalf("shown: %q", got)
	}
	if got := first.say("Forget that!"); !strings.Contains(got, "Forgotten: 1 thing") {
		t.Fatalf("forget that: %q", got)
	}
	if got := talkTo(t, ada, agent).say("Where do I live?"); strings.Contains(got, "Bern") || !strings.Contains(got, "Rex") {
		t.Fatalf("after it was forgotten: %q", got)
	}
	id := memoriesOf(ada, "").Memories[0].ID
	ada.Must(http.MethodPatch, "/api/v1/memories/"+id, map[string]any{"text": "The person has a cat named Tom."}, http.StatusOK)
	if got := talkTo(t, ada, agent).say("Which pet do I have?"); !strings.Contains(got, "named Tom") || strings.Contains(got, "Rex") {
		t.Fatalf("after an edit: %q", got)
	}
	if got := memoriesOf(ada, "?q=cat"); len(got.Memories) != 1 {
		t.Fatalf("search: %+v", got)
	}
	// Turned off, it is shown but not used.
	ada.Must(http.MethodPost, "/account/memories/decide", form("agent", agent, "decision", "deny"), http.StatusSeeOther)
	off := talkTo(t, ada, agent)
	if got := off.say("Which pet do I have?"); !strings.Contains(got, "no memories") {
		t.Fatalf("used while it is off: %q", got)
	}
	if got := off.say("what do you remember of me"); !strings.Contains(got, "I use none of this") || !strings.Contains(got, "Tom") {
		t.Fatalf("shown while it is off: %q", got)
	}
	if got := off.say("forget everything"); !strings.Contains(got, "Forgotten: 1 thing") || len(memoriesOf(ada, "").Memories) > 0 {
		t.Fatalf("forget everything: %q", got)
	}
}

// A model notes facts only for a person that turned the memory on, and notes of a lapsed permission are not used.
func TestMemory_IsNotedByTheModel(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada, eve := p.User(t, "ada"), p.User(t, "eve")
	model, m := agenttest.NewOpenAIServer(t), newMind()
	model.Script(m.turn)
	agent := rememberer(eve, model)
	turnOn(ada, agent)
	talkTo(t, ada, agent).say("Hello.\nfact: The person plays the cello.\nfact: The person is allergic to nuts.")
	<-m.noted
	// The second exchange is noted after the first was stored.
	talkTo(t, ada, agent).say("Hello again.")
	<-m.noted
	list := memoriesOf(ada, "")
	if len(list.Memories) != 2 || list.Memories[0].Source.By != "model" {
		t.Fatalf("noted: %+v", list)
	}
	if got := talkTo(t, ada, agent).say("Can I eat walnuts?"); !strings.Contains(got, "allergic to nuts") {
		t.Fatalf("not recalled: %q", got)
	}
	// Without a decision nothing is noted.
	bob := p.User(t, "bob")
	talkTo(t, bob, agent).say("Hi.\nfact: The person plays chess.")
	// A later message is noted later.
	talkTo(t, ada, agent).say("Hello once more.")
	<-m.noted
	if list := memoriesOf(bob, ""); len(list.Memories) > 0 {
		t.Fatalf("noted without a permission: %+v", list)
	}
	// Another address of the model is another reader.
	other := agenttest.NewOpenAIServer(t)
	other.Script(m.turn)
	eve.NewToken().Must(http.MethodPatch, "/api/v1/agents/"+agent, map[string]any{"endpoint": other.Base(agenttest.Scripted)}, http.StatusOK)
	if got := talkTo(t, ada, agent).say("Can I eat walnuts?"); strings.Contains(got, "allergic") {
		t.Fatalf("recalled for another reader: %q", got)
	}
	if page := ada.Must(http.MethodGet, "/account/memories?agent="+agent, nil, http.StatusOK).Body; !strings.Contains(page, "runs at another address now") {
		t.Error("the page does not say that the permission lapsed")
	}
}

// The page offers no memory for an agent without one, and shows a memory alone after a refused edit of it.
func TestMemory_Page(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada, model := p.User(t, "ada"), agenttest.NewOpenAIServer(t)
	model.Script(newMind().turn)
	agent := rememberer(p.User(t, "eve"), model)
	page := ada.Must(http.MethodGet, "/account/memories?agent=calc", nil, http.StatusOK).Body
	if !strings.Contains(page, "This agent has no memory.") || strings.Contains(page, "/account/memories/decide") {
		t.Error("the memory of calc can be turned on")
	}
	page = ada.Must(http.MethodGet, "/account/memories?agent="+agent, nil, http.StatusOK).Body
	if strings.Contains(page, "This agent has no memory.") || !strings.Contains(page, "/account/memories/decide") {
		t.Error("the memory of an agent that has one cannot be turned on")
	}
	turnOn(ada, agent)
	talk := talkTo(t, ada, agent)
	talk.say("remember: The person likes tea.")
	talk.say("remember: The person likes jam.")
	list := memoriesOf(ada, "").Memories
	long := strings.Repeat("tea ", 300)
	page = ada.Must(http.MethodPost, "/account/memories/"+list[1].ID, form("text", long), http.StatusBadRequest).Body
	if !strings.Contains(page, strings.TrimSpace(long)) || strings.Contains(page, "likes jam") ||
		!strings.Contains(page, "at most 1000") {
		t.Errorf("after a refused edit: %s", page)
	}
}

// memoryCells are the requests of the routes of memories.
func memoryCells() map[string]cell {
	var once sync.Once
	var agent string
	kept := func(t *testing.T, w *world, _ string) object {
		owner := w.as["owner"].With(t)
		once.Do(func() {
			w.far.Script(newMind().turn)
			agent = rememberer(owner, w.far)
			turnOn(owner, agent)
		})
		text := apptest.Fresh("fact")
		talkTo(t, owner, agent).say("remember: " + text)
		for _, m := range memoriesOf(owner, "?limit=100").Memories {
			if m.Text == text {
				return object{id: m.ID}
			}
		}
		t.Fatal("not kept")
		return object{}
	}
	edit := func(*world, object) any { return map[string]any{"text": "The person likes tea."} }
	return map[string]cell{
		"GET /api/v1/memories":               {},
		"DELETE /api/v1/memories":            {query: "?agent=calc"},
		"PATCH /api/v1/memories/{id}":        {object: kept, body: edit},
		"DELETE /api/v1/memories/{id}":       {object: kept},
		"GET /account/memories":              {},
		"POST /account/memories/decide":      {body: func(*world, object) any { return form("agent", "calc", "decision", "deny") }},
		"POST /account/memories/erase":       {body: func(*world, object) any { return form("agent", "calc") }},
		"POST /account/memories/{id}":        {object: kept, body: func(*world, object) any { return form("text", "The person likes tea.") }},
		"POST /account/memories/{id}/delete": {object: kept, body: func(*world, object) any { return form() }},
	}
}
