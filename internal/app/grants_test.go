package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/ident"
	"agentsite/internal/openai"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// sums scripts a model that looks for an agent for sums, asks it, and repeats its answer.
func sums(_ int, req openai.ChatRequest) agenttest.Turn {
	last := req.Messages[len(req.Messages)-1]
	found := strings.Contains(string(last.Content), `"agent":"calc"`)
	switch {
	case last.Role != openai.ToolRole && len(req.Tools) < 2:
		return agenttest.Turn{Text: "no tools"}
	case last.Role != openai.ToolRole:
		return agenttest.Turn{Calls: []openai.ToolCall{agenttest.Want("f", "find", `{"query":"arithmetic sums"}`)}}
	case found:
		return agenttest.Turn{Calls: []openai.ToolCall{agenttest.Want("a", "ask", `{"agent":"calc","text":"6*7"}`)}}
	}
	_, result, _ := strings.Cut(string(last.Content), "\n")
	return agenttest.Turn{Text: "Result: " + string(last.Content) + result}
}

// A prompt agent finds another agent and asks it: after a yes, without asking after an always, and not any more when
// the permission is taken back.
func TestActing_AsksOnceAndRemembers(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	token := ada.NewToken()
	model := agenttest.NewOpenAIServer(t)
	model.Script(sums)
	name := apptest.Fresh("helper")
	token.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": name, "description": "Helps.", "kind": "prompt",
		"endpoint": model.Base(agenttest.Scripted), "config": map[string]any{"model": "m", "instructions": "Help.",
			"tools": []string{"find", "ask"}}}, http.StatusCreated)
	talk := ada.Conversation(name)
	stream := ada.Socket(talk)
	ask := func(text string) string {
		t.Helper()
		said := ada.Say(talk, text)
		return stream.Wait("the answer to "+text, func(e apptest.Event) bool {
			return e.Type == "message" && e.Seq > said.Seq && e.Kind == "text" && e.Sender.Kind == "agent"
		}).Plain()
	}
	if got := ask("what is 6 times 7?"); !strings.Contains(got, "May I ask `calc`") || !strings.Contains(got, "6*7") {
		t.Fatalf("it did not ask before it asked: %q", got)
	}
	if got := ask("yes"); !strings.Contains(got, "42") {
		t.Fatalf("after a yes: %q", got)
	}
	stream.Heard("Asked calc: “6*7”")
	if got := ask("and 6 times 7 again?"); !strings.Contains(got, "May I ask `calc`") {
		t.Fatalf("a yes holds for one call, but: %q", got)
	}
	if got := ask("always"); !strings.Contains(got, "42") {
		t.Fatalf("after an always: %q", got)
	}
	if got := ask("once more: 6 times 7?"); !strings.Contains(got, "42") {
		t.Fatalf("it asked again: %q", got)
	}
	var list struct {
		Grants []struct {
			ID, Agent, Tool, Scope, Decision, Lapsed string
			Used                                     int
		}
	}
	token.Get(http.MethodGet, "/api/v1/grants", nil, http.StatusOK, &list)
	if len(list.Grants) != 1 || list.Grants[0].Agent != name || list.Grants[0].Tool != "ask" ||
		list.Grants[0].Scope != "calc" || list.Grants[0].Decision != "allow" || list.Grants[0].Used != 2 {
		t.Fatalf("grants: %+v", list)
	}
	token.Must(http.MethodDelete, "/api/v1/grants/"+list.Grants[0].ID, nil, http.StatusNoContent)
	if got := ask("and now, 6 times 7?"); !strings.Contains(got, "May I ask `calc`") {
		t.Fatalf("after the permission was taken back: %q", got)
	}
	if got := ask("never"); strings.Contains(got, "42") || !strings.Contains(got, "does not allow") {
		t.Fatalf("after a never: %q", got)
	}
	if got := ask("please, 6 times 7"); strings.Contains(got, "May I ask") || strings.Contains(got, "42") {
		t.Fatalf("it asked after a never: %q", got)
	}
}

// asker scripts a model that asks one agent for everything and repeats the answer.
func asker(agent string) func(int, openai.ChatRequest) agenttest.Turn {
	return askerWith(agent, "hello")
}

// askerWith is asker with the text that the agent gets.
func askerWith(agent, text string) func(int, openai.ChatRequest) agenttest.Turn {
	return func(n int, req openai.ChatRequest) agenttest.Turn {
		last := req.Messages[len(req.Messages)-1]
		if last.Role != openai.ToolRole {
			return agenttest.Turn{Calls: []openai.ToolCall{agenttest.Want(fmt.Sprint("c", n), "ask", `{"agent":"`+agent+`","text":"`+text+`"}`)}}
		}
		return agenttest.Turn{Text: "It said: " + string(last.Content)}
	}
}

// actor is a person in a conversation with a prompt agent.
type actor struct {
	*apptest.Client
	t      *testing.T
	talk   string
	stream *apptest.Stream
}

// say posts a text and returns the next text of the agent.
func (a actor) say(text string) string {
	a.t.Helper()
	seq := a.Say(a.talk, text).Seq
	return a.stream.Wait("the answer to "+text, func(e apptest.Event) bool {
		return e.Type == "message" && e.Seq > seq && (e.Kind == "text" || e.Task.State != "") && e.Sender.Kind == "agent"
	}).Plain()
}

// helper registers a prompt agent with the tools find and ask and a model of its owner.
func helper(owner *apptest.Client, model *agenttest.OpenAIServer) string {
	name := apptest.Fresh("helper")
	owner.NewToken().Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": name, "description": "Helps.", "kind": "prompt", "visibility": "public",
		"endpoint": model.Base(agenttest.Scripted), "config": map[string]any{"model": "m", "instructions": "Help.", "tools": []string{"find", "ask"}}}, http.StatusCreated)
	return name
}

// When a person stops an agent, the agent that it asked is stopped too; and taking the permission back ends the call.
func TestActing_StopsWithTheAskingAgent(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"stop", "stop all", "revoke"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			p := apptest.Start(t)
			ada := p.User(t, "ada")
			model, slow := agenttest.NewOpenAIServer(t), agenttest.NewOpenAIServer(t)
			token := ada.NewToken()
			far := apptest.Fresh("slow")
			token.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": far, "description": "Slow.", "kind": "openai", "visibility": "public",
				"endpoint": slow.Base(agenttest.Wait), "config": map[string]any{"model": "echo-1"}}, http.StatusCreated)
			model.Script(asker(far))
			name := helper(ada, model)
			id := ident.NewID()
			token.Must(http.MethodPut, "/api/v1/grants/"+id, map[string]any{"agent": name, "tool": "ask", "scope": "public", "decision": "allow"}, http.StatusOK)
			talk := ada.Conversation(name)
			stream := ada.Socket(talk)
			parent := ada.Say(talk, "ask it").Tasks[0].ID
			<-slow.Started
			if page := ada.Must(http.MethodGet, "/account/running", nil, http.StatusOK).Body; strings.Count(page, ">Stop<") != 2 {
				t.Errorf("the page of what runs has %d tasks", strings.Count(page, ">Stop<"))
			}
			if way != "revoke" {
				if way == "stop" {
					ada.Must(http.MethodPost, "/api/v1/conversations/"+talk+"/stop", nil, http.StatusOK)
				} else {
					ada.Must(http.MethodPost, "/account/running/stop", form(), http.StatusSeeOther)
				}
				stream.Wait("the end of the task", func(e apptest.Event) bool { return e.Task.ID == parent && e.Task.State == "canceled" })
			} else {
				token.Must(http.MethodDelete, "/api/v1/grants/"+id, nil, http.StatusNoContent)
				stream.Wait("the answer", func(e apptest.Event) bool { return strings.Contains(e.Plain(), "taken back the permission") })
			}
			<-slow.Stopped
			var list struct {
				Tasks []struct {
					ID, Agent    string
					Conversation string `json:"conversation_id"`
				}
			}
			token.Get(http.MethodGet, "/api/v1/tasks", nil, http.StatusOK, &list)
			for _, k := range list.Tasks {
				if k.Agent == far {
					ada.Socket(k.Conversation).Wait("the end of its task", func(e apptest.Event) bool {
						return e.Task.ID == k.ID && e.Task.State == "canceled"
					})
					return
				}
			}
			t.Fatalf("the other agent has no task: %+v", list)
		})
	}
}

// A person of one portal talks to an agent of a second one, which asks an agent of a third one.
func TestActing_OverThreePortals(t *testing.T) {
	t.Parallel()
	p := meet(t)
	third := &yellow{}
	c := apptest.Start(t, func(cfg *app.Config) { app.Found(cfg, third) })
	if err := p.b.Greet(t.Context(), c.URL()); err != nil {
		t.Fatal(err)
	}
	cy := c.User(t, "cy")
	cy.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "far-parrot", "description": "Repeats.", "kind": "a2a", "endpoint": p.agents.Endpoint(agenttest.Echo),
		"visibility": "public", "config": map[string]any{"binding": "JSONRPC", "version": "1.0", "streaming": true}}, http.StatusCreated)
	p.back.put(c.NetworkID(), c.Host, "far-parrot")
	model := agenttest.NewOpenAIServer(t)
	model.Script(asker("far-parrot@" + c.Host))
	name := helper(p.bob, model)
	p.known.put(p.bID, p.b.Host, name)
	talk := p.ada.Conversation(name + "@" + p.b.Host)
	ada := actor{p.ada, t, talk, p.ada.Socket(talk)}
	if got := ada.say("ask the parrot"); !strings.Contains(got, "May I ask `far-parrot@"+c.Host+"`") || strings.Contains(got, "“always”") {
		t.Fatalf("before it asks: %q", got)
	}
	if got := ada.say("always here"); !strings.Contains(got, agenttest.Echoed("hello")) {
		t.Fatalf("after a yes: %q", got)
	}
	if got := ada.say("ask the parrot again"); !strings.Contains(got, agenttest.Echoed("hello")) {
		t.Fatalf("it asked again: %q", got)
	}
	if got := ada.say("Ask again."); !strings.Contains(got, "I ask you again before") {
		t.Fatalf("no way back: %q", got)
	}
	if got := ada.say("ask the parrot once more"); !strings.Contains(got, "May I ask `far-parrot@"+c.Host+"`") {
		t.Fatalf("after ask again: %q", got)
	}
}

// A server's word that a tool only reads counts if an operator registered the server; otherwise the person is asked.
func TestActing_BelievesOnlyServersOfOperators(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	for _, c := range []struct {
		name  string
		owner *apptest.Client
		asks  bool
	}{{"person", p.User(t, "ben"), true}, {"operator", p.Operator(t, "boss"), false}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			model, server := agenttest.NewOpenAIServer(t), agenttest.NewMCPServer(t, true)
			tools, name := apptest.Fresh("tools"), apptest.Fresh("reader")
			model.Script(func(_ int, req openai.ChatRequest) agenttest.Turn {
				if last := req.Messages[len(req.Messages)-1]; last.Role == openai.ToolRole {
					return agenttest.Turn{Text: "It said: " + string(last.Content)}
				}
				return agenttest.Turn{Calls: []openai.ToolCall{agenttest.Want("1", tools+"__echo", `{"text":"hello"}`)}}
			})
			token := c.owner.NewToken()
			token.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": tools, "description": "Tools.", "kind": "mcp", "endpoint": server.Endpoint(agenttest.Echo), "visibility": "public",
				"config": map[string]any{"tools": []any{map[string]any{"name": "echo", "read_only": true, "input_schema": json.RawMessage(agenttest.EchoSchema)}}}}, http.StatusCreated)
			token.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": name, "description": "Reads.", "kind": "prompt", "visibility": "public",
				"endpoint": model.Base(agenttest.Scripted), "config": map[string]any{"model": "m", "instructions": "Read.", "tools": []string{tools}}}, http.StatusCreated)
			ada := p.User(t, "ada"+c.name)
			talk := ada.Conversation(name)
			got := actor{ada, t, talk, ada.Socket(talk)}.say("read it")
			if asked := strings.Contains(got, "May I use `echo` of `"+tools+"`"); asked != c.asks || !c.asks && !strings.Contains(got, "hello") {
				t.Errorf("%q", got)
			}
		})
	}
}

// An agent learns nothing of private agents by asking: one that exists is answered like one that does not, until a
// grant names it.
func TestActing_PrivateAgentsAreHidden(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	token := ada.NewToken()
	model, other := agenttest.NewOpenAIServer(t), agenttest.NewOpenAIServer(t)
	hidden := ada.Agent("private", other.Base(agenttest.Echo))
	name := helper(ada, model)
	talk := ada.Conversation(name)
	person := actor{ada, t, talk, ada.Socket(talk)}
	answers := map[string]string{}
	for _, who := range []string{hidden, hidden + "@" + p.Host, "nobody-there"} {
		model.Script(asker(who))
		answers[who] = strings.ReplaceAll(person.say("ask "+who), who, "NAME")
	}
	for who, got := range answers {
		if got != answers["nobody-there"] || !strings.Contains(got, "There is no agent") {
			t.Errorf("%s: %q, one that does not exist: %q", who, got, answers["nobody-there"])
		}
	}
	token.Must(http.MethodPut, "/api/v1/grants/"+ident.NewID(), map[string]any{"agent": name, "tool": "ask", "scope": "public", "decision": "allow"}, http.StatusOK)
	model.Script(asker(hidden))
	if got := person.say("ask it by the grant for public agents"); !strings.Contains(got, "There is no agent") {
		t.Errorf("a grant for public agents covers a private one: %q", got)
	}
	token.Must(http.MethodPut, "/api/v1/grants/"+ident.NewID(), map[string]any{"agent": name, "tool": "ask", "scope": hidden, "decision": "allow"}, http.StatusOK)
	if got := person.say("ask it by its grant"); !strings.Contains(got, agenttest.Echoed("hello")) {
		t.Errorf("by its own grant: %q", got)
	}
}

// An agent that waits for another one takes no running place, so that a chain of agents does not wait for itself.
func TestActing_WaitingTakesNoPlace(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t, func(c *app.Config) {
		c.Limits = "running=2,running-per-account=1,disk-free=0,disk-reserve=0"
	})
	ada := p.User(t, "ada")
	token := ada.NewToken()
	first, second := agenttest.NewOpenAIServer(t), agenttest.NewOpenAIServer(t)
	last := helper(ada, second)
	second.Script(asker("calc"))
	first.Script(asker(last))
	name := helper(ada, first)
	for _, agent := range []string{name, last} {
		token.Must(http.MethodPut, "/api/v1/grants/"+ident.NewID(), map[string]any{"agent": agent, "tool": "ask", "scope": "public", "decision": "allow"}, http.StatusOK)
	}
	talk := ada.Conversation(name)
	if got := (actor{ada, t, talk, ada.Socket(talk)}).say("ask it"); strings.Count(got, "It said: ") != 2 {
		t.Errorf("%q", got)
	}
}
