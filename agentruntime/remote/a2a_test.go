package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/task"
	"agentsite/internal/testing/agenttest"
)

// run makes one call and checks that the sink was used properly.
func runCall(t *testing.T, d task.Agent, call task.Call) (task.Result, *agenttest.Recorder, error) {
	t.Helper()
	rec := &agenttest.Recorder{}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	res, err := d.Run(ctx, call, rec)
	rec.Over()
	t.Cleanup(func() {
		for _, f := range rec.Faults() {
			t.Errorf("sink: %s", f)
		}
	})
	return res, rec, err
}

// everywhere runs f against an SDK agent in every combination.
func everywhere(t *testing.T, f func(t *testing.T, s *agenttest.A2AServer, d *A2A, streaming bool)) {
	for _, c := range combinations {
		t.Run(c.String(), func(t *testing.T) {
			s := agenttest.NewA2AServer(t, c.version, c.binding)
			f(t, s, newA2A(t), c.streaming)
		})
	}
}

func TestA2A_KeepsTheContextOfAConversation(t *testing.T) {
	everywhere(t, func(t *testing.T, s *agenttest.A2AServer, d *A2A, streaming bool) {
		call := a2aCall(s, agenttest.Echo, streaming, "one")
		call.Agent.Secret = "sesame"
		_, rec, err := runCall(t, d, call)
		if err != nil {
			t.Fatal(err)
		}
		at := readCheckpoint(rec.LastCheckpoint())
		if at.Task == "" || at.Context == "" {
			t.Fatalf("checkpoint %s", rec.LastCheckpoint())
		}
		next := a2aCall(s, agenttest.Echo, streaming, "two")
		next.Previous = rec.LastCheckpoint()
		if res, _, err := runCall(t, d, next); err != nil || res.State != task.Completed {
			t.Fatalf("%+v %v", res, err)
		}
		msgs, headers := s.Messages()
		if len(msgs) != 2 || msgs[0].ID != call.MessageID || msgs[1].ContextID != at.Context || msgs[1].TaskID != "" {
			t.Errorf("messages %+v %+v", msgs[0], msgs[1])
		}
		if got := headers[0].Get("Authorization"); got != "Bearer sesame" {
			t.Errorf("authorization %q", got)
		}
		if v := headers[0].Get("A2A-Version"); (v == "1.0") != (s.Version == "1.0") {
			t.Errorf("A2A-Version %q", v)
		}
	})
}

func TestA2A_InputRequiredGoesOnInTheSameTask(t *testing.T) {
	everywhere(t, func(t *testing.T, s *agenttest.A2AServer, d *A2A, streaming bool) {
		res, rec, err := runCall(t, d, a2aCall(s, agenttest.Echo, streaming, "ask"))
		if err != nil || res.State != task.InputRequired || task.PlainText(res.Parts) != "Which one?" {
			t.Fatalf("%+v %v", res, err)
		}
		if !strings.Contains(res.Reason, "Which one?") {
			t.Errorf("reason %q", res.Reason)
		}
		call := a2aCall(s, agenttest.Echo, streaming, "the blue one")
		call.Checkpoint = rec.LastCheckpoint()
		for range 1000 {
			res, _, err = runCall(t, d, call)
			// The SDK asks its question a moment before it takes the answer,
			// and says so in words or, in 0.3 over HTTP, by a bare status 500.
			if !strings.Contains(res.Reason, "already in progress") && !strings.Contains(res.Reason, "HTTP 500") {
				break
			}
		}
		if err != nil || res.State != task.Completed || task.PlainText(res.Parts) != agenttest.Echoed("the blue one") {
			t.Fatalf("%+v %v", res, err)
		}
		msgs, _ := s.Messages()
		if string(msgs[1].TaskID) != readCheckpoint(call.Checkpoint).Task {
			t.Errorf("the input went to task %q", msgs[1].TaskID)
		}
	})
}

func TestA2A_MapsOtherEndings(t *testing.T) {
	everywhere(t, func(t *testing.T, s *agenttest.A2AServer, d *A2A, streaming bool) {
		res, rec, err := runCall(t, d, a2aCall(s, agenttest.Echo, streaming, "refuse"))
		if err != nil || res.State != task.Rejected || res.Reason != "The agent rejected the task: not my job" {
			t.Errorf("%+v %v", res, err)
		}
		if streaming && len(rec.Statuses()) == 0 {
			t.Error("no status was shown")
		}
		res, rec, err = runCall(t, d, a2aCall(s, agenttest.Echo, streaming, "message only"))
		if err != nil || res.State != task.Completed || task.PlainText(res.Parts) != agenttest.Echoed("message only") || rec.Shown() != task.PlainText(res.Parts) {
			t.Errorf("%+v %v", res, err)
		}
	})
}

func TestA2A_ResumesInsteadOfSendingAgain(t *testing.T) {
	everywhere(t, func(t *testing.T, s *agenttest.A2AServer, d *A2A, streaming bool) {
		_, rec, err := runCall(t, d, a2aCall(s, agenttest.Echo, streaming, "once"))
		if err != nil {
			t.Fatal(err)
		}
		call := a2aCall(s, agenttest.Echo, streaming, "once")
		call.Attempt, call.Checkpoint = 2, rec.LastCheckpoint()
		res, again, err := runCall(t, d, call)
		if err != nil || res.State != task.Completed || task.PlainText(res.Parts) != agenttest.Echoed("once") || again.Shown() != agenttest.Echoed("once") {
			t.Errorf("%+v %v", res, err)
		}
		call.Checkpoint = nil
		res, _, err = runCall(t, d, call)
		if err != nil || res.State != task.Failed || !strings.Contains(res.Reason, "unknown") {
			t.Errorf("without checkpoint: %+v %v", res, err)
		}
		call.Checkpoint = json.RawMessage(`{"task":"no-such-task","context":"c"}`)
		res, _, err = runCall(t, d, call)
		if err != nil || res.State != task.Failed || !strings.Contains(res.Reason, "no longer knows") {
			t.Errorf("forgotten task: %+v %v", res, err)
		}
		if msgs, _ := s.Messages(); len(msgs) != 1 {
			t.Errorf("sent %d times", len(msgs))
		}
	})
}

func TestA2A_RefusedContextIsLeftOut(t *testing.T) {
	var contexts []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Params struct {
				Message struct{ ContextID, TaskID string }
			}
		}
		json.NewDecoder(r.Body).Decode(&req)
		contexts = append(contexts, req.Params.Message.TaskID+"/"+req.Params.Message.ContextID)
		if req.Params.Message.ContextID != "" {
			io.WriteString(w, `{"jsonrpc":"2.0","id":"1","error":{"code":-32602,"message":"unknown context"}}`)
			return
		}
		io.WriteString(w, `{"jsonrpc":"2.0","id":"1","result":{"message":{"messageId":"m","role":"ROLE_AGENT","contextId":"new","parts":[{"text":"hello"}]}}}`)
	}))
	defer s.Close()
	call := rpcCall(s.URL, false)
	call.Checkpoint = json.RawMessage(`{"task":"t","context":"c"}`)
	res, rec, err := runCall(t, newA2A(t), call)
	if err != nil || res.State != task.Completed || strings.Join(contexts, " ") != "t/c /c /" {
		t.Errorf("%+v %v, sent %q", res, err, contexts)
	}
	if at := readCheckpoint(rec.LastCheckpoint()); at != (checkpoint{Context: "new"}) {
		t.Errorf("checkpoint %+v", at)
	}
}

func TestA2A_ForgottenTaskBeginsAnew(t *testing.T) {
	everywhere(t, func(t *testing.T, s *agenttest.A2AServer, d *A2A, streaming bool) {
		call := a2aCall(s, agenttest.Echo, streaming, "hello")
		call.Checkpoint = json.RawMessage(`{"task":"gone","context":"gone-too"}`)
		res, rec, err := runCall(t, d, call)
		if err != nil || res.State != task.Completed {
			t.Fatalf("%+v %v", res, err)
		}
		if at := readCheckpoint(rec.LastCheckpoint()); at.Task == "gone" || at.Task == "" {
			t.Errorf("checkpoint %+v", at)
		}
	})
}

func TestA2A_CheckpointThatCannotBeStoredStopsTheAgent(t *testing.T) {
	s := agenttest.NewA2AServer(t, "1.0", "JSONRPC")
	d := newA2A(t)
	rec := &agenttest.Recorder{OnCheckpoint: func(json.RawMessage) error { return errors.New("disk full") }}
	_, err := d.Run(t.Context(), a2aCall(s, agenttest.Wait, true, "wait"), rec)
	if !fault.Is(err, fault.Internal) {
		t.Errorf("%v", err)
	}
	select {
	case <-s.Stopped:
	case <-time.After(time.Minute):
		t.Error("the agent goes on")
	}
}

// rpcAgent is an agent of 1.0 JSON-RPC that answers each method with what the
// map says: a JSON result, or for streams one JSON result per line.
func rpcAgent(t *testing.T, answers map[string]string) (string, *atomic.Int64) {
	t.Helper()
	var sent atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct{ Method string }
		json.NewDecoder(r.Body).Decode(&req)
		if strings.HasPrefix(req.Method, "Send") {
			sent.Add(1)
		}
		body, ok := answers[req.Method]
		if !ok {
			io.WriteString(w, `{"jsonrpc":"2.0","id":"1","error":{"code":-32601,"message":"no such method"}}`)
			return
		}
		if !strings.Contains(req.Method, "Stream") && req.Method != "SubscribeToTask" {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":"1","result":%s}`, body)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for line := range strings.Lines(body) {
			if line = strings.TrimSpace(line); line != "" {
				fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":%s}\n\n", line)
			}
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, &sent
}

func rpcCall(url string, streaming bool) task.Call {
	config, _ := json.Marshal(hub.A2AConfig{Streaming: streaming})
	return task.Call{TaskID: "T", MessageID: "M", Attempt: 1, Parts: []task.Part{task.TextPart("hi")},
		Agent: task.Target{Kind: "a2a", Endpoint: url, Config: config}}
}

func TestA2A_IgnoresForeignAndLateEvents(t *testing.T) {
	url, _ := rpcAgent(t, map[string]string{"SendStreamingMessage": `
		{"task":{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_WORKING"}}}
		{"statusUpdate":{"taskId":"other","contextId":"c1","status":{"state":"TASK_STATE_FAILED"}}}
		{"artifactUpdate":{"taskId":"other","artifact":{"artifactId":"a","parts":[{"text":"not mine"}]}}}
		{"artifactUpdate":{"taskId":"t1","artifact":{"artifactId":"a","parts":[{"text":"mine"}]}}}
		{"artifactUpdate":{"taskId":"t1","artifact":{"artifactId":"f","parts":[{"raw":"aGk=","filename":"hi.txt"}]}}}
		{"artifactUpdate":{"taskId":"t1","append":true,"artifact":{"artifactId":"a","parts":[{"text":" alone"},{"strange":1},null,7]}}}
		{"statusUpdate":{"taskId":"t1","status":{"state":"TASK_STATE_COMPLETED","message":{"role":"ROLE_AGENT","parts":[{"text":"mine alone"}]}}}}
		{"statusUpdate":{"taskId":"t1","status":{"state":"TASK_STATE_FAILED"}}}
		{"artifactUpdate":{"taskId":"t1","artifact":{"artifactId":"a","parts":[{"text":"too late"}]}}}`})
	res, rec, err := runCall(t, newA2A(t), rpcCall(url, true))
	if err != nil || res.State != task.Completed || task.PlainText(res.Parts) != "mine alone" || rec.Shown() != "mine alone" {
		t.Errorf("%+v %v %v", res, rec, err)
	}
	arts := rec.Artifacts()
	if len(arts) != 1 || arts[0].ID != "f" || string(arts[0].Parts[0].Raw) != "hi" {
		t.Errorf("artifacts %+v", arts)
	}
}

func TestA2A_StreamThatEndsEarlyIsAskedFor(t *testing.T) {
	url, sent := rpcAgent(t, map[string]string{
		"SendStreamingMessage": `{"task":{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_WORKING"}}}`,
		"GetTask":              `{"id":"t1","contextId":"c1","status":{"state":"completed"},"history":[{"role":"ROLE_USER","parts":[{"text":"hi"}]},{"role":"ROLE_AGENT","parts":[{"text":"from history"}]}]}`,
	})
	res, rec, err := runCall(t, newA2A(t), rpcCall(url, true))
	if err != nil || res.State != task.Completed || task.PlainText(res.Parts) != "from history" || rec.Shown() != "from history" {
		t.Errorf("%+v %v", res, err)
	}
	if sent.Load() != 1 {
		t.Errorf("sent %d times", sent.Load())
	}
}

// An error late in a stream ends the task with its reason, in each form of JSON-RPC that servers write, and the task is
// not asked for: an agent may say for ever that it works on it.
func TestA2A_ErrorLateInAStreamEndsTheTask(t *testing.T) {
	for name, last := range map[string]string{
		"an error":     `{"jsonrpc":"2.0","id":"1","error":{"code":-32603,"message":"the disk is full"}}`,
		"id as number": `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the disk is full"}}`,
		"without id":   `{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"the disk is full","data":[]}}`,
		"code as text": `{"jsonrpc":"2.0","id":"1","error":{"code":"-32603","message":"the disk is full"}}`,
		"as text":      `{"jsonrpc":"2.0","id":"1","error":"the disk is full"}`,
		"in data":      `{"jsonrpc":"2.0","id":"1","error":{"code":-32603,"message":"Internal error","data":"the disk is full"}}`,
		"event":        "event: error\ndata: the disk is full\n\n",
		"event JSON":   "event: error\ndata: {\"error\":\"the disk is full\"}\n\n",
		"bare":         `{"error":"the disk is full"}`,
		"detail":       `{"detail":"the disk is full"}`,
		"plain":        "the disk is full",
		"field":        "error: the disk is full\n\n",
		"line":         "the disk is full\n",
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var call struct {
					ID     json.RawMessage
					Method string
				}
				if json.NewDecoder(r.Body).Decode(&call) != nil {
					return
				}
				if call.Method != "SendStreamingMessage" {
					asked.Add(1)
					io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(call.ID)+
						`,"result":{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_WORKING"}}}`)
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				for _, result := range []string{`{"task":{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_WORKING"}}}`,
					`{"artifactUpdate":{"taskId":"t1","artifact":{"artifactId":"a","parts":[{"text":"half of "}]}}}`} {
					io.WriteString(w, `data: {"jsonrpc":"2.0","id":`+string(call.ID)+`,"result":`+result+"}\n\n")
				}
				if strings.HasSuffix(last, "\n") {
					io.WriteString(w, last)
					return
				}
				io.WriteString(w, "data: "+strings.Replace(last, `"id":"1"`, `"id":`+string(call.ID), 1)+"\n\n")
			}))
			t.Cleanup(far.Close)
			res, rec, err := runCall(t, newA2A(t), rpcCall(far.URL, true))
			if err != nil || res.State != task.Failed || !strings.Contains(res.Reason, "the disk is full") {
				t.Errorf("%+v %v", res, err)
			}
			if got := rec.Shown(); !strings.HasPrefix(got, "half of") {
				t.Errorf("shown %q", got)
			}
			if n := asked.Load(); n > 1 { // one may be the cancellation
				t.Errorf("the agent was asked %d times afterwards", n)
			}
		})
	}
}

// An answer whose state is another word for an end ends the task, and artifacts without an id are said once.
func TestA2A_OtherWordsEndTheTask(t *testing.T) {
	for answer, want := range map[string]string{
		`{"id":"t1","status":{"state":"done"},"artifacts":[{"parts":[{"text":"Hello"}]}]}`:     "completed Hello",
		`{"id":"t1","status":"success","artifacts":{"parts":"Hello"}}`:                         "completed Hello",
		`{"id":"t1","status":{"state":"finished","message":"Hello"}}`:                          "completed Hello",
		`{"id":"t1","status":{"state":"error","message":"because"}}`:                           "failed The agent reports that it failed: because",
		`{"id":"t1","status":{"state":"failed"},"error":{"message":"because"}}`:                "failed The agent reports that it failed: because",
		`{"id":"t1","status":{"state":"dreaming"},"artifacts":[{"parts":[{"text":"Hello"}]}]}`: "completed Hello",
	} {
		url, _ := rpcAgent(t, map[string]string{"SendMessage": answer,
			"GetTask": strings.Replace(answer, "dreaming", "completed", 1)})
		res, rec, err := runCall(t, newA2A(t), rpcCall(url, false))
		got := string(res.State) + " " + rec.Shown() + res.Reason
		if err != nil || got != want {
			t.Errorf("%s: %q %v", answer, got, err)
		}
	}
}

// Data and a text that repeats it are said once, whatever its spaces, and never replaced.
func TestA2A_DataIsSaidOnce(t *testing.T) {
	data, text := `{"kind":"data","data":{"temp": 21, "unit": "C"}}`, `{"kind":"text","text":"{ \"unit\": \"C\",\n \"temp\": 21 }"}`
	const want = `{"temp":21,"unit":"C"}`
	for _, parts := range []string{data, data + "," + text, text + "," + data, data + "," + text + "," + data} {
		status := `{"state":"completed","message":{"role":"agent","parts":[` + parts + `]}}`
		for name, answer := range map[string]string{
			"message":  `{"kind":"message","role":"agent","parts":[` + parts + `]}`,
			"artifact": `{"kind":"task","id":"t1","status":{"state":"completed"},"artifacts":[{"artifactId":"a","parts":[` + parts + `]}]}`,
			"both":     `{"kind":"task","id":"t1","status":` + status + `,"artifacts":[{"artifactId":"a","parts":[` + parts + `]}]}`,
			"status":   `{"kind":"task","id":"t1","status":` + status + `}`,
		} {
			for _, stream := range []bool{false, true} {
				url, _ := rpcAgent(t, map[string]string{"SendMessage": answer, "SendStreamingMessage": answer})
				res, rec, err := runCall(t, newA2A(t), rpcCall(url, stream))
				if err != nil || rec.Shown() != want || task.PlainText(res.Parts) != want {
					t.Errorf("%s %s stream %v: shown %q, %+v %v", name, parts, stream, rec.Shown(), res, err)
				}
			}
		}
	}
}

func TestA2A_CardPromisedStreams(t *testing.T) {
	url, _ := rpcAgent(t, map[string]string{
		"SendMessage": `{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"no streams here"},{"url":"https://example.com/x"}]}}`,
	})
	res, rec, err := runCall(t, newA2A(t), rpcCall(url, true))
	want := "no streams here\n\n[file https://example.com/x]"
	if err != nil || res.State != task.Completed || task.PlainText(res.Parts) != want || rec.Shown() != want {
		t.Errorf("%+v %v", res, err)
	}
}

func TestA2A_TooManyArtifacts(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"task":{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_WORKING"}}}` + "\n")
	for i := range 9000 {
		fmt.Fprintf(&b, `{"artifactUpdate":{"taskId":"t1","artifact":{"artifactId":"a%d","parts":[{"text":"x"}]}}}`+"\n", i)
	}
	url, _ := rpcAgent(t, map[string]string{"SendStreamingMessage": b.String(), "CancelTask": `{"id":"t1","status":{"state":"canceled"}}`})
	res, rec, err := runCall(t, newA2A(t), rpcCall(url, true))
	if err != nil || res.State != task.Failed || !strings.Contains(res.Reason, "more than 100 artifacts") {
		t.Errorf("%+v %v", res, err)
	}
	if rec.Shown() != task.PlainText(res.Parts) {
		t.Error("what was shown is not what was kept")
	}
}

// Each update walks through all parts, so an agent that sends very many of them is stopped.
func TestA2A_ManyPartsAreStopped(t *testing.T) {
	stream := `{"task":{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_WORKING"}}}` + "\n"
	parts := strings.Repeat(`{"data":1},`, 99) + `{"data":1}`
	for i := range 12 {
		stream += fmt.Sprintf(`{"artifactUpdate":{"taskId":"t1","append":true,"artifact":{"artifactId":"a%d","parts":[%s]}}}`, i%6, parts) + "\n"
	}
	stream += `{"statusUpdate":{"taskId":"t1","contextId":"c1","status":{"state":"TASK_STATE_COMPLETED"}}}` + "\n"
	url, _ := rpcAgent(t, map[string]string{"SendStreamingMessage": stream, "CancelTask": `{"id":"t1","status":{"state":"canceled"}}`})
	res, _, err := runCall(t, newA2A(t), rpcCall(url, true))
	if err != nil || res.State != task.Failed || !strings.Contains(res.Reason, "more than 1000 parts") {
		t.Errorf("%v %q %v", res.State, res.Reason, err)
	}
}

func TestA2A_LongAnswerIsCut(t *testing.T) {
	piece := strings.Repeat("ü", 50_000)
	stream := `{"task":{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_WORKING"}}}` + "\n"
	for range 10 {
		stream += `{"artifactUpdate":{"taskId":"t1","append":true,"artifact":{"artifactId":"a","parts":[{"text":"` + piece + `"}]}}}` + "\n"
	}
	url, _ := rpcAgent(t, map[string]string{"SendStreamingMessage": stream, "CancelTask": `{"id":"t1","status":{"state":"canceled"}}`})
	res, rec, err := runCall(t, newA2A(t), rpcCall(url, true))
	text := task.PlainText(res.Parts)
	if err != nil || res.State != task.Failed || res.Reason != "The answer is longer than 256 KiB and was cut." {
		t.Errorf("%v %q %v", res.State, res.Reason, err)
	}
	if len(text) > maxText || len(text) < maxText-2 || rec.Shown() != text || strings.Trim(text, "ü") != "" {
		t.Errorf("%d bytes kept, %d shown", len(text), len(rec.Shown()))
	}
}

func TestA2A_SaysWhatIsWrong(t *testing.T) {
	deny := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer deny.Close()
	gone := "http://" + agenttest.Refusing(t)
	url, _ := rpcAgent(t, nil)
	for _, tt := range []struct{ endpoint, config, want string }{
		{deny.URL, `{}`, "The agent did not answer as it should: the agent asks for credentials."},
		{gone, `{}`, "The agent could not be reached: connection refused."},
		{url, `{}`, "The agent did not answer as it should: the agent answered with an error: no such method."},
		{"http://10.0.0.1/", `{}`, "The agent could not be reached: refused to connect to a private address."},
	} {
		call := rpcCall(tt.endpoint, false)
		call.Agent.Config = json.RawMessage(tt.config)
		res, _, err := runCall(t, newA2A(t), call)
		if err != nil || res.State != task.Failed || res.Reason != tt.want {
			t.Errorf("%s: %+v %v", tt.endpoint, res, err)
		}
	}
	for _, config := range []string{`{"binding":"GRPC"}`, `{"version":"9"}`, `{"auth_header":"Host"}`, `nonsense`} {
		call := rpcCall(url, false)
		call.Agent.Config = json.RawMessage(config)
		if _, _, err := runCall(t, newA2A(t), call); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: %v", config, err)
		}
	}
}

func TestA2A_CredentialStaysAtItsOrigin(t *testing.T) {
	var leaked atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { leaked.Store(true) }))
	defer other.Close()
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}))
	defer front.Close()
	for i, rt := range []http.RoundTripper{transport(t), http.DefaultTransport} {
		call := rpcCall(front.URL, false)
		call.Agent.Secret = "canary"
		d := NewA2A(rt, Config{})
		res, _, err := runCall(t, d, call)
		d.Close()
		if err != nil || res.State != task.Failed || i == 0 && !strings.Contains(res.Reason, "redirects are not followed, so nothing was done") {
			t.Errorf("%+v %v", res, err)
		}
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	if leaked.Load() {
		t.Error("the redirect was followed")
	}
}

func TestA2A_StopsWhatItGaveUpBeforeItAsksAgain(t *testing.T) {
	var back atomic.Bool
	canceled := make(chan string, 9)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Method string
			Params struct{ ID string }
		}
		json.NewDecoder(r.Body).Decode(&req)
		switch {
		case req.Method == "SendMessage" && !back.Load():
			io.WriteString(w, `{"jsonrpc":"2.0","id":"1","result":{"task":{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_WORKING"}}}}`)
		case !back.Load():
			http.Error(w, "gone", http.StatusBadGateway)
		case req.Method == "CancelTask":
			canceled <- req.Params.ID
			io.WriteString(w, `{"jsonrpc":"2.0","id":"1","result":{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_CANCELED"}}}`)
		default:
			io.WriteString(w, `{"jsonrpc":"2.0","id":"1","result":{"task":{"id":"t2","contextId":"c1","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"artifactId":"a","parts":[{"text":"here again"}]}]}}}`)
		}
	}))
	t.Cleanup(s.Close)
	d := newA2A(t)
	d.cfg.Lost, d.cfg.PollMin = 1, time.Millisecond
	res, rec, err := runCall(t, d, rpcCall(s.URL, false))
	if err != nil || res.State != task.Failed || !strings.Contains(res.Reason, "Contact with the agent was lost") {
		t.Fatalf("%+v %v", res, err)
	}
	if list := rec.Statuses(); len(list) == 0 || !strings.HasPrefix(list[len(list)-1], "No contact with the agent now") {
		t.Errorf("who waits is told %q", list)
	}
	d.Close() // what told the agent to stop has been in vain
	back.Store(true)
	d = newA2A(t)
	next := rpcCall(s.URL, false)
	next.Previous = rec.LastCheckpoint()
	if res, _, err = runCall(t, d, next); err != nil || task.PlainText(res.Parts) != "here again" {
		t.Fatalf("%+v %v", res, err)
	}
	select {
	case id := <-canceled:
		if id != "t1" {
			t.Errorf("it stopped %s", id)
		}
	case <-time.After(time.Minute):
		t.Error("what was given up goes on there")
	}
}
