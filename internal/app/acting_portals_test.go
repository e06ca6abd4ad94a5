package app_test

import (
	"net/http"
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// trio is a pair of portals with a third one that the second one knows.
type trio struct {
	*pair
	c  *apptest.Portal
	cy *apptest.Client // an account at c
	// behind has the agents that c knows of.
	behind *yellow
}

func meetThree(t *testing.T) *trio {
	t.Helper()
	p := &trio{pair: meet(t), behind: &yellow{}}
	p.c = apptest.Start(t, func(cfg *app.Config) { app.Found(cfg, p.behind) })
	if err := p.b.Greet(t.Context(), p.c.URL()); err != nil {
		t.Fatal(err)
	}
	p.cy = p.c.User(t, "cy")
	return p
}

// list makes an agent of the third portal known to the second one, and returns its handle there.
func (p *trio) list(name string) string {
	p.back.put(p.c.NetworkID(), p.c.Host, name)
	return name + "@" + p.c.Host
}

// hire registers a prompt agent at the second portal that asks the agent for everything with a text, and returns the
// conversation of the person at the first portal with it.
func (p *trio) hire(t *testing.T, asks, text string) actor {
	t.Helper()
	model := agenttest.NewOpenAIServer(t)
	model.Script(askerWith(asks, text))
	name := helper(p.bob, model)
	p.known.put(p.bID, p.b.Host, name)
	talk := p.ada.Conversation(name + "@" + p.b.Host)
	return actor{p.ada, t, talk, p.ada.Socket(talk)}
}

// listA2A registers an A2A agent at the third portal that the second one knows.
func (p *trio) listA2A(name string, mode agenttest.Mode) string {
	p.cy.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": name, "description": "Elsewhere.", "kind": "a2a",
		"endpoint": p.agents.Endpoint(mode), "visibility": "public",
		"config": map[string]any{"binding": "JSONRPC", "version": "1.0", "streaming": true}}, http.StatusCreated)
	return p.list(name)
}

// A stop of the person ends the question that an agent of a second portal asked an agent of a third one: there the task
// is canceled, and the server of the agent learns it.
func TestActing_StopsOverThreePortals(t *testing.T) {
	t.Parallel()
	p := meetThree(t)
	ada := p.hire(t, p.listA2A("far-slow", agenttest.Echo), "wait")
	ada.say("ask it")
	k := ada.Say(ada.talk, "yes").Tasks[0]
	<-p.agents.Started
	there, between := p.c.Running(t), p.b.Running(t)
	if len(there) != 1 || there[0].AgentHandle != "far-slow" || len(between) != 2 {
		t.Fatalf("at the third portal %+v, at the second one %+v", there, between)
	}
	ada.Must(http.MethodPost, "/api/v1/tasks/"+k.ID+"/cancel", nil, http.StatusOK)
	ada.stream.Wait("the end of the task", func(e apptest.Event) bool {
		return e.Task.ID == k.ID && e.Task.State == "canceled"
	})
	<-p.agents.Stopped
	for _, b := range between {
		p.b.Ended(t, b.ID, "canceled")
	}
	p.c.Ended(t, there[0].ID, "canceled")
}
