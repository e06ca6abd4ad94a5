package a2a_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"

	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// bearer is a transport that adds an API token.
type bearer struct {
	token string
	to    http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b.token != "" {
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.to.RoundTrip(r)
}

// client is the protocol's own Go client for an agent of the portal, which
// finds out everything from the agent's card.
func client(t *testing.T, p *apptest.Portal, c *apptest.Client, home, binding string) *a2aclient.Client {
	t.Helper()
	hc := &http.Client{Transport: bearer{c.Token, c.HTTP.Transport}}
	card, err := agentcard.NewResolver(hc).Resolve(t.Context(), p.URL()+home)
	if err != nil {
		t.Fatal(err)
	}
	out, err := a2aclient.NewFromCard(t.Context(), card, a2aclient.WithJSONRPCTransport(hc), a2aclient.WithRESTTransport(hc),
		a2aclient.WithConfig(a2aclient.Config{PreferredTransports: []sdk.TransportProtocol{sdk.TransportProtocol(binding)}}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Destroy() })
	return out
}

func userSays(text string) *sdk.SendMessageRequest {
	return &sdk.SendMessageRequest{Message: sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart(text))}
}

// answer is the text of a task's artifacts.
func answer(k *sdk.Task) string {
	var b strings.Builder
	for _, a := range k.Artifacts {
		for _, p := range a.Parts {
			b.WriteString(p.Text())
		}
	}
	return b.String()
}

// TestSDK_SendStreamGetListCancel is what the protocol's own client does, as
// somebody with a token, on both bindings.
func TestSDK_SendStreamGetListCancel(t *testing.T) {
	t.Parallel()
	p, model, _ := far(t)
	ada := p.User(t, "ada")
	token := ada.NewToken("chat:write")
	slow := ada.Agent("public", model.Base(agenttest.Hang))
	for _, binding := range bindings {
		c := client(t, p, token, "/agents/calc", binding)
		res, err := c.SendMessage(t.Context(), userSays("6*7"))
		if err != nil {
			t.Fatal(binding, err)
		}
		k, ok := res.(*sdk.Task)
		if !ok || k.Status.State != sdk.TaskStateCompleted || !strings.Contains(answer(k), "42") || len(k.History) != 2 {
			t.Fatalf("%s: %+v", binding, res)
		}
		got, err := c.GetTask(t.Context(), &sdk.GetTaskRequest{ID: k.ID, HistoryLength: new(int)})
		if err != nil || got.ContextID != k.ContextID || answer(got) != answer(k) || len(got.History) != 0 {
			t.Errorf("%s: %+v %v", binding, got, err)
		}

		var streamed strings.Builder
		var last sdk.Event
		var first *sdk.Task
		for e, err := range c.SendStreamingMessage(t.Context(), userSays("40+2")) {
			if err != nil {
				t.Fatal(binding, err)
			}
			if first == nil {
				if first, ok = e.(*sdk.Task); !ok {
					t.Fatalf("%s: the first event is %T", binding, e)
				}
				streamed.WriteString(answer(first))
			}
			if a, ok := e.(*sdk.TaskArtifactUpdateEvent); ok {
				if !a.Append {
					streamed.Reset()
				}
				for _, part := range a.Artifact.Parts {
					streamed.WriteString(part.Text())
				}
			}
			last = e
		}
		if u, ok := last.(*sdk.TaskStatusUpdateEvent); ok && u.Status.State != sdk.TaskStateCompleted || !ok && first.Status.State != sdk.TaskStateCompleted {
			t.Errorf("%s: the last event is %+v", binding, last)
		}
		after, err := c.GetTask(t.Context(), &sdk.GetTaskRequest{ID: first.ID})
		if err != nil || answer(after) != streamed.String() || streamed.Len() == 0 {
			t.Errorf("%s: streamed %q, kept %+v %v", binding, streamed.String(), after, err)
		}

		list, err := c.ListTasks(t.Context(), &sdk.ListTasksRequest{ContextID: k.ContextID, Status: sdk.TaskStateCompleted, IncludeArtifacts: true})
		if err != nil || len(list.Tasks) != 1 || list.TotalSize != 1 || list.PageSize != 50 || list.NextPageToken != "" || answer(list.Tasks[0]) != answer(k) {
			t.Errorf("%s: %+v %v", binding, list, err)
		}

		s := client(t, p, token, "/agents/"+slow, binding)
		req := userSays("hello")
		req.Config = &sdk.SendMessageConfig{ReturnImmediately: true}
		if res, err = s.SendMessage(t.Context(), req); err != nil {
			t.Fatal(binding, err)
		}
		running := res.(*sdk.Task)
		if running.Status.State.Terminal() {
			t.Fatalf("%s: %+v", binding, running)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var end sdk.Event
		for e, err := range s.SubscribeToTask(ctx, &sdk.SubscribeToTaskRequest{ID: running.ID}) {
			if err != nil {
				t.Fatal(binding, err)
			}
			if _, first := e.(*sdk.Task); first {
				k, err := s.CancelTask(t.Context(), &sdk.CancelTaskRequest{ID: running.ID})
				if err != nil || k.Status.State != sdk.TaskStateCanceled {
					t.Fatalf("%s: %+v %v", binding, k, err)
				}
			}
			end = e
		}
		cancel()
		if u, ok := end.(*sdk.TaskStatusUpdateEvent); !ok || u.Status.State != sdk.TaskStateCanceled {
			t.Errorf("%s: the stream ended with %+v", binding, end)
		}
		if _, err := s.CancelTask(t.Context(), &sdk.CancelTaskRequest{ID: running.ID}); !errors.Is(err, sdk.ErrTaskNotCancelable) {
			t.Errorf("%s: canceled twice: %v", binding, err)
		}
		var refused error
		for _, refused = range s.SubscribeToTask(t.Context(), &sdk.SubscribeToTaskRequest{ID: running.ID}) {
		}
		if !errors.Is(refused, sdk.ErrUnsupportedOperation) {
			t.Errorf("%s: subscribed to what has ended: %v", binding, refused)
		}
		if _, err := s.GetTask(t.Context(), &sdk.GetTaskRequest{ID: k.ID}); !errors.Is(err, sdk.ErrTaskNotFound) {
			t.Errorf("%s: another agent's task: %v", binding, err)
		}
		ext, err := c.GetExtendedAgentCard(t.Context(), &sdk.GetExtendedAgentCardRequest{})
		if err != nil || len(ext.Capabilities.Extensions) != 5 {
			t.Errorf("%s: extended card: %+v %v", binding, ext, err)
		}
	}
}

// TestSDK_VisitorKeepsTheirTask is a caller without a credential: the ids are
// theirs, and nobody else's.
func TestSDK_VisitorKeepsTheirTask(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	for _, binding := range bindings {
		c := client(t, p, p.Guest(t), "/agents/calc", binding)
		res, err := c.SendMessage(t.Context(), userSays("6*7"))
		if err != nil {
			t.Fatal(binding, err)
		}
		k := res.(*sdk.Task)
		if got, err := c.GetTask(t.Context(), &sdk.GetTaskRequest{ID: k.ID}); err != nil || answer(got) != answer(k) {
			t.Errorf("%s: %+v %v", binding, got, err)
		}
		next := userSays("1+1")
		next.Message.ContextID = k.ContextID
		if res, err = c.SendMessage(t.Context(), next); err != nil || res.(*sdk.Task).ContextID != k.ContextID || res.(*sdk.Task).ID == k.ID {
			t.Errorf("%s: %+v %v", binding, res, err)
		}
		list, err := c.ListTasks(t.Context(), &sdk.ListTasksRequest{ContextID: k.ContextID, PageSize: 1})
		if err != nil || len(list.Tasks) != 1 || list.TotalSize != 2 || list.NextPageToken == "" {
			t.Fatalf("%s: %+v %v", binding, list, err)
		}
		rest, err := c.ListTasks(t.Context(), &sdk.ListTasksRequest{ContextID: k.ContextID, PageSize: 1, PageToken: list.NextPageToken})
		if err != nil || len(rest.Tasks) != 1 || rest.Tasks[0].ID != k.ID {
			t.Errorf("%s: %+v %v", binding, rest, err)
		}
		if all, err := c.ListTasks(t.Context(), &sdk.ListTasksRequest{}); err != nil || len(all.Tasks) != 0 || all.TotalSize != 0 {
			t.Errorf("%s: without a context: %+v %v", binding, all, err)
		}
		other := client(t, p, p.Guest(t), "/agents/calc", binding)
		if _, err := other.GetTask(t.Context(), &sdk.GetTaskRequest{ID: k.ID}); !errors.Is(err, sdk.ErrTaskNotFound) {
			t.Errorf("%s: from elsewhere: %v", binding, err)
		}
		if all, err := other.ListTasks(t.Context(), &sdk.ListTasksRequest{ContextID: k.ContextID}); err != nil || len(all.Tasks) != 0 {
			t.Errorf("%s: listed from elsewhere: %+v %v", binding, all, err)
		}
	}
}

// TestPortals_AskEachOther registers an agent of one portal at another, by its
// address alone, and asks it through both.
func TestPortals_AskEachOther(t *testing.T) {
	t.Parallel()
	far, near := apptest.Start(t), apptest.Start(t)
	ada := near.User(t, "ada")
	var a struct{ Name, Kind string }
	ada.Get(http.MethodPost, "/api/v1/agents", map[string]any{"endpoint": far.URL() + "/agents/calc"}, http.StatusCreated, &a)
	if a.Kind != "a2a" {
		t.Fatalf("%+v", a)
	}
	for _, binding := range bindings {
		res, err := client(t, near, ada.NewToken(), "/agents/"+a.Name, binding).SendMessage(t.Context(), userSays("6*7"))
		if err != nil {
			t.Fatal(binding, err)
		}
		if k := res.(*sdk.Task); k.Status.State != sdk.TaskStateCompleted || len(k.Artifacts) != 1 || !strings.Contains(answer(k), "42") {
			t.Errorf("%s: %+v", binding, k)
		}
	}
}
