package prompt

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/task"
	"agentsite/internal/testing/agenttest"
)

func target(endpoint, secret, model string) hub.Target {
	b, _ := json.Marshal(hub.PromptConfig{Instructions: "x", Model: model})
	return hub.Target{Kind: hub.Prompt, Endpoint: endpoint, Secret: secret, Config: b}
}

func answers(t *testing.T, status int, body string) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestProbe(t *testing.T) {
	s := agenttest.NewOpenAIServer(t)
	gone := "http://" + agenttest.Refusing(t)
	base := s.Base(agenttest.Echo)
	for name, tt := range map[string]struct {
		portal Models
		at     hub.Target
		state  hub.Live
		reason string
	}{
		"owner's":         {nil, target(base, "sk-0", "echo-1"), hub.Alive, ""},
		"not listed":      {nil, target(base, "sk-0", "gpt-9"), hub.Alive, `The endpoint does not list the model "gpt-9".`},
		"no model":        {nil, target(base, "sk-0", ""), hub.Unreachable, "The agent names no model. Its owner should choose one."},
		"gone":            {nil, target(gone, "sk-0", "m"), hub.Unreachable, ""},
		"page":            {nil, target(answers(t, 200, "<html>"), "sk-0", "m"), hub.WrongProtocol, "The endpoint does not speak the OpenAI API: it answered with a web page."},
		"key":             {nil, target(answers(t, 401, `{"error":"bad sk-1"}`), "sk-1", "m"), hub.NeedsAuth, `The endpoint refused the key. The server said "bad [key]".`},
		"key in words":    {nil, target(answers(t, 500, `{"error":{"message":"broken by sk-1"}}`), "sk-1", "m"), hub.Unreachable, "The model's server failed (HTTP 500): broken by [key]"},
		"bad settings":    {nil, hub.Target{Endpoint: base, Config: json.RawMessage(`{"instructions":7}`)}, hub.Unknown, "The agent's settings cannot be read."},
		"no portal model": {nil, target("", "", ""), hub.Unreachable, "This portal has no model of its own; the agent's owner should give the address of one."},
		"portal's":        {oneModel(base, "", "echo-2"), target("", "", ""), hub.Alive, ""},
		"portal's other":  {oneModel(base, "", "echo-2"), target("", "", "x"), hub.Unreachable, `The agent's model "x" is not here any more. Its owner should choose another.`},
		"portal's gone":   {oneModel(base, "", "x"), target("", "", ""), hub.Alive, `The portal's model server does not list the model "x".`},
		"portal's key":    {oneModel(answers(t, 403, ""), "sk-0", "m"), target("", "", ""), hub.Unreachable, "The portal's model refused the portal's key. Its operator should renew it."},
		"portal's no url": {oneModel("nonsense", "", "m"), target("", "", ""), hub.Unreachable, "The model's address is not a URL."},
	} {
		d := New(Config{RT: transport(t), Models: tt.portal})
		live := d.Probe(t.Context(), tt.at)
		if live.State != tt.state || tt.reason != "" && live.Reason != tt.reason || live.State != hub.Alive && live.Reason == "" || live.CheckedAt.IsZero() {
			t.Errorf("%s: %+v", name, live)
		}
	}
	if reqs, _ := s.Requests(); len(reqs) != 0 {
		t.Error("a probe made the model work")
	}
}

func TestProbe_AsksThePortalsModelOnce(t *testing.T) {
	s := agenttest.NewOpenAIServer(t)
	d := New(Config{RT: transport(t), Models: oneModel(s.Base(agenttest.Echo), "", "echo-1")})
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			if live := d.Probe(t.Context(), target("", "", []string{"", "default"}[i%2])); live.State != hub.Alive || live.Reason != "" {
				t.Errorf("%+v", live)
			}
		})
	}
	wg.Wait()
	if n := s.Lists(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

func TestListing_ForgetsAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l listing
		n := 0
		ask := func(context.Context) ([]string, error) { n++; return []string{fmt.Sprint(n)}, nil }
		for range 3 {
			l.getList(t.Context(), ask)
			time.Sleep(9 * time.Second)
		}
		if n != 1 {
			t.Errorf("asked %d times", n)
		}
		time.Sleep(listLife)
		if ids, _ := l.getList(t.Context(), ask); ids[0] != "2" {
			t.Errorf("%q", ids)
		}
		time.Sleep(listLife)
		// Who gives up leaves nothing behind, and does not hold up others.
		ctx, cancel := context.WithCancel(t.Context())
		go l.getList(ctx, func(ctx context.Context) ([]string, error) { <-ctx.Done(); return nil, ctx.Err() })
		synctest.Wait()
		impatient, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		if _, err := l.getList(impatient, ask); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%v", err)
		}
		got := make(chan []string)
		go func() { ids, _ := l.getList(t.Context(), ask); got <- ids }()
		synctest.Wait()
		cancel()
		if ids := <-got; len(ids) != 1 || ids[0] != "3" {
			t.Errorf("%q", ids)
		}
	})
}

func TestRun_SaysWhichModelIsMissing(t *testing.T) {
	w := newWorld(t, nil, agenttest.Turn{Text: "Hi."})
	call := w.call("hi")
	call.Agent.Endpoint = ""
	if res, _ := w.run(call); res.State != task.Failed || !strings.Contains(res.Reason, `model "m" is not here any more`) {
		t.Errorf("%+v", res)
	}
	w.cfg.Model = ""
	call = w.call("hi")
	call.Agent.Endpoint = ""
	if res, _ := w.run(call); res.State != task.Failed || !strings.Contains(res.Reason, "no model of its own") {
		t.Errorf("%+v", res)
	}
	if res, _ := w.run(w.call("hi")); res.State != task.Failed || !strings.Contains(res.Reason, "names no model") {
		t.Errorf("%+v", res)
	}
	w.s.Script(agenttest.Turns(agenttest.Turn{Status: 401, Refusal: "Incorrect API key sk-portal"}))
	w.onPortal(nil)
	call = w.call("hi")
	call.Agent.Endpoint = ""
	if res, _ := w.run(call); res.State != task.Failed || !strings.Contains(res.Reason, "operator should renew") || strings.Contains(res.Reason, "sk-portal") {
		t.Errorf("%+v", res)
	}
}
