package agenttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2apb/v0/pbjson"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
)

// old serves A2A 0.3 in front of the SDK's handler for 1.0. The SDK has such a server too
// (a2acompat/a2av0), but it adds gRPC to go.mod. The file
// agentruntime/remote/testdata/a2acompat_test.go.txt explains how to run the drivers against it.
type old struct {
	handler a2asrv.RequestHandler
	binding string
}

// ServeHTTP implements http.Handler.
func (o old) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if o.binding == "JSONRPC" {
		o.rpc(w, r)
		return
	}
	o.rest(w, r)
}

func (o old) rpc(w http.ResponseWriter, r *http.Request) {
	var req struct {
		ID     any             `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if json.NewDecoder(r.Body).Decode(&req) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	wrap := func(v any, err error) []byte {
		out := map[string]any{"jsonrpc": "2.0", "id": req.ID}
		if err != nil {
			code := -32603
			if errors.Is(err, sdk.ErrTaskNotFound) {
				code = -32001
			}
			out["error"] = map[string]any{"code": code, "message": err.Error()}
		} else {
			out["result"] = v
		}
		b, _ := json.Marshal(out)
		return b
	}
	var task struct{ ID sdk.TaskID }
	json.Unmarshal(req.Params, &task)
	w.Header().Set("Content-Type", "application/json")
	switch req.Method {
	case "message/send":
		res, err := o.handler.SendMessage(r.Context(), oldRequest(req.Params))
		w.Write(wrap(oldEvent(res), err))
	case "message/stream":
		stream(w, o.handler.SendStreamingMessage(r.Context(), oldRequest(req.Params)), func(ev sdk.Event, err error) []byte { return wrap(oldEvent(ev), err) })
	case "tasks/resubscribe":
		stream(w, o.handler.SubscribeToTask(r.Context(), &sdk.SubscribeToTaskRequest{ID: task.ID}), func(ev sdk.Event, err error) []byte { return wrap(oldEvent(ev), err) })
	case "tasks/get":
		res, err := o.handler.GetTask(r.Context(), &sdk.GetTaskRequest{ID: task.ID})
		w.Write(wrap(oldEvent(res), err))
	case "tasks/cancel":
		res, err := o.handler.CancelTask(r.Context(), &sdk.CancelTaskRequest{ID: task.ID})
		w.Write(wrap(oldEvent(res), err))
	default:
		w.Write([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"Method not found"}}`))
	}
}

func stream(w http.ResponseWriter, events iter.Seq2[sdk.Event, error], write func(sdk.Event, error) []byte) {
	w.Header().Set("Content-Type", "text/event-stream")
	for ev, err := range events {
		fmt.Fprintf(w, "data: %s\n\n", write(ev, err))
		http.NewResponseController(w).Flush()
		if err != nil {
			return
		}
	}
}

func (o old) rest(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json")
	answer := func(b []byte, err error) {
		if errors.Is(err, sdk.ErrTaskNotFound) {
			w.WriteHeader(http.StatusNotFound)
			b = []byte(`{"code":-32001,"message":"Task not found"}`)
		} else if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			b = []byte(`{"message":"it broke"}`)
		}
		w.Write(b)
	}
	proto := func(ev sdk.Event, err error) []byte {
		if errors.Is(err, sdk.ErrTaskNotFound) {
			return []byte(`{"error":{"code":404,"status":"NOT_FOUND","message":"Task not found"}}`)
		}
		if err != nil {
			return []byte(`{"error":{"code":500,"status":"INTERNAL","message":"it broke"}}`)
		}
		b, _ := pbjson.ToProtoStreamEvent(ev)
		return b
	}
	path := strings.TrimPrefix(r.URL.Path, "/v1")
	id, action, _ := strings.Cut(strings.TrimPrefix(path, "/tasks/"), ":")
	switch {
	case path == "/message:send":
		req, err := pbjson.FromProtoSendMessageRequest(body)
		var res sdk.SendMessageResult
		if err == nil {
			res, err = o.handler.SendMessage(r.Context(), req)
		}
		var b []byte
		if err == nil {
			b, err = pbjson.ToProtoSendMessageResult(res)
		}
		answer(b, err)
	case path == "/message:stream":
		req, err := pbjson.FromProtoSendMessageRequest(body)
		if err != nil {
			answer(nil, err)
			return
		}
		stream(w, o.handler.SendStreamingMessage(r.Context(), req), proto)
	case action == "subscribe" && r.Method == http.MethodGet:
		stream(w, o.handler.SubscribeToTask(r.Context(), &sdk.SubscribeToTaskRequest{ID: sdk.TaskID(id)}), proto)
	case action == "cancel" && r.Method == http.MethodPost, action == "" && r.Method == http.MethodGet:
		var t *sdk.Task
		var err error
		if action == "cancel" {
			t, err = o.handler.CancelTask(r.Context(), &sdk.CancelTaskRequest{ID: sdk.TaskID(id)})
		} else {
			t, err = o.handler.GetTask(r.Context(), &sdk.GetTaskRequest{ID: sdk.TaskID(id)})
		}
		var b []byte
		if err == nil {
			b, err = pbjson.ToProtoTask(t)
		}
		answer(b, err)
	default:
		w.WriteHeader(http.StatusNotFound)
		w.Write([]byte(`{"detail":"Not Found"}`))
	}
}

// oldRequest translates MessageSendParams of version 0.3. Invalid JSON gives an empty message.
func oldRequest(b []byte) *sdk.SendMessageRequest {
	var w struct {
		Message struct {
			MessageID string `json:"messageId"`
			ContextID string `json:"contextId"`
			TaskID    string `json:"taskId"`
			Kind      string `json:"kind"`
			Role      string `json:"role"`
			Parts     []struct{ Kind, Text string }
		} `json:"message"`
		Configuration struct {
			Blocking *bool `json:"blocking"`
		} `json:"configuration"`
	}
	json.Unmarshal(b, &w)
	m := &sdk.Message{ID: w.Message.MessageID, ContextID: w.Message.ContextID, TaskID: sdk.TaskID(w.Message.TaskID)}
	if w.Message.Kind == "message" && w.Message.Role == "user" {
		m.Role = sdk.MessageRoleUser
	}
	for _, p := range w.Message.Parts {
		if p.Kind == "text" {
			m.Parts = append(m.Parts, sdk.NewTextPart(p.Text))
		}
	}
	blocking := w.Configuration.Blocking == nil || *w.Configuration.Blocking
	return &sdk.SendMessageRequest{Message: m, Config: &sdk.SendMessageConfig{ReturnImmediately: !blocking}}
}

// oldEvent translates an event into the form of the JSON-RPC binding of version 0.3.
func oldEvent(ev sdk.Event) any {
	state := func(s sdk.TaskStatus) map[string]any {
		out := map[string]any{"state": strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(string(s.State), "TASK_STATE_")), "_", "-")}
		if s.Message != nil {
			out["message"] = oldEvent(s.Message)
		}
		return out
	}
	parts := func(list sdk.ContentParts) []any {
		out := []any{}
		for _, p := range list {
			out = append(out, map[string]any{"kind": "text", "text": p.Text()})
		}
		return out
	}
	artifact := func(a *sdk.Artifact) any { return map[string]any{"artifactId": a.ID, "parts": parts(a.Parts)} }
	switch e := ev.(type) {
	case *sdk.Message:
		role := map[sdk.MessageRole]string{sdk.MessageRoleAgent: "agent", sdk.MessageRoleUser: "user"}[e.Role]
		return map[string]any{"kind": "message", "messageId": e.ID, "role": role, "contextId": e.ContextID, "taskId": e.TaskID, "parts": parts(e.Parts)}
	case *sdk.Task:
		if e == nil {
			return nil
		}
		arts := []any{}
		for _, a := range e.Artifacts {
			arts = append(arts, artifact(a))
		}
		return map[string]any{"kind": "task", "id": e.ID, "contextId": e.ContextID, "status": state(e.Status), "artifacts": arts}
	case *sdk.TaskStatusUpdateEvent:
		return map[string]any{"kind": "status-update", "taskId": e.TaskID, "contextId": e.ContextID, "status": state(e.Status), "final": e.Status.State.Terminal()}
	case *sdk.TaskArtifactUpdateEvent:
		return map[string]any{"kind": "artifact-update", "taskId": e.TaskID, "contextId": e.ContextID, "artifact": artifact(e.Artifact), "append": e.Append, "lastChunk": e.LastChunk}
	}
	return nil
}
