package a2a

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"agentsite/internal/task"
)

// describe returns the state, texts and other parts of an event in one line.
func describe(ev Event) string {
	var out []string
	add := func(parts []task.Part) {
		for _, p := range parts {
			out = append(out, task.PlainText([]task.Part{p}))
		}
	}
	switch {
	case ev.Task != nil:
		out = append(out, "task", string(ev.Task.Status.State))
		for _, a := range ev.Task.Artifacts {
			add(a.Parts)
		}
		if m := ev.Task.Status.Message; m != nil {
			out = append(out, "|")
			add(m.Parts)
		}
		for _, m := range ev.Task.History {
			out = append(out, fmt.Sprint("history ", m.FromAgent))
			add(m.Parts)
		}
	case ev.Message != nil:
		out = append(out, "message")
		add(ev.Message.Parts)
	case ev.Status != nil:
		out = append(out, "status", string(ev.Status.Status.State))
		if m := ev.Status.Status.Message; m != nil {
			add(m.Parts)
		}
	case ev.Artifact != nil:
		out = append(out, "artifact", ev.Artifact.Artifact.ID)
		add(ev.Artifact.Artifact.Parts)
	}
	return strings.Join(out, " ")
}

var writtenOtherwise = map[string]string{
	// parts
	`{"kind":"message","parts":"Hello"}`:                                                   "message Hello",
	`{"kind":"message","parts":{"kind":"text","text":"Hello"}}`:                            "message Hello",
	`{"kind":"message","parts":{"0":{"text":"a"},"2":{"text":"b"}}}`:                       "message a b",
	`{"kind":"message","parts":["Hello"]}`:                                                 "message Hello",
	`{"kind":"message","parts":["a",null,{"text":"b"},7,[]]}`:                              "message a b",
	`{"kind":"message","parts":[{"root":{"kind":"text","text":"Hello"}}]}`:                 "message Hello",
	`{"root":{"kind":"message","parts":[{"root":{"kind":"text","text":"Hello"}}]}}`:        "message Hello",
	`{"kind":"message","parts":[{"kind":"text","text":7}]}`:                                "message 7",
	`{"kind":"message","parts":[{"kind":"text","text":["a","b"]}]}`:                        "message a\nb",
	`{"kind":"message","parts":[{"kind":"text","text":{"value":"a"}}]}`:                    "message a",
	`{"kind":"message","parts":[{"type":"text","content":"a"}]}`:                           "message a",
	`{"kind":"message","parts":[{"kind":"text","text":"a","data":null}]}`:                  "message a",
	`{"kind":"message","parts":[{"text":"a"},{"kind":"data","data":null}]}`:                "message a",
	`{"kind":"message","parts":[{"kind":"data","data":{ "a":  "<b> & c", "z":[1,  2] }}]}`: `message {"a":"<b> & c","z":[1,2]}`,
	`{"kind":"message","parts":[{"file":"https://a.example/x"}]}`:                          "message [file https://a.example/x]",
	`{"kind":"message","parts":[{"file":"aGk=","file_name":"x"}]}`:                         "message [file x]",
	`{"kind":"message","parts":[{"file":{"file_with_bytes":"aGk=","name":"x"}}]}`:          "message [file x]",
	`{"kind":"message","content":"Hello"}`:                                                 "message Hello",
	`{"kind":"message","text":"Hello"}`:                                                    "message ",
	`{"message":"Hello"}`:                                                                  "message Hello",
	`{"message":["a",{"text":"b"}]}`:                                                       "message a b",
	`{"message":{"text":"Hello"}}`:                                                         "message Hello",
	`[{"kind":"message","parts":[{"text":"a"}]}]`:                                          "message a",
	"\xef\xbb\xbf" + `{"kind":"message","parts":[{"text":"a"}]}`:                           "message a",
	// tasks
	`{"id":"t","status":"completed"}`:                                                                     "task completed",
	`{"id":"t","status":{"state":"completed","message":"Hello"}}`:                                         "task completed | Hello",
	`{"id":"t","status":{"state":"completed","text":"Hello"}}`:                                            "task completed | Hello",
	`{"id":"t","status":{"state":"failed","message":"because"}}`:                                          "task failed | because",
	`{"id":"t","status":{"state":"failed","error":{"message":"because"}}}`:                                "task failed | because",
	`{"id":"t","status":{"state":"failed"},"error":"because"}`:                                            "task failed | because",
	`{"id":"t","status":{"state":"failed"},"error":null}`:                                                 "task failed",
	`{"id":"t","status":{"state":"working"},"message":"a note"}`:                                          "task working",
	`{"id":7,"status":{"state":"completed"},"artifacts":{"artifactId":"a","parts":[{"text":"x"}]}}`:       "task completed x",
	`{"id":"t","status":{"state":"completed"},"artifacts":[{"id":"a","parts":"x"},null,"y"]}`:             "task completed x y",
	`{"id":"t","status":{"state":"completed"},"artifacts":"x"}`:                                           "task completed x",
	`{"id":"t","status":{"state":"completed"},"artifacts":[],"history":{}}`:                               "task completed",
	`{"id":"t","context_id":"c","status":{"state":"completed"},"history":[{"role":"agent","parts":"x"}]}`: "task completed history true x",
	`{"task":{"id":"t","status":"done"}}`:                                                                 "task completed",
	// updates
	`{"status_update":{"task_id":"t","status":{"state":"finished","message":"x"}}}`:                                       "status completed x",
	`{"kind":"status-update","taskId":"t","status":"failed"}`:                                                             "status failed",
	`{"artifact_update":{"task_id":"t","artifact":{"artifact_id":"a","parts":"x"}}}`:                                      "artifact a x",
	`{"kind":"artifact-update","taskId":"t","artifact":["x"]}`:                                                            "artifact  x",
	`{"kind":"artifact-update","taskId":"t","artifact":{"artifactId":"a","parts":[{"root":{"kind":"text","text":"x"}}]}}`: "artifact a x",
}

func TestDecode_ReadsWhatIsWrittenOtherwise(t *testing.T) {
	for in, want := range writtenOtherwise {
		ev, err := decoder{}.decodeEvent([]byte(in))
		if got := describe(ev); err != nil || strings.TrimSpace(got) != strings.TrimSpace(want) {
			t.Errorf("%s: %q %v", in, got, err)
		}
	}
}

func TestDecode_IsStrictWithOtherPortals(t *testing.T) {
	for in, want := range map[string]string{
		`{"kind":"message","parts":"Hello"}`:                         "message",
		`{"kind":"message","parts":["Hello",{"text":"b"}]}`:          "message b",
		`{"id":"t","status":{"state":"done","message":"Hello"}}`:     "task ",
		`{"id":"t","status":"completed"}`:                            "",
		`{"message":"Hello"}`:                                        "",
		"\xef\xbb\xbf" + `{"kind":"message","parts":[{"text":"a"}]}`: "",
	} {
		ev, _ := decoder{strict: true}.decodeEvent([]byte(in))
		if got := describe(ev); got != want {
			t.Errorf("%s: %q", in, got)
		}
	}
}

func TestStateOf(t *testing.T) {
	for in, want := range map[string]task.State{
		"done": task.Completed, "success": task.Completed, "SUCCEEDED": task.Completed, "Finished": task.Completed, "complete": task.Completed,
		"ok": task.Completed, "TASK_STATE_COMPLETED": task.Completed, "3": task.Completed, "completed successfully": task.Completed,
		"error": task.Failed, "errored": task.Failed, "failure": task.Failed, "timeout": task.Failed, "TIMED_OUT": task.Failed, "4": task.Failed,
		"completed with errors": task.Failed, "incomplete": task.Working, "in_progress": task.Working, "in-progress": task.Working,
		"running": task.Working, "processing": task.Working, "not_finished": task.Working, "2": task.Working,
		"aborted": task.Canceled, "cancelled": task.Canceled, "stopped": task.Canceled, "denied": task.Rejected, "refused": task.Rejected,
		"queued": task.Submitted, "pending": task.Submitted, "requires_input": task.InputRequired, "unauthorized": task.AuthRequired,
		"": "", "dreaming": "", "9": "", "0": "",
	} {
		if got := stateOf(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// An answer in the form of the schema is not changed by mending, whatever it says.
func TestMend_KeepsWhatIsRight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(1, 20, -1).Draw(t, "text")
		state := rapid.SampledFrom([]task.State{task.Working, task.Completed, task.Failed, task.InputRequired}).Draw(t, "state")
		parts := []task.Part{{Text: text}, {Data: json.RawMessage(`{"text":null,"parts":"x"}`)}, {URL: "https://a.example/x"}}
		version := rapid.SampledFrom([]string{Version10, Version03}).Draw(t, "version")
		ev := Event{Task: &Task{ID: "t", ContextID: "c", Status: Status{State: state, Message: &Message{ID: "m", FromAgent: true, Parts: parts}},
			Artifacts: []task.Artifact{{ID: "a", Parts: parts}}, History: []Message{{ID: "h", Parts: parts}}}}
		b, err := json.Marshal(Writer{version}.Event(ev))
		if err != nil {
			t.Fatal(err)
		}
		strict, err1 := decoder{strict: true}.decodeEvent(b)
		loose, err2 := decoder{}.decodeEvent(b)
		if err1 != nil || err2 != nil || describe(strict) != describe(loose) {
			t.Fatalf("%s: %q %v, %q %v", b, describe(strict), err1, describe(loose), err2)
		}
	})
}

func TestSend_ReadsEnvelopesOfEachForm(t *testing.T) {
	const hello = `{"kind":"message","parts":[{"kind":"text","text":"Hello"}]}`
	for in, want := range map[string]string{
		`{"jsonrpc":"2.0","id":"1","result":` + hello + `}`:                                                         "message Hello",
		"\xef\xbb\xbf" + `{"jsonrpc":"2.0","id":"1","result":` + hello + `}`:                                        "message Hello",
		`{"jsonrpc":2.0,"id":1,"error":[],"result":` + hello + `}`:                                                  "message Hello",
		`{"jsonrpc":"2.0","error":{"code":0,"message":"success"},"result":` + hello + `}`:                           "message Hello",
		`[{"jsonrpc":"2.0","id":"1","result":` + hello + `}]`:                                                       "message Hello",
		`{"jsonrpc":"2.0","id":"1","result":"Hello"}`:                                                               "message Hello",
		"data: " + `{"jsonrpc":"2.0","id":"1","result":` + hello + "}\n\n":                                          "message Hello",
		": x\n\nevent: message\r\ndata: " + `{"jsonrpc":"2.0","result":` + hello + "}\r\n\r\n":                      "message Hello",
		`{"jsonrpc":"2.0","id":"1","error":"because"}`:                                                              "because",
		`{"jsonrpc":"2.0","id":"1","error":{"code":-32603,"message":"Internal error","data":"because"}}`:            "because",
		`{"jsonrpc":"2.0","id":"1","error":{"code":-32603,"message":"Internal error","data":{"reason":"because"}}}`: "because",
		`{"jsonrpc":"2.0","id":"1","error":{"code":"-32603","message":{"text":"because"}}}`:                         "because",
		`{"jsonrpc":"2.0","id":"1","error":["because"]}`:                                                            "because",
		`{"error":"because"}`:                           "because",
		`{"detail":"because"}`:                          "because",
		`{"detail":[{"loc":["body"],"msg":"because"}]}`: "because",
		`data: {"detail":"because"}` + "\n\n":           "because",
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, in) }))
		c := dial(t, Endpoint{URL: s.URL})
		ev, err := c.Send(t.Context(), Message{ID: "m"}, true)
		got := describe(ev)
		if err != nil {
			got = Reason(err)
		}
		if got != want && (err == nil || !strings.Contains(got, want)) {
			t.Errorf("%s: %q", in, got)
		}
		last := ""
		for ev, err := range c.Stream(t.Context(), Message{ID: "m"}) {
			if last = describe(ev); err != nil {
				last = Reason(err)
			}
		}
		if last != want && !strings.Contains(last, want) && !strings.Contains(in, `"result":"Hello"`) {
			t.Errorf("stream of %s: %q", in, last)
		}
		s.Close()
	}
}

// Each form in which servers write an error after the first events is the agent's own error.
func TestStream_FindsErrors(t *testing.T) {
	first := `data: {"jsonrpc":"2.0","result":{"kind":"status-update","taskId":"t","status":{"state":"working"}}}` + "\n\n"
	for _, binding := range []string{BindingRPC, BindingREST} {
		if binding == BindingREST {
			first = `data: {"statusUpdate":{"taskId":"t","status":{"state":"working"}}}` + "\n\n"
		}
		for _, last := range lateErrors {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				io.WriteString(w, first+last)
			}))
			n := 0
			var err error
			for _, e := range dial(t, Endpoint{URL: s.URL, Binding: binding}).Stream(t.Context(), Message{ID: "m"}) {
				n, err = n+1, e
			}
			if e, ok := errors.AsType[*Error](err); n != 2 || !ok || e.Fault != FaultRefused || !strings.Contains(e.Text, "because") {
				t.Errorf("%s %q: %d events, %v", binding, last, n, err)
			}
			s.Close()
		}
	}
}

var lateErrors = []string{
	"event: error\ndata: because\n\n", "event: error\ndata: {\"error\":\"because\"}\n\n", "data: {\"error\":\"because\"}\n\n",
	"data: {\"detail\":\"because\"}\n\n", "data: because\n\n", "error: because\n\n", "error: {\"message\":\"because\"}\n\n",
	"data: {\"error\":{\"message\":\"because\"}}\n\n", "data: {\"errors\":[{\"message\":\"because\"}]}\n\n",
	"data: {\"code\":500,\"message\":\"because\"}\n\n", "data: {\"type\":\"error\",\"message\":\"because\"}\n\n",
	"data: {\"status\":\"error\",\"message\":\"because\"}\n\n", "{\"error\":\"because\"}\n", "because\n",
	"event: failed\ndata: {\"reason\":\"because\"}\n\n", "data: [{\"error\":\"because\"}]\n\n", "event:error\rdata:because\r\r",
	"data: ping\n\nevent: status\ndata: thinking\n\ndata: because\n\n",
}

func TestStream_PassesOverWhatIsNoEvent(t *testing.T) {
	hello := `{"jsonrpc":"2.0","result":{"kind":"message","parts":[{"kind":"text","text":"Hello"}]}}`
	for _, in := range []string{
		"data: ping\n\ndata: " + hello + "\n\n", "event: ping\ndata: {}\n\ndata: " + hello + "\n\n", hello, "\n\n" + hello + "\n<!-- x -->",
		"data: " + hello + "\n\ndata: [DONE]\n\n", "data: " + hello + "\ndata: [DONE]\n", "data: " + hello + "\r\rdata: DONE\r\r",
		"data: " + hello + "\n\n<html><title>504</title>", "[" + hello + "]", "\xef\xbb\xbfdata: " + hello + "\n\n",
		`data: {"kind":"message","parts":[{"kind":"text","text":"Hello"}]}` + "\n\n",
	} {
		for _, media := range []string{"text/event-stream", "application/json", "text/plain"} {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", media)
				io.WriteString(w, in)
			}))
			got := ""
			for ev, err := range dial(t, Endpoint{URL: s.URL}).Stream(t.Context(), Message{ID: "m"}) {
				got += describe(ev)
				if err != nil {
					got += err.Error()
				}
			}
			if got != "message Hello" {
				t.Errorf("%s %q: %q", media, in, got)
			}
			s.Close()
		}
	}
}
