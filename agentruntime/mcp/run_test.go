package mcp

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/task"
	"agentsite/internal/testing/agenttest"
)

func do(t *testing.T, d *Driver, call task.Call) (task.Result, *agenttest.Recorder) {
	t.Helper()
	rec := &agenttest.Recorder{}
	res, err := d.Run(t.Context(), call, rec)
	rec.Over()
	if err != nil {
		t.Fatalf("%v: %v", call.Parts, err)
	}
	for _, f := range rec.Faults() {
		t.Error(f)
	}
	return res, rec
}

func data(s string) task.Part { return task.Part{Data: json.RawMessage(s)} }

func TestRun_UnderstandsWhatIsAsked(t *testing.T) {
	for name, modern := range map[string]bool{"modern": true, "legacy": false} {
		t.Run(name, func(t *testing.T) {
			s, d := workshop(t, modern), newDriver(t)
			for how, config := range map[string]json.RawMessage{"read": workshopConfig(t, s), "unread": nil} {
				for _, tt := range []struct {
					part  task.Part
					state task.State
					want  string // of the text, or the reason where it failed
				}{
					{data(`{"tool":"weather","arguments":{"place":"Bern","days":2}}`), task.Completed, "Sun in Bern for 2 days"},
					{task.TextPart(`weather {"place":"Bern","days":2}`), task.Completed, "Sun in Bern for 2 days"},
					{task.TextPart(`weather{"place":"Bern"}`), task.Completed, "Sun in Bern"},
					{task.TextPart(`weather place=Bern days=3`), task.Completed, "Sun in Bern for 3 days"},
					{task.TextPart(`/weather place="New \"old\" York" days='4'`), task.Completed, `Sun in New "old" York for 4 days`},
					{task.TextPart(`weather Bern at night`), task.Completed, "Sun in Bern at night"},
					{task.TextPart(`weather`), task.InputRequired, "`place`: fill this in"},
					{task.TextPart(`weather place=Bern days=soon`), task.InputRequired, "`days`: write a whole number"},
					{task.TextPart(`weather place=Bern days=9`), task.InputRequired, "`days`: use 7 or less"},
					{task.TextPart(`weather {"place":`), task.InputRequired, "JSON behind the tool's name cannot be read"},
					{data(`{"tool":"weather","arguments":{"days":0}}`), task.Failed, "The tool weather was not called: days: use 1 or more; place: fill this in."},
					{data(`{"tool":"whether"}`), task.Failed, "The server has no tool named whether."},
					{task.TextPart(`add a=1 b=2`), task.Completed, `{"total":3}`},
					{task.TextPart(`how are you?`), task.Completed, "- `weather`: Says what the weather will be. (needs `place`)"},
					{task.TextPart(``), task.Completed, "For example: `weather place=\"New York\"`"},
					{data(`[1]`), task.Completed, "I call tools"},
					{task.TextPart(`draw`), task.Completed, "[file file.png]"},
					{task.TextPart(`fail`), task.Failed, "The tool reports an error: no paper left, key [key]."},
					{task.TextPart(`nothing`), task.Completed, ""},
					{task.TextPart(`slow`), task.Completed, "done"},
					{task.TextPart(`region region=eu`), task.Completed, map[bool]string{true: "region eu", false: "region"}[modern]},
				} {
					call := partsCall(s.Endpoint(agenttest.Echo), config, tt.part)
					call.Agent.Secret = "s3cret"
					res, _ := do(t, d, call)
					got := task.PlainText(res.Parts)
					if tt.state == task.Failed {
						got = res.Reason
					}
					if res.State != tt.state || !strings.Contains(got, tt.want) {
						t.Errorf("%s %+v: %s %q (%s), want %s …%s…", how, tt.part, res.State, got, res.Reason, tt.state, tt.want)
					}
				}
			}
		})
	}
}

func TestRun_TakesResultsApart(t *testing.T) {
	s, d := workshop(t, true), newDriver(t)
	config := workshopConfig(t, s)
	res, rec := do(t, d, textCall(s.Endpoint(agenttest.Echo), config, "links"))
	if len(res.Parts) != 4 || res.Parts[0].Text != "See <b>these</b>" || res.Parts[1].URL != "https://example.org/a.pdf" || res.Parts[1].MediaType != "application/pdf" ||
		res.Parts[2].Text != "evil (javascript:alert(1))" || res.Parts[3].Text != "a note" {
		t.Errorf("%+v", res.Parts)
	}
	arts := rec.Artifacts()
	if len(arts) != 1 || len(arts[0].Parts) != 1 || string(arts[0].Parts[0].Raw) != "\x01\x02\x03" || arts[0].Parts[0].Filename != "y.bin" || arts[0].Parts[0].MediaType != "application/octet-stream" {
		t.Errorf("%+v", arts)
	}
	// Data once, not also as the text that repeats it.
	if res, _ = do(t, d, textCall(s.Endpoint(agenttest.Echo), config, "add a=1 b=2")); len(res.Parts) != 1 || string(res.Parts[0].Data) != `{"total":3}` {
		t.Errorf("%+v", res.Parts)
	}
	res, _ = do(t, d, textCall(s.Endpoint(agenttest.Echo), config, "long"))
	if n := len(task.PlainText(res.Parts)); res.State != task.Completed || n > maxText || n < maxText-4 || !strings.Contains(res.Reason, "ends early") {
		t.Errorf("%s %q %d", res.State, res.Reason, n)
	}
	_, rec = do(t, d, textCall(s.Endpoint(agenttest.Echo), config, "slow"))
	if st := rec.Statuses(); len(st) == 0 || st[0] != "Calling slow" || len(st) > 2 || len(st) == 2 && st[1] != "cutting (25 %)" {
		t.Errorf("%q", st)
	}
}

// TestRun_AsksBack follows a call that lacks an argument to its end.
func TestRun_AsksBack(t *testing.T) {
	s, d := workshop(t, true), newDriver(t)
	config := workshopConfig(t, s)
	for _, reply := range []task.Part{
		task.TextPart("New York"), task.TextPart(`place="New York"`), data(`{"tool":"weather","arguments":{"place":"New York"}}`), task.TextPart(`weather place="New York" days=2`),
	} {
		call := textCall(s.Endpoint(agenttest.Echo), config, "weather days=2")
		res, rec := do(t, d, call)
		if res.State != task.InputRequired || len(res.Parts) != 2 {
			t.Fatalf("%+v", res)
		}
		var form Form
		if err := json.Unmarshal(res.Parts[1].Data, &form); err != nil || form.Tool != "weather" || string(form.Arguments) != `{"days":2}` || form.Wrong["place"] == "" || len(form.Schema) == 0 {
			t.Errorf("%+v %v", form, err)
		}
		if len(s.Calls()) != 0 {
			t.Fatal("the tool was called")
		}
		call.Parts, call.Checkpoint = []task.Part{reply}, rec.LastCheckpoint()
		// Another mistake is asked back too.
		wrong := call
		wrong.Parts = []task.Part{task.TextPart("days=9")}
		if res, _ := do(t, d, wrong); res.State != task.InputRequired || !strings.Contains(res.Reason, "days: use 7 or less") {
			t.Errorf("%+v", res)
		}
		res, _ = do(t, d, call)
		if got := task.PlainText(res.Parts); got != "Sun in New York for 2 days" {
			t.Errorf("%+v: %+v", reply, res)
		}
		s.Forget()
	}
	// Something else altogether begins anew.
	call := textCall(s.Endpoint(agenttest.Echo), config, "weather days=2")
	_, rec := do(t, d, call)
	call.Parts, call.Checkpoint = []task.Part{task.TextPart("add a=1 b=1")}, rec.LastCheckpoint()
	if res, _ := do(t, d, call); task.PlainText(res.Parts) != `{"total":2}` {
		t.Errorf("%+v", res)
	}
}

// TestRun_PassesQuestionsOn answers what a tool asks, in two rounds.
func TestRun_PassesQuestionsOn(t *testing.T) {
	s, d := workshop(t, true), newDriver(t)
	config := workshopConfig(t, s)
	for _, tt := range []struct {
		replies []task.Part
		want    string
	}{
		{[]task.Part{task.TextPart("3"), task.TextPart("name=Ada vip=yes")}, "booked seats=3 name=Ada vip=true"},
		{[]task.Part{task.TextPart("0"), task.TextPart("seats=2"), data(`{"tool":"book","ask":"q","arguments":{"name":"Bob"}}`)}, "booked seats=2 name=Bob vip=<nil>"},
		{[]task.Part{task.TextPart("no")}, "not booked: decline"},
		{[]task.Part{task.TextPart("1"), data(`{"action":"cancel"}`)}, "not booked: cancel"},
	} {
		call := textCall(s.Endpoint(agenttest.Echo), config, "book show=Faust")
		res, rec := do(t, d, call)
		for i, reply := range tt.replies {
			if res.State != task.InputRequired || len(res.Parts) != 2 || len(res.Parts[1].Data) == 0 {
				t.Fatalf("%v: before reply %d: %+v", tt.replies, i, res)
			}
			call.Parts, call.Checkpoint = []task.Part{reply}, rec.LastCheckpoint()
			res, rec = do(t, d, call)
		}
		if got := task.PlainText(res.Parts); res.State != task.Completed || got != tt.want {
			t.Errorf("%v: %s %q %s, want %q", tt.replies, res.State, got, res.Reason, tt.want)
		}
	}
	if res, _ := do(t, d, textCall(s.Endpoint(agenttest.Echo), config, "sample")); res.State != task.Failed || !strings.Contains(res.Reason, "does not offer to servers") {
		t.Errorf("%+v", res)
	}
	// A server of before is told that it cannot ask.
	old := workshop(t, false)
	if res, _ := do(t, d, textCall(old.Endpoint(agenttest.Echo), nil, "book show=Faust")); res.State != task.Failed || !strings.Contains(res.Reason, "elicitation") {
		t.Errorf("%+v", res)
	}
}

// TestRun_CallsOnce shows that an interrupted call is repeated only where the
// server says that it may be.
func TestRun_CallsOnce(t *testing.T) {
	s, d := workshop(t, false), newDriver(t)
	config := workshopConfig(t, s)
	for _, tt := range []struct {
		text   string
		config json.RawMessage
		again  bool
	}{{"weather Bern", config, true}, {"add a=1 b=2", config, false}, {"tidy", config, false}, {"tidy", nil, true}} {
		call := textCall(s.Endpoint(agenttest.Echo), tt.config, tt.text)
		_, rec := do(t, d, call)
		s.Forget()
		call.Attempt, call.Checkpoint = 2, rec.LastCheckpoint()
		res, _ := do(t, d, call)
		if tt.again != (res.State == task.Completed) || tt.again != (len(s.Calls()) == 1) {
			t.Errorf("%s: %+v, %d calls", tt.text, res, len(s.Calls()))
		}
		if !tt.again && !strings.Contains(res.Reason, "Whether it did what was asked is unknown") {
			t.Error(res.Reason)
		}
		// Nothing was sent before the checkpoint: the call is made.
		call.Checkpoint = nil
		if res, _ := do(t, d, call); res.State != task.Completed {
			t.Errorf("%s: %+v", tt.text, res)
		}
	}
	// Where the checkpoint cannot be stored, nothing is sent.
	s.Forget()
	rec := &agenttest.Recorder{OnCheckpoint: func(json.RawMessage) error { return context.DeadlineExceeded }}
	if _, err := d.Run(t.Context(), textCall(s.Endpoint(agenttest.Echo), config, "tidy"), rec); !fault.Is(err, fault.Internal) || len(s.Calls()) != 0 {
		t.Errorf("%v, %d calls", err, len(s.Calls()))
	}
}

func TestRun_KeepsTheSecretWhereItBelongs(t *testing.T) {
	s := workshop(t, true).WithKey("s3cret")
	d := newDriver(t)
	call := textCall(s.Endpoint(agenttest.Echo), nil, "weather Bern")
	if res, _ := do(t, d, call); res.State != task.Failed || res.Reason != "The server asks for credentials. The agent's owner should give or renew them." {
		t.Errorf("%+v", res)
	}
	call.Agent.Secret = "s3cret"
	if res, _ := do(t, d, call); res.State != task.Completed {
		t.Errorf("%+v", res)
	}
	call.Agent.Secret = "wrong"
	if res, _ := do(t, d, call); !strings.Contains(res.Reason, "refused the stored credentials") {
		t.Errorf("%+v", res)
	}
	open := workshop(t, false)
	call = textCall(open.Endpoint(agenttest.Echo), nil, "weather Bern")
	call.Agent.Secret = "s3cret"
	call.Agent.Config, _ = json.Marshal(hub.MCPConfig{AuthHeader: "X-API-Key"})
	do(t, d, call)
	_, headers := open.Methods()
	for _, h := range headers {
		if h.Get("X-API-Key") != "s3cret" || h.Get("Authorization") != "" {
			t.Errorf("%v", h)
		}
	}
}

func TestRun_RefreshesWhatIsStored(t *testing.T) {
	s, d := workshop(t, true), newDriver(t)
	// The stored schema asks for what the tool no longer wants.
	old, _ := json.Marshal(hub.MCPConfig{Version: "2026-07-28", Tools: []hub.Tool{{Name: "weather", InputSchema: json.RawMessage(`{"type":"object","required":["zip"]}`)}}})
	if res, _ := do(t, d, partsCall(s.Endpoint(agenttest.Echo), old, data(`{"tool":"weather","arguments":{"place":"Bern"}}`))); res.State != task.Completed {
		t.Errorf("%+v", res)
	}
	if res, _ := do(t, d, partsCall(s.Endpoint(agenttest.Echo), old, data(`{"tool":"tidy"}`))); res.State != task.Completed {
		t.Errorf("%+v", res)
	}
	if _, err := d.Run(t.Context(), textCall(s.Endpoint(agenttest.Echo), json.RawMessage(`{"tools":7}`), "x"), &agenttest.Recorder{}); !fault.Is(err, fault.Unavailable) {
		t.Error(err)
	}
}
