package app_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/federation/guard"
	"agentsite/internal/hub"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// yellow is what a portal knows of the agents of others.
type yellow struct {
	mu     sync.Mutex // guards agents
	agents map[string]hub.Agent
}

func (y *yellow) put(portal, host, name string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.agents == nil {
		y.agents = make(map[string]hub.Agent)
	}
	y.agents[name+"@"+host] = hub.Agent{ID: portal + "/" + name, Name: name, Portal: host, Title: "Far " + name, Description: "It is elsewhere.", Kind: hub.A2A,
		Visibility: hub.Public, Status: hub.Status{State: hub.Active}, Version: 1, Verified: true}
}

func (y *yellow) Find(_ context.Context, name, portal string) (hub.Agent, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	a, ok := y.agents[name+"@"+portal]
	if !ok {
		return a, fault.New(fault.NotFound, "There is no agent %s@%s.", name, portal)
	}
	return a, nil
}

func (y *yellow) Load(context.Context) error { return nil }

func (y *yellow) Source(a hub.Agent) hub.Source {
	return hub.Source{Portal: a.Portal, URL: "http://" + a.Portal, Verified: true}
}

func (y *yellow) Record(context.Context, hub.Agent, bool) (hub.Evidence, error) {
	return hub.Evidence{}, fault.New(fault.NotFound, "none")
}

func (y *yellow) Portals() []hub.Source { return nil }

func (y *yellow) Coverage([]string) federation.Coverage { return federation.Coverage{} }

// pair is two portals that know each other, and agents of the second one.
type pair struct {
	a, b     *apptest.Portal
	aID, bID string
	known    *yellow // to a
	back     *yellow // to b
	agents   *agenttest.A2AServer
	ada      *apptest.Client // an account at a
	bob      *apptest.Client // an account at b
}

func meet(t *testing.T) *pair {
	t.Helper()
	return meetWith(t, "")
}

// meetWith is meet with limits for the second portal, "" for the usual ones.
func meetWith(t *testing.T, limits string) *pair {
	t.Helper()
	p := &pair{known: &yellow{}, back: &yellow{}, agents: agenttest.NewA2AServer(t, "1.0", "JSONRPC")}
	p.b = apptest.Start(t, func(c *app.Config) {
		app.Found(c, p.back)
		c.Limits = cmp.Or(limits, c.Limits)
	})
	p.a = apptest.Start(t, func(c *app.Config) { app.Found(c, p.known) })
	p.aID, p.bID = p.a.NetworkID(), p.b.NetworkID()
	if err := p.a.Greet(t.Context(), p.b.URL()); err != nil {
		t.Fatal(err)
	}
	p.ada, p.bob = p.a.User(t, "ada"), p.b.User(t, "bob")
	p.known.put(p.bID, p.b.Host, "guide")
	p.known.put(p.bID, p.b.Host, "calc")
	for _, m := range []agenttest.Mode{agenttest.Echo, agenttest.Stall} {
		p.register(string(m), p.agents.Endpoint(m))
	}
	return p
}

// register lists an agent at b, which a hears of.
func (p *pair) register(name, endpoint string) {
	name = "far-" + name
	p.bob.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": name, "description": "Elsewhere.", "kind": "a2a", "endpoint": endpoint,
		"visibility": "public", "config": map[string]any{"binding": "JSONRPC", "version": "1.0", "streaming": true}}, http.StatusCreated)
	p.known.put(p.bID, p.b.Host, name)
}

func (p *pair) far(name string) string { return "far-" + name + "@" + p.b.Host }

// told are those of what an agent was asked that has the text.
func (p *pair) times(text string) int {
	n := 0
	msgs, _ := p.agents.Messages()
	for _, m := range msgs {
		for _, part := range m.Parts {
			if part.Text() == text {
				n++
			}
		}
	}
	return n
}

func TestCalls_AnAgentOfAnotherPortalAnswers(t *testing.T) {
	t.Parallel()
	p := meet(t)
	for _, c := range []*apptest.Client{p.ada, p.ada.NewToken(), p.a.Visitor(t)} {
		room := c.Conversation(p.far("echo"))
		s := c.Events(room)
		k := c.Say(room, "hello there").Tasks[0]
		if got := s.Answered(k.ID); got.Plain() != agenttest.Echoed("hello there") || got.Sender.Handle != p.far("echo") {
			t.Errorf("%s: %+v", c.Name, got)
		}
		// The same conversation goes on there.
		k = c.Say(room, "and again").Tasks[0]
		if got := s.Answered(k.ID); got.Plain() != agenttest.Echoed("and again") {
			t.Errorf("%s: %+v", c.Name, got)
		}
		s.Close()
	}
	msgs, _ := p.agents.Messages()
	contexts := map[string]int{}
	for _, m := range msgs {
		if m.ContextID != "" {
			contexts[m.ContextID]++
		}
	}
	if len(contexts) != 3 || len(msgs) != 6 {
		t.Errorf("three conversations of two questions are %v of %d", contexts, len(msgs))
	}
	// What its owner sees there.
	calls := p.bob.Must(http.MethodGet, "/api/v1/agents/far-echo/stats", nil, http.StatusOK).Body
	if !strings.Contains(calls, `"portal"`) || strings.Contains(calls, "hello there") {
		t.Error(calls)
	}
}

// A full agent of another portal is busy, which its caller sees with a button to try again, and no failure
// of the agent: its liveness stays.
func TestCalls_ABusyAgentOfAnotherPortal(t *testing.T) {
	t.Parallel()
	p := meetWith(t, "running-per-agent=2,waiting-per-account=1,disk-free=0,disk-reserve=0")
	stall, eve := p.far("stall"), p.a.User(t, "eve")
	list := make(map[string]*apptest.Stream)
	for i := range 2 { // one runs and one waits, of the two that all people of a portal have together
		room := eve.Conversation(stall)
		list[room] = eve.Events(room)
		eve.Say(room, "hold on")
		if i == 0 { // as long as it waits, it has the only place to wait
			list[room].Wait("the first to run", func(e apptest.Event) bool { return e.Type == "delta" })
		}
	}
	p.b.AwaitRunning(t, 2)
	live := func() (state string) {
		var out struct{ Liveness struct{ State string } }
		p.bob.Get(http.MethodGet, "/api/v1/agents/far-stall", nil, http.StatusOK, &out)
		return out.Liveness.State
	}
	before := live()
	room := p.ada.Conversation(stall)
	s := p.ada.Events(room)
	k := p.ada.Say(room, "and me?").Tasks[0]
	got := s.Answered(k.ID)
	s.Close()
	if got.Task.State != "rejected" || !strings.Contains(got.Task.Reason, " is busy, about ") {
		t.Errorf("%+v", got)
	}
	if after := live(); after != before {
		t.Errorf("the agent was %q and is %q", before, after)
	}
	page := p.ada.Must(http.MethodGet, "/chat/"+room, nil, http.StatusOK).Body
	if !strings.Contains(page, "busy, about ") || !strings.Contains(page, "Try again") {
		t.Error("the page has no button to try again")
	}
	for r, s := range list {
		eve.Must(http.MethodPost, "/api/v1/conversations/"+r+"/stop", nil, http.StatusOK)
		s.Close()
	}
}

func TestCalls_TextStreamsAndACancelArrives(t *testing.T) {
	t.Parallel()
	p := meet(t)
	room := p.ada.Conversation(p.far("stall"))
	s := p.ada.Events(room)
	k := p.ada.Say(room, "begin").Tasks[0]
	s.Wait("a piece before the end", func(e apptest.Event) bool { return e.Type == "delta" && strings.Contains(e.Text, "well") })
	there := p.b.Running(t)
	if len(there) != 1 || there[0].CallerKind != "portal" || there[0].CallerHandle != "ada@"+p.a.Host || !strings.HasPrefix(there[0].CallerID, p.aID+"/") {
		t.Fatalf("%+v", there)
	}
	p.ada.Must(http.MethodPost, "/api/v1/tasks/"+k.ID+"/cancel", nil, http.StatusOK)
	if got := s.Answered(k.ID); got.Task.State != "canceled" && !strings.Contains(got.Raw, "canceled") {
		t.Errorf("%+v", got)
	}
	p.b.Ended(t, there[0].ID, "canceled")
}

func TestCalls_AskingBackAndAnswering(t *testing.T) {
	t.Parallel()
	p := meet(t)
	room := p.ada.Conversation(p.far("echo"))
	s := p.ada.Events(room)
	k := p.ada.Say(room, "ask").Tasks[0]
	if got := s.Answered(k.ID); got.Plain() != "Which one?" {
		t.Fatalf("%+v", got)
	}
	again := p.ada.Say(room, "the blue one").Tasks[0]
	if again.ID != k.ID {
		t.Error("the answer began another task")
	}
	s.Heard(agenttest.Echoed("the blue one"))
}

func TestCalls_StoppingWhatWaitsForAnAnswer(t *testing.T) {
	t.Parallel()
	p := meet(t)
	room := p.ada.Conversation(p.far("echo"))
	s := p.ada.Events(room)
	k := p.ada.Say(room, "ask").Tasks[0]
	s.Answered(k.ID)
	there := p.b.Running(t)
	if len(there) != 1 {
		t.Fatal(there)
	}
	p.ada.Must(http.MethodPost, "/api/v1/tasks/"+k.ID+"/cancel", nil, http.StatusOK)
	p.b.Ended(t, there[0].ID, "canceled")
}

func TestCalls_EveryFaceReachesThemByHandle(t *testing.T) {
	t.Parallel()
	p := meet(t)
	c := p.ada.NewToken()
	far := p.far("echo")
	rpc := `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m-1","role":"ROLE_USER","parts":[{"text":"by a2a"}]}}}`
	for what, a := range map[string]apptest.Answer{
		"A2A":      c.Must(http.MethodPost, "/agents/"+far+"/a2a", rpc, http.StatusOK),
		"A2A REST": c.Must(http.MethodPost, "/agents/"+far+"/a2a/message:send", `{"message":{"messageId":"m-2","role":"ROLE_USER","parts":[{"text":"by a2a"}]}}`, http.StatusOK),
		"OpenAI":   c.Must(http.MethodPost, "/v1/chat/completions", map[string]any{"model": far, "messages": []any{map[string]string{"role": "user", "content": "by openai"}}}, http.StatusOK),
		"MCP":      c.Must(http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"ask_agent","arguments":{"agent":"`+far+`","text":"by mcp"}}}`, http.StatusOK),
		"its MCP":  c.Must(http.MethodPost, "/agents/"+far+"/mcp", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"ask","arguments":{"text":"by mcp"}}}`, http.StatusOK),
	} {
		said, _, _ := strings.Cut(agenttest.Echoed("by "), "by ")
		if !strings.Contains(a.Body, said+"by ") {
			t.Errorf("%s: %s", what, a.Body)
		}
	}
	if n := p.times("by a2a") + p.times("by openai") + p.times("by mcp"); n != 5 {
		t.Errorf("the agent was asked %d times", n)
	}
	card := c.Must(http.MethodGet, "/agents/"+far+"/.well-known/agent-card.json", nil, http.StatusOK).Body
	for _, want := range []string{p.a.URL() + "/agents/" + far + "/a2a", "relay of " + p.a.Host, `"organization": "` + p.b.Host + `"`} {
		if !strings.Contains(card, want) {
			t.Errorf("the card lacks %s: %s", want, card)
		}
	}
	if list := c.Must(http.MethodGet, "/v1/models", nil, http.StatusOK).Body; strings.Contains(list, "far-") {
		t.Error(list)
	}
	// Two in one room, by mention.
	room := c.Conversation("guide", far)
	k := c.Say(room, "@"+far+" what do you say?").Tasks
	if len(k) != 1 {
		t.Fatal(k)
	}
	s := c.Events(room)
	s.Answered(k[0].ID)
}

func TestCalls_ADeniedPortalIsCutOffAtOnce(t *testing.T) {
	t.Parallel()
	for _, side := range []string{"there", "here"} {
		t.Run(side, func(t *testing.T) {
			t.Parallel()
			p := meet(t)
			room := p.ada.Conversation(p.far("stall"))
			s := p.ada.Events(room)
			k := p.ada.Say(room, "begin").Tasks[0]
			s.Wait("a piece", func(e apptest.Event) bool { return e.Type == "delta" })
			there := p.b.Running(t)
			var err error
			if side == "there" {
				err = p.b.Rule(t.Context(), p.aID, federation.Deny)
			} else {
				err = p.a.Rule(t.Context(), p.bID, federation.Deny)
			}
			if err != nil {
				t.Fatal(err)
			}
			s.Answered(k.ID)
			if side == "there" {
				p.b.Ended(t, there[0].ID, "canceled")
			}
			a := p.ada.Do(http.MethodPost, "/api/v1/conversations/"+room+"/messages", map[string]any{"client_id": "x", "text": "again", "told": []string{p.far("stall")}})
			if side == "here" {
				if a.Status != http.StatusForbidden {
					t.Error(a.Status, a.Body)
				}
				return
			}
			var said apptest.Said
			if err := json.Unmarshal([]byte(a.Body), &said); err != nil || len(said.Tasks) != 1 {
				t.Fatal(a.Body)
			}
			if got := s.Answered(said.Tasks[0].ID); !strings.Contains(got.Raw, "failed") {
				t.Error(got.Raw)
			}
			if n := len(p.b.Running(t)); n != 0 {
				t.Error("it works for a portal that is shut out")
			}
		})
	}
}

// send makes a request at b's door as a portal would, for somebody.
func (p *pair) send(t *testing.T, who, method, params string, edit ...func(*http.Request)) (int, string) {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.b.URL()+"/agents/far-echo/a2a", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if who != "" {
		r.Header.Set(guard.ForField, fmt.Sprintf(`kind=person, id=%q, handle="%s@evil.example"`, who, who))
	}
	for _, e := range edit {
		e(r)
	}
	res, err := p.a.ToPortal(p.bID, p.b.URL()).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var b bytes.Buffer
	if _, err := io.Copy(&b, res.Body); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, b.String()
}

func TestDoor_SomebodyOfAPortalSeesOnlyWhatTheyBegan(t *testing.T) {
	t.Parallel()
	p := meet(t)
	code, body := p.send(t, "ada", "SendMessage", `{"message":{"messageId":"m-1","role":"ROLE_USER","parts":[{"text":"one"}]}}`)
	var out struct {
		Result struct {
			Task struct{ ID, ContextID string }
		}
	}
	if err := json.Unmarshal([]byte(body), &out); err != nil || code != 200 || out.Result.Task.ID == "" {
		t.Fatal(code, body)
	}
	id := fmt.Sprintf(`{"id":%q}`, out.Result.Task.ID)
	if code, body := p.send(t, "ada", "GetTask", id); code != 200 || !strings.Contains(body, agenttest.Echoed("one")) {
		t.Error(code, body)
	}
	if code, body := p.send(t, "ada", "ListTasks", `{}`); code != 200 || !strings.Contains(body, out.Result.Task.ID) {
		t.Error(code, body)
	}
	for _, who := range []string{"eve", ""} {
		for _, method := range []string{"GetTask", "CancelTask", "SubscribeToTask"} {
			if _, body := p.send(t, who, method, id); !strings.Contains(body, "-32001") {
				t.Errorf("%q %s: %s", who, method, body)
			}
		}
		if _, body := p.send(t, who, "ListTasks", `{}`); strings.Contains(body, out.Result.Task.ID) {
			t.Errorf("%q lists it: %s", who, body)
		}
		in := fmt.Sprintf(`{"message":{"messageId":"m-2","role":"ROLE_USER","contextId":%q,"parts":[{"text":"two"}]}}`, out.Result.Task.ContextID)
		if _, body := p.send(t, who, "SendMessage", in); !strings.Contains(body, "-32602") {
			t.Errorf("%q goes on: %s", who, body)
		}
	}
	// A visitor with that address, and its owner, neither.
	for _, c := range []*apptest.Client{p.b.Guest(t), p.bob.NewToken()} {
		a := c.Do(http.MethodPost, "/agents/far-echo/a2a", `{"jsonrpc":"2.0","id":1,"method":"GetTask","params":`+id+`}`)
		if !strings.Contains(a.Body, "-32001") {
			t.Error(a.Body)
		}
	}
	if n := p.times("two"); n != 0 {
		t.Error("the agent was asked")
	}
	// Once: the same message is not asked again.
	once := func(r *http.Request) { r.Header.Set("A2A-Extensions", "https://agentsite.dev/ext/once/v1") }
	for range 2 {
		p.send(t, "ada", "SendMessage", `{"message":{"messageId":"m-9","role":"ROLE_USER","parts":[{"text":"thrice"}]}}`, once)
	}
}

func TestDoor_RefusesWhatNoPortalSigned(t *testing.T) {
	t.Parallel()
	p := meet(t)
	in := `{"message":{"messageId":"m-1","role":"ROLE_USER","parts":[{"text":"forged"}]}}`
	for what, edit := range map[string]func(*http.Request){
		"no person":           func(r *http.Request) { r.Header.Set(guard.ForField, `kind=operator, id="x"`) },
		"with a token":        func(r *http.Request) { r.Header.Set("Authorization", "Bearer ags_x") },
		"a budget of nothing": func(r *http.Request) { r.Header.Set(guard.BudgetField, `calls=1, seconds=0, bytes=0`) },
		"a bad budget":        func(r *http.Request) { r.Header.Set(guard.BudgetField, `calls=many`) },
		"a long way": func(r *http.Request) {
			r.Header.Set(guard.HopsField, strings.TrimSuffix(strings.Repeat(`"a.example/x", `, 8), ", "))
		},
	} {
		if code, body := p.send(t, "ada", "SendMessage", in, edit); code == 200 && !strings.Contains(body, `"error"`) {
			t.Errorf("%s: %d %s", what, code, body)
		}
	}
	// The field without a signature makes nobody anybody.
	raw := `{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{}}`
	forged := func(r *http.Request) { r.Header.Set(guard.ForField, `kind=person, id="ada", handle="ada"`) }
	if a := p.b.Guest(t).Do(http.MethodPost, "/agents/far-echo/a2a", raw, forged); a.Status != 200 || strings.Contains(a.Body, `"id":"0`) {
		t.Error(a.Status, a.Body)
	}
	// Signed, then changed or sent again.
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.b.URL()+"/agents/far-echo/a2a", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":`+in+`}`))
	if err != nil {
		t.Fatal(err)
	}
	signed := p.a.Signed(t, r)
	play := func(edit func(h http.Header)) apptest.Answer {
		return p.b.Guest(t).Do(http.MethodPost, "/agents/far-echo/a2a", string(signed.Body), func(r *http.Request) {
			r.Header = signed.Header.Clone()
			edit(r.Header)
		})
	}
	for what, edit := range map[string]func(http.Header){
		"another person":  func(h http.Header) { h.Set(guard.ForField, `kind=person, id="eve", handle="eve"`) },
		"another network": func(h http.Header) { h.Set(guard.NetworkField, "other") },
		"another body":    func(h http.Header) { h.Set("Content-Digest", "sha-256=:AAAA:") },
		"no network":      func(h http.Header) { h.Del(guard.NetworkField) },
	} {
		if a := play(edit); a.Status != http.StatusUnauthorized && a.Status != http.StatusForbidden {
			t.Errorf("%s: %d %s", what, a.Status, a.Body)
		}
	}
	if n := p.times("forged"); n != 0 {
		t.Fatalf("an agent was asked %d times", n)
	}
	if a := play(func(http.Header) {}); a.Status != 200 {
		t.Fatal(a.Status, a.Body)
	}
	if a := play(func(http.Header) {}); a.Status != http.StatusUnauthorized || !strings.Contains(a.Body, `"replayed"`) {
		t.Error("replayed:", a.Status, a.Body)
	}
	if n := p.times("forged"); n != 1 {
		t.Errorf("an agent was asked %d times", n)
	}
}

func TestCalls_APortalThatDoesNotAnswerIsNamed(t *testing.T) {
	t.Parallel()
	p := meet(t)
	gone := apptest.Start(t)
	if err := p.a.Greet(t.Context(), gone.URL()); err != nil {
		t.Fatal(err)
	}
	p.known.put(gone.NetworkID(), gone.Host, "guide")
	room := p.ada.Conversation("guide@" + gone.Host)
	gone.Stop()
	s := p.ada.Events(room)
	k := p.ada.Say(room, "hello").Tasks[0]
	if got := s.Answered(k.ID); !strings.Contains(got.Raw, gone.Host+" could not be reached") {
		t.Error(got.Raw)
	}
}

func TestCalls_RestartsInTheMiddle(t *testing.T) {
	t.Parallel()
	for _, side := range []string{"there", "here"} {
		t.Run(side, func(t *testing.T) {
			t.Parallel()
			p := meet(t)
			room := p.ada.Conversation(p.far("echo"))
			s := p.ada.Events(room)
			k := p.ada.Say(room, "wait").Tasks[0]
			<-p.agents.Started
			there := p.b.Running(t)
			if len(there) != 1 {
				t.Fatal(there)
			}
			s.Wait("the task to be known", func(e apptest.Event) bool { return strings.Contains(e.Raw, "thinking") })
			s.Close()
			old := p.b
			if side == "here" {
				old = p.a
			}
			old.Stop()
			again := apptest.Start(t, func(c *app.Config) {
				c.Data, c.Listen = old.Dir, strings.TrimPrefix(old.Base, "http://")
				app.Found(c, map[string]*yellow{"there": p.back, "here": p.known}[side])
			})
			ada := p.ada
			if side == "here" {
				p.a = again
				ada = again.LogIn(t, "ada")
			} else {
				p.b = again
			}
			if now := p.b.Running(t); len(now) != 1 || now[0].ID != there[0].ID {
				t.Fatalf("%+v", now)
			}
			// It goes on where it was: what ends it there ends it here.
			s = ada.Events(room)
			ada.Must(http.MethodPost, "/api/v1/tasks/"+k.ID+"/cancel", nil, http.StatusOK)
			s.Answered(k.ID)
			p.b.Ended(t, there[0].ID, "canceled")
			if n := p.times("wait"); n != 1 {
				t.Errorf("the agent was asked %d times", n)
			}
		})
	}
}

func TestCalls_FilesGoBothWays(t *testing.T) {
	t.Parallel()
	p := meet(t)
	files := fileAgent(t)
	p.register("files", files.URL)
	c := p.ada.NewToken()
	room := c.Conversation(p.far("files"))
	s := c.Events(room)
	var said apptest.Said
	c.Get(http.MethodPost, "/api/v1/conversations/"+room+"/messages", map[string]any{"client_id": "f", "parts": []any{
		map[string]any{"text": "take this"}, map[string]any{"raw": []byte("what ada sends"), "filename": "ada.txt", "mediaType": "text/plain"}}}, http.StatusCreated, &said)
	got := s.Answered(said.Tasks[0].ID)
	if !strings.Contains(got.Raw, "got 14 bytes") {
		t.Error(got.Raw)
	}
	if strings.Count(got.Raw, "got 14 bytes") != 1 || !strings.Contains(got.Raw, `"filename":"made.txt"`) {
		t.Errorf("the answer is said once, with its file: %s", got.Raw)
	}
	task := c.Must(http.MethodGet, "/api/v1/tasks/"+said.Tasks[0].ID, nil, http.StatusOK).Body
	_, rest, ok := strings.Cut(task, `"/files/`)
	if !ok || strings.Contains(task, p.b.Host+"/files/") {
		t.Fatalf("the file stayed there: %s", task)
	}
	if b := p.ada.Must(http.MethodGet, "/files/"+rest[:64], nil, http.StatusOK).Body; b != "what the agent made" {
		t.Error(b)
	}
}

// fileAgent is an A2A agent that says how long the file it gets is and answers
// with one.
func fileAgent(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			ID     json.RawMessage
			Params struct {
				Message struct {
					Parts []struct{ Raw []byte }
				}
			}
		}
		json.NewDecoder(r.Body).Decode(&in)
		size := 0
		for _, p := range in.Params.Message.Parts {
			size += len(p.Raw)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"task\":{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_COMPLETED\"},\"artifacts\":[{\"artifactId\":\"a\",\"parts\":[{\"text\":\"got %d bytes\"}]},{\"artifactId\":\"f\",\"parts\":[{\"raw\":%q,\"filename\":\"made.txt\",\"mediaType\":\"text/plain\"}]}]}}}\n\n",
			in.ID, size, base64.StdEncoding.EncodeToString([]byte("what the agent made")))
	}))
	t.Cleanup(s.Close)
	return s
}

// ring makes agents of which each asks the next one, on the other portal, which
// is known to both; it returns the first one's handle at a.
func (p *pair) ring(t *testing.T, n int) string {
	t.Helper()
	carol := p.a.User(t, "carol")
	name := func(i int) string { return fmt.Sprintf("ring-%d", i) }
	for i := range n {
		at, owner := p.a, carol
		next := name((i+1)%n) + "@" + p.b.Host
		if i%2 == 1 {
			at, owner, next = p.b, p.bob, name((i+1)%n)+"@"+p.a.Host
		}
		// The endpoint asks the next agent through its own portal's door.
		owner.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": name(i), "description": "Calls another one.", "kind": "a2a", "visibility": "public",
			"endpoint": at.Base + "/agents/" + next + "/a2a", "config": map[string]any{"binding": "JSONRPC", "version": "1.0", "streaming": true}}, http.StatusCreated)
		if i%2 == 0 {
			p.back.put(p.aID, p.a.Host, name(i))
		} else {
			p.known.put(p.bID, p.b.Host, name(i))
		}
	}
	return name(0)
}

func TestCalls_CirclesAndLongWaysEnd(t *testing.T) {
	t.Parallel()
	p := meet(t)
	first := p.ring(t, 12)
	c := p.ada.NewToken()
	if state, all := outcome(t, c, first); state != "TASK_STATE_FAILED" || !strings.Contains(all, "8 agents have asked each other") {
		t.Error(all)
	}
	two := meet(t)
	first = two.ring(t, 2)
	if state, all := outcome(t, two.ada.NewToken(), first); state != "TASK_STATE_FAILED" || !strings.Contains(all, "agents call each other in a circle") {
		t.Error(all)
	}
}

func TestCalls_ABudgetOfThreeEndsInThree(t *testing.T) {
	t.Parallel()
	p := meet(t)
	first := p.ring(t, 12)
	a := p.ada.NewToken().Must(http.MethodPost, "/agents/"+first+"/a2a", `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m-1","role":"ROLE_USER","parts":[{"text":"go"}]}}}`, http.StatusOK,
		setHeader(guard.BudgetField, "calls=4, seconds=60, bytes=10000")) // the question itself and three further
	if !strings.Contains(a.Body, "no more calls of agents") {
		t.Error(a.Body)
	}
	n := 0
	for i := range 12 {
		at, owner := p.a, p.a.LogIn(t, "carol")
		if i%2 == 1 {
			at, owner = p.b, p.bob
		}
		body := owner.Must(http.MethodGet, fmt.Sprintf("/api/v1/agents/ring-%d/stats", i), nil, http.StatusOK).Body
		var out struct{ Calls []struct{ State string } }
		if err := json.Unmarshal([]byte(body), &out); err != nil {
			t.Fatal(at.Host, err)
		}
		n += len(out.Calls)
	}
	if n != 4 {
		t.Errorf("%d agents were asked", n)
	}
}
