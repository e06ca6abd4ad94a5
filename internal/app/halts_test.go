package app_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// listener is a person in a conversation with one agent.
type listener struct {
	*apptest.Client
	talk   string
	stream *apptest.Stream
}

func listensTo(c *apptest.Client, agent string) listener {
	talk := c.Conversation(agent)
	return listener{c, talk, c.Socket(talk)}
}

// outcome waits for the answer to a message, or for the end of its task without one.
func (l listener) outcome(said apptest.Said) (state, reason string) {
	e := l.stream.Wait("the outcome of "+said.ID, func(e apptest.Event) bool {
		return e.Type == "message" && e.Seq > said.Seq && e.Task.State != "" && e.Sender.Kind == "agent"
	})
	return e.Task.State, e.Task.Reason + e.Plain()
}

// An owner pauses an agent: the answer in work ends, and later questions are rejected with the reason, also after a
// restart. An owner cannot resume an agent that an operator stopped.
func TestHalts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(c *app.Config) { c.Data = dir }
	p := apptest.Start(t, at)
	root, ada := p.Operator(t, "boss"), p.User(t, "ada")
	model := agenttest.NewOpenAIServer(t)
	register := func(mode agenttest.Mode) string {
		name := apptest.Fresh("agent")
		ada.NewToken().Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": name, "description": "Answers.",
			"kind": "openai", "endpoint": model.Base(mode), "config": map[string]any{"model": "m"}}, http.StatusCreated)
		return name
	}
	slow, quick := register(agenttest.Wait), register(agenttest.Echo)
	done := func(c *apptest.Client, path string) {
		t.Helper()
		c.NewToken().Must(http.MethodPost, "/api/v1"+path, map[string]any{"reason": "It costs too much."}, http.StatusNoContent)
	}
	expect := func(l listener, want, says string) {
		t.Helper()
		if state, reason := l.outcome(l.Say(l.talk, "hello")); state != want || !strings.Contains(reason, says) {
			t.Errorf("%s: %q, want %s with %q", state, reason, want, says)
		}
	}

	l := listensTo(ada, slow)
	said := l.Say(l.talk, "hello")
	<-model.Started
	done(ada, "/agents/"+slow+"/pause")
	<-model.Stopped
	if state, reason := l.outcome(said); state != "canceled" || !strings.Contains(reason, "paused") {
		t.Errorf("the answer in work: %s %q", state, reason)
	}
	expect(l, "rejected", "has paused it. It costs too much.")

	q := listensTo(ada, quick)
	expect(q, "completed", "hello")
	host, err := url.Parse(model.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range [][3]string{{"/agents/" + quick + "/pause", "/agents/" + quick + "/resume", "has stopped " + quick},
		{"/owners/ada/stop", "/owners/ada/resume", "has stopped the agents of ada"},
		{"/providers/" + host.Host + "/stop", "/providers/" + host.Host + "/resume", "has stopped calls to " + host.Host}} {
		done(root, one[0])
		expect(q, "rejected", one[2]+". It costs too much.")
		// Trying an agent calls it without a task.
		ada.NewToken().Must(http.MethodPost, "/api/v1/agents/"+quick+"/try", map[string]any{"text": "hello"}, http.StatusConflict)
		if strings.HasPrefix(one[1], "/agents/") {
			ada.NewToken().Must(http.MethodPost, "/api/v1"+one[1], nil, http.StatusConflict)
		} else {
			ada.NewToken().Must(http.MethodPost, "/api/v1"+one[1], nil, http.StatusForbidden)
		}
		expect(q, "rejected", one[2])
		root.NewToken().Must(http.MethodPost, "/api/v1"+one[1], nil, http.StatusNoContent)
		expect(q, "completed", "hello")
	}
	ada.NewToken().Must(http.MethodPost, "/api/v1/agents/"+quick+"/try", map[string]any{"text": "hello"}, http.StatusOK)
	// The operator may also stop a built-in agent, which answers without the queue.
	c := listensTo(ada, "calc")
	expect(c, "completed", "calculate")
	done(root, "/agents/calc/pause")
	expect(c, "rejected", "has stopped calc")

	p.Stop()
	p = apptest.Start(t, at)
	l = listensTo(p.LogIn(t, "ada"), slow)
	expect(l, "rejected", "has paused it")
	var list struct {
		Halts []struct {
			Kind, Name string
			Operator   bool
		}
	}
	p.LogIn(t, "boss").NewToken().Get(http.MethodGet, "/api/v1/halts", nil, http.StatusOK, &list)
	if len(list.Halts) != 2 || list.Halts[0].Name != "calc" || !list.Halts[0].Operator || list.Halts[1].Name != slow || list.Halts[1].Operator {
		t.Errorf("%+v", list)
	}
	l.NewToken().Must(http.MethodPost, "/api/v1/agents/"+slow+"/resume", nil, http.StatusNoContent)
	l.Say(l.talk, "hello again")
	<-model.Started
}

// The pause of a deleted agent is in no list.
func TestHalts_EndWithTheirAgent(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada, boss := p.User(t, "ada"), p.Operator(t, "boss")
	name := ada.Agent("public", agenttest.NewOpenAIServer(t).Base(agenttest.Echo))
	ada.Must(http.MethodPost, "/agents/"+name+"/pause", form("pause", "1", "reason", "Tea."), http.StatusSeeOther)
	if page := boss.Must(http.MethodGet, "/admin/queue", nil, http.StatusOK).Body; !strings.Contains(page, "Tea.") {
		t.Fatal("a pause is not listed")
	}
	ada.Must(http.MethodPost, "/agents/"+name+"/delete", form("confirm", name), http.StatusSeeOther)
	if page := boss.Must(http.MethodGet, "/admin/queue", nil, http.StatusOK).Body; strings.Contains(page, "Tea.") {
		t.Error("the pause of a deleted agent is listed")
	}
}
