package equip

import (
	"context"
	"encoding/json"
	"testing"

	"agentsite/internal/task"
	"agentsite/internal/testing/agenttest"
)

// server gives each run one token, and asks the person about a call.
type server struct{ state json.RawMessage }

const token = "agtools_abcdefghijklmnop"

// OpenTools implements task.ToolServer.
func (s *server) OpenTools(ctx context.Context, _ task.Call, out task.ToolSink,
	state json.RawMessage) (task.ToolSession, bool, error) {
	s.state = state
	return session{}, true, out.SaveTools(ctx, json.RawMessage(`{"asked":1}`))
}

type session struct{}

func (session) Access() (url, secret string)   { return "https://portal.example/mcp/tools", token }
func (session) Reply() string                  { return "The person agrees." }
func (session) Question() (text, short string) { return "May I ask calc?", "permission" }
func (session) Close()                         {}

// kept is a sink that keeps the last checkpoint.
type kept struct {
	agenttest.Recorder
	at string
}

// Checkpoint implements task.Sink.
func (k *kept) Checkpoint(_ context.Context, b json.RawMessage) error { k.at = string(b); return nil }

func TestKit_StoresRunAndTools(t *testing.T) {
	var out kept
	var s server
	k := Wrap(&out, json.RawMessage(`{"task":"7","tools":{"asked":0}}`))
	if _, err := k.Open(t.Context(), &s, task.Call{}); err != nil || string(s.state) != `{"asked":0}` {
		t.Fatalf("opened with %s: %v", s.state, err)
	}
	if out.at != `{"task":"7","tools":{"asked":1}}` {
		t.Errorf("stored %s", out.at)
	}
	if err := k.SaveRun(t.Context(), map[string]int{"lease": 2}); err != nil || out.at != `{"lease":2,"tools":{"asked":1}}` {
		t.Errorf("stored %s, %v", out.at, err)
	}
	for _, stored := range []string{"", "null", "[]", "7", "{"} {
		if err := Wrap(&out, json.RawMessage(stored)).SaveTools(t.Context(), json.RawMessage(`1`)); err != nil || out.at != `{"tools":1}` {
			t.Errorf("after %q: %s, %v", stored, out.at, err)
		}
	}
}

func TestKit_HidesTheTokenAndAsksThePerson(t *testing.T) {
	var out kept
	k := Wrap(&out, nil)
	if got := k.HideToken("no token yet"); got != "no token yet" || k.Reply() != "" {
		t.Errorf("without tools: %q, %q", got, k.Reply())
	}
	if _, err := k.Open(t.Context(), &server{}, task.Call{}); err != nil {
		t.Fatal(err)
	}
	parts := []task.Part{{Text: "it is " + token, Data: json.RawMessage(`{"k":"` + token + `"}`)}}
	if got := k.HideParts(parts)[0]; got.Text != "it is [key]" || string(got.Data) != `{"k":"[key]"}` || parts[0].Text != "it is "+token {
		t.Errorf("%+v", got)
	}
	done := task.Result{State: task.Completed, Reason: "as it is"}
	if got := k.AskPermission(done); got.Reason != done.Reason {
		t.Errorf("a result that waits for nothing became %+v", got)
	}
	for _, waits := range []task.State{task.InputRequired, task.AuthRequired} {
		got := k.AskPermission(task.Result{State: waits, Parts: parts})
		if task.PlainText(got.Parts) != "May I ask calc?" || got.Reason != "permission" || got.State != task.InputRequired {
			t.Errorf("%s: %+v", waits, got)
		}
	}
}
