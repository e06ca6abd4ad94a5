package a2a_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"

	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// teamClient is the protocol's own client for the agent team. It does not read the card, because version 2.4 of the
// client refuses the form of the specification for cards of agents that need a token.
func teamClient(t *testing.T, p *apptest.Portal, c *apptest.Client, binding string) *a2aclient.Client {
	t.Helper()
	hc := &http.Client{Transport: bearer{c.Token, c.HTTP.Transport}}
	at := sdk.NewAgentInterface(p.URL()+"/agents/team/a2a", sdk.TransportProtocol(binding))
	out, err := a2aclient.NewFromEndpoints(t.Context(), []*sdk.AgentInterface{at}, a2aclient.WithJSONRPCTransport(hc),
		a2aclient.WithRESTTransport(hc))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Destroy() })
	return out
}

// TestGoal_IsATask gives goals by the protocol's own client, on both bindings: it watches one, answers the question of
// a member, and cancels another.
func TestGoal_IsATask(t *testing.T) {
	t.Parallel()
	other := agenttest.NewA2AServer(t, "1.0", "JSONRPC")
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	token := ada.NewToken("agents:read", "chat:write", "tasks")
	asks := apptest.Fresh("asks")
	ada.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": asks, "description": "Asks back.", "kind": "a2a",
		"endpoint": other.Endpoint(agenttest.Echo), "visibility": "public", "config": map[string]any{
			"binding": "JSONRPC", "version": "1.0", "streaming": true}}, http.StatusCreated)
	for _, binding := range bindings {
		c := teamClient(t, p, token, binding)
		var said []string
		var id sdk.TaskID
		last := sdk.TaskStateUnspecified
		for e, err := range c.SendStreamingMessage(t.Context(), userSays("What is 15% of 80?\nHow do I register?")) {
			if err != nil {
				t.Fatal(binding, err)
			}
			switch e := e.(type) {
			case *sdk.Task:
				id = e.ID
			case *sdk.TaskStatusUpdateEvent:
				if last = e.Status.State; e.Status.Message != nil {
					said = append(said, e.Status.Message.Parts[0].Text())
				}
			}
		}
		text := strings.Join(said, "\n")
		if last != sdk.TaskStateCompleted || !strings.Contains(text, "forming") || !strings.Contains(text, "calc") {
			t.Errorf("%s: %s after %q", binding, last, said)
		}
		k, err := c.GetTask(t.Context(), &sdk.GetTaskRequest{ID: id})
		if err != nil || !strings.Contains(answer(k), "calc: ") || !strings.Contains(answer(k), "guide: ") {
			t.Fatalf("%s: %+v %v", binding, k, err)
		}

		req := userSays("ask")
		req.Message.Parts = append(req.Message.Parts, sdk.NewDataPart(map[string]any{"members": []string{asks}}))
		res, err := c.SendMessage(t.Context(), req)
		if err != nil {
			t.Fatal(binding, err)
		}
		k = res.(*sdk.Task)
		if k.Status.State != sdk.TaskStateInputRequired || !strings.Contains(k.Status.Message.Parts[0].Text(), asks+" asks: Which one?") {
			t.Fatalf("%s: %+v", binding, k)
		}
		req = userSays("blue")
		req.Message.TaskID, req.Message.ContextID = k.ID, k.ContextID
		if res, err = c.SendMessage(t.Context(), req); err != nil {
			t.Fatal(binding, err)
		}
		if k = res.(*sdk.Task); k.Status.State != sdk.TaskStateCompleted || !strings.Contains(answer(k), "blue") {
			t.Errorf("%s: %+v", binding, k)
		}

		req = userSays("wait")
		req.Message.Parts = append(req.Message.Parts, sdk.NewDataPart(map[string]any{"members": []string{asks}}))
		req.Config = &sdk.SendMessageConfig{ReturnImmediately: true}
		if res, err = c.SendMessage(t.Context(), req); err != nil {
			t.Fatal(binding, err)
		}
		<-other.Started
		if k, err = c.CancelTask(t.Context(), &sdk.CancelTaskRequest{ID: res.(*sdk.Task).ID}); err != nil || k.Status.State != sdk.TaskStateCanceled {
			t.Errorf("%s: %+v %v", binding, k, err)
		}
		if state := awaitGoal(t, ada); state != "canceled" {
			t.Errorf("%s: the goal is %s", binding, state)
		}
	}
	// A task that waits for an answer ends its goal when it is canceled.
	c := teamClient(t, p, token, bindings[0])
	req := userSays("ask")
	req.Message.Parts = append(req.Message.Parts, sdk.NewDataPart(map[string]any{"members": []string{asks}}))
	res, err := c.SendMessage(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CancelTask(t.Context(), &sdk.CancelTaskRequest{ID: res.(*sdk.Task).ID}); err != nil {
		t.Fatal(err)
	}
	if state := awaitGoal(t, ada); state != "canceled" {
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
