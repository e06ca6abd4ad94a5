package app_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/internal/linkwire"
	"agentsite/internal/testing/apptest"
)

// dialed is a program that dials in and asks one agent with the tools that come with its tasks.
type dialed struct {
	name string

	mu   sync.Mutex // guards the fields below
	asks string
	seen []linkwire.Task
}

// dialIn connects a program that declares tools under a new name.
func dialIn(t *testing.T, p *apptest.Portal, owner *apptest.Client, tools ...string) *dialed {
	t.Helper()
	return dialAs(t, p, owner, apptest.Fresh("dialed"), tools...)
}

// dialAs connects a program, and returns when it is connected.
func dialAs(t *testing.T, p *apptest.Portal, owner *apptest.Client, name string, tools ...string) *dialed {
	t.Helper()
	d := &dialed{name: name, asks: "calc"}
	token := owner.NewToken("agents:write").Token
	connected := make(chan struct{}, 1)
	a := &linkwire.Agent{Hello: linkwire.Hello{Name: d.name, Client: "test 1", Tools: tools}, Work: d.work,
		Dial: func(ctx context.Context) (*linkwire.Socket, error) { return linkwire.Dial(ctx, p.Base, token, nil) },
		Connected: func(linkwire.Welcome) {
			select {
			case connected <- struct{}{}:
			default:
			}
		}}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	select {
	case <-connected:
	case err := <-ended:
		t.Fatalf("the program was refused: %v", err)
	}
	return d
}

// work does one task, as elsewhere does.
func (d *dialed) work(ctx context.Context, in linkwire.Task, out *linkwire.Answer) linkwire.Done {
	d.mu.Lock()
	d.seen = append(d.seen, in)
	asks := d.asks
	d.mu.Unlock()
	if in.Tools == nil {
		return linkwire.Done{State: linkwire.Completed, Text: "No tools."}
	}
	answer, err := useTool(ctx, handedOver{in.Tools.URL, in.Tools.Token}, "ask", map[string]any{"agent": asks, "text": "6*7"})
	switch {
	case err != nil:
		return linkwire.Done{State: linkwire.Failed, Reason: "The call failed: " + err.Error()}
	case strings.HasPrefix(answer, "Not called yet"):
		return linkwire.Done{State: linkwire.InputRequired, Text: "Please wait, my token is " + in.Tools.Token}
	}
	return linkwire.Done{State: linkwire.Completed, Text: "It said: " + answer + " by " + in.Tools.Token}
}

func (d *dialed) tasks() []linkwire.Task {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]linkwire.Task(nil), d.seen...)
}

// A program that dials in asks another agent with the tools that it declared: the portal asks the person, an answer
// continues the program, and the token is in no text, no trace and no checkpoint, and ends with the task.
func TestLinked_AsksWithPermission(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	d := dialIn(t, p, ada, "find", "ask")
	talk := ada.Conversation(d.name)
	person := actor{ada, t, talk, ada.Socket(talk)}
	got := person.say("what is 6 times 7?")
	if !strings.Contains(got, "May I ask `calc` with this?") || !strings.Contains(got, "6*7") || strings.Contains(got, "Please wait") {
		t.Fatalf("the question: %q", got)
	}
	first := d.tasks()[0]
	if got := person.say("yes"); !strings.Contains(got, "It said: **42** by [key]") {
		t.Fatalf("after a yes: %q", got)
	}
	list := d.tasks()
	if last := list[len(list)-1]; !strings.HasPrefix(last.Text, "The person agrees.") || !last.Continued || last.Task != first.Task {
		t.Errorf("the program was continued with %+v", last)
	}
	if got := person.say("again"); !strings.Contains(got, "May I ask `calc`") {
		t.Fatalf("a yes holds for one call, but: %q", got)
	}
	if got := person.say("always"); !strings.Contains(got, "It said: **42**") {
		t.Fatalf("after an always: %q", got)
	}
	if got := person.say("once more"); !strings.Contains(got, "It said: **42**") {
		t.Fatalf("it asked again: %q", got)
	}
	owner := ada.NewToken()
	for _, in := range d.tasks() {
		if text, err := useTool(t.Context(), handedOver{in.Tools.URL, in.Tools.Token}, "find", map[string]any{"query": "sums"}); err == nil {
			t.Errorf("the token outlived its task: %q", text)
		}
		mark := in.Tools.Token[strings.LastIndex(in.Tools.Token, ".")+1:]
		for _, path := range []string{"/api/v1/conversations/" + talk + "/messages", "/api/v1/tasks",
			"/api/v1/agents/" + d.name + "/calls/" + in.Task} {
			if body := owner.Must(http.MethodGet, path, nil, http.StatusOK).Body; strings.Contains(body, mark) {
				t.Errorf("%s has the token", path)
			}
		}
	}
	// The owner takes the tools away.
	owner.Must(http.MethodPatch, "/api/v1/agents/"+d.name, map[string]any{"config": map[string]any{"tools": []string{}}}, http.StatusOK)
	if got := person.say("and now?"); got != "No tools." {
		t.Errorf("without tools in the settings: %q", got)
	}
}

// A program that declares no tools gets none, one that declares other tools is refused.
func TestLinked_GetsToolsOnlyIfDeclared(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	d := dialIn(t, p, ada)
	talk := ada.Conversation(d.name)
	person := actor{ada, t, talk, ada.Socket(talk)}
	if got := person.say("hello"); got != "No tools." {
		t.Errorf("it said %q", got)
	}
	token := ada.NewToken("agents:write").Token
	a := &linkwire.Agent{Hello: linkwire.Hello{Name: apptest.Fresh("greedy"), Tools: []string{"rm"}},
		Work: d.work, Dial: func(ctx context.Context) (*linkwire.Socket, error) { return linkwire.Dial(ctx, p.Base, token, nil) }}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := a.Run(ctx); err == nil || !strings.Contains(err.Error(), "tools") {
		t.Errorf("unknown tools are answered with %v", err)
	}
}
