package mcp_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentsite/internal/testing/apptest"
)

// TestGoal_WithProgressAndConclusion gives a goal by the protocol's own client, in each era.
func TestGoal_WithProgressAndConclusion(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	c := p.User(t, "ada").NewToken("agents:read", "chat:write", "tasks")
	for _, version := range []string{modern, legacy} {
		heard := make(chan string, 1000)
		s := connect(t, p, c, "/mcp", version, &sdk.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
				heard <- r.Params.Message
			}})
		params := &sdk.CallToolParams{Name: "goal", Arguments: map[string]any{
			"goal": "What is 15% of 80? How do I register an agent?", "recruit": "here", "max_members": 2}}
		params.SetProgressToken("mine")
		r, err := s.CallTool(t.Context(), params)
		if err != nil || r.IsError || !strings.Contains(text(r), "calc: ") || !strings.Contains(text(r), "by rules") {
			t.Fatalf("%s: %v %s", version, err, text(r))
		}
		a := dataOf(t, r)
		if a.Agent != "team" || a.State != "completed" || !strings.Contains(a.Answer, "12") {
			t.Errorf("%s: %+v", version, a)
		}
		var all []string
		for !strings.Contains(strings.Join(all, "\n"), "concluded") {
			all = append(all, <-heard)
		}
		if said := strings.Join(all, "\n"); !strings.Contains(said, "forming") || !strings.Contains(said, "calc") {
			t.Errorf("%s: progress %q", version, all)
		}
		// A further part of the same context opens the goal again.
		r = call(t, s, "goal", map[string]any{"goal": "What is 2+2?", "context_id": a.ContextID})
		if !strings.Contains(text(r), "4") || !strings.Contains(text(r), "15% of 80") {
			t.Errorf("%s: %s", version, text(r))
		}
		for name, args := range map[string]map[string]any{"max_turns": {"goal": "Go on", "max_turns": 1001},
			"recruit": {"goal": "Go on", "recruit": "moon"}, "goal": {}, "there is no such": {"goal": "Go", "x": 1}} {
			if r := call(t, s, "goal", args); !r.IsError || !strings.Contains(text(r), strings.Split(name, "_")[0]) {
				t.Errorf("%s: %s: %s", version, name, text(r))
			}
		}
	}
	guest := connect(t, p, p.Guest(t), "/mcp", modern, nil)
	if r := call(t, guest, "goal", map[string]any{"goal": "What is 1+1?"}); !r.IsError ||
		!strings.Contains(text(r), "visitors") {
		t.Errorf("a guest: %s", text(r))
	}
}

// TestGoal_AsksAndIsCanceled answers the question of a member by elicitation, and stops a goal with its call.
func TestGoal_AsksAndIsCanceled(t *testing.T) {
	t.Parallel()
	p, other, c, name := far(t)
	s := connect(t, p, c, "/mcp", modern, &sdk.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			if !strings.Contains(r.Params.Message, name+" asks: Which one?") {
				t.Errorf("asked %q", r.Params.Message)
			}
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"answer": "blue"}}, nil
		}})
	r := call(t, s, "goal", map[string]any{"goal": "ask", "members": []string{name}})
	if a := dataOf(t, r); a.State != "completed" || !strings.Contains(a.Answer, "blue") {
		t.Fatalf("%+v: %s", a, text(r))
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "goal",
			Arguments: map[string]any{"goal": "wait", "members": []string{name}}})
		done <- err
	}()
	<-other.Started
	cancel()
	if err := <-done; err == nil {
		t.Error("a canceled call has a result")
	}
	if state := awaitGoal(t, c); state != "canceled" {
		t.Errorf("the goal is %s", state)
	}
}

// awaitGoal reads the events of the newest goal until it has ended, and returns its state.
func awaitGoal(t *testing.T, c *apptest.Client) string {
	t.Helper()
	var list struct{ Goals []struct{ ID, State string } }
	c.Get(http.MethodGet, "/api/v1/goals", nil, http.StatusOK, &list)
	req := c.Request(t.Context(), http.MethodGet, "/api/v1/goals/"+list.Goals[0].ID+"/events", nil)
	req.Header.Set("Accept", "text/event-stream")
	resp, err := c.HTTP.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	c.Get(http.MethodGet, "/api/v1/goals", nil, http.StatusOK, &list)
	return list.Goals[0].State
}
