package a2a

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"agentsite/internal/task"
)

// TestReadSend_TakesWhatTheSDKSends lets the protocol's own SDK write what is
// read.
func TestReadSend_TakesWhatTheSDKSends(t *testing.T) {
	five := 5
	m := sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart("hello"), sdk.NewRawPart([]byte{0, 1, 0xff}), sdk.NewFileURLPart("https://example.com/f", "text/plain"), sdk.NewDataPart(map[string]any{"a": 1}))
	m.ContextID, m.TaskID, m.Metadata = "c1", "t1", map[string]any{"x": 1}
	b, err := json.Marshal(&sdk.SendMessageRequest{Tenant: "calc", Message: m, Config: &sdk.SendMessageConfig{ReturnImmediately: true, PushConfig: &sdk.PushConfig{ID: "p", URL: "https://example.org/hook", Token: "t", Auth: &sdk.PushAuthInfo{Scheme: "Bearer", Credentials: "c"}}, HistoryLength: &five, AcceptedOutputModes: []string{"text/plain"}}})
	if err != nil {
		t.Fatal(err)
	}
	got, f := ReadSend(b, Version10)
	if f != nil || got.Message.ID != m.ID || got.Message.ContextID != "c1" || got.Message.TaskID != "t1" || !got.Immediate || *got.HistoryLength != 5 ||
		got.Push == nil || *got.Push != (PushConfig{ID: "p", URL: "https://example.org/hook", Token: "t", Scheme: "Bearer", Credentials: "c"}) {
		t.Fatalf("%+v %v", got, f)
	}
	p := got.Message.Parts
	if len(p) != 4 || p[0].Text != "hello" || string(p[1].Raw) != "\x00\x01\xff" || p[2].URL != "https://example.com/f" || p[2].MediaType != "text/plain" || string(p[3].Data) != `{"a":1}` {
		t.Errorf("%+v", p)
	}
	if tenant, f := ReadTenant(b); tenant != "calc" || f != nil {
		t.Errorf("%q %v", tenant, f)
	}
}

func TestReadSend_Takes03(t *testing.T) {
	got, f := ReadSend([]byte(`{"message":{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"text","text":"hi"},
		{"kind":"file","file":{"name":"x.png","mimeType":"image/png","bytes":"AAH/"}},{"kind":"file","file":{"uri":"https://example.com/f"}},{"kind":"data","data":{"a":1}}]},
		"configuration":{"blocking":false,"pushNotificationConfig":{"url":"https://example.org"}}}`), Version03)
	if f != nil || !got.Immediate || got.Push == nil || got.Push.URL != "https://example.org" || len(got.Message.Parts) != 4 || got.Message.Parts[1].Filename != "x.png" || string(got.Message.Parts[1].Raw) != "\x00\x01\xff" || got.Message.Parts[2].URL == "" {
		t.Errorf("%+v %v", got, f)
	}
	// Blocking is what silence means.
	for _, in := range []string{`"parts":{"text":"hi"}`, `"parts":[{"text":"hi"}],"extensions":""`, `"parts":{"text":"hi"},"referenceTaskIds":{}`,
		`"parts":[{"text":"hi"}]},"configuration":{"acceptedOutputModes":"text/plain"`} {
		got, f := ReadSend([]byte(`{"message":{"messageId":"m","role":"ROLE_USER",`+in+`}}`), Version10)
		if f != nil || len(got.Message.Parts) != 1 || got.Message.Parts[0].Text != "hi" {
			t.Errorf("%s: %+v %v", in, got, f)
		}
	}
	for _, in := range []string{`"parts":""`, `"parts":7`, `"parts":{}`, `"parts":[[{"text":"hi"}]]`} {
		if _, f := ReadSend([]byte(`{"message":{"messageId":"m","role":"ROLE_USER",`+in+`}}`), Version10); f == nil {
			t.Errorf("%s passed", in)
		}
	}
	if got, f = ReadSend([]byte(`{"message":{"messageId":"m","role":"user","parts":[{"text":"hi"}]}}`), Version03); f != nil || got.Immediate {
		t.Errorf("%+v %v", got, f)
	}
}

func TestReadList_Bounds(t *testing.T) {
	got, f := ReadList([]byte(`{"status":"TASK_STATE_INPUT_REQUIRED","statusTimestampAfter":"2026-11-22T08:00:00Z","includeArtifacts":true}`))
	if f != nil || got.State != task.InputRequired || got.PageSize != 50 || got.After.IsZero() || !got.Artifacts {
		t.Errorf("%+v %v", got, f)
	}
	for _, b := range []string{`{"pageSize":-1}`, `{"pageSize":1e3}`, `{"status":"completed"}`, `{"status":"TASK_STATE_completed"}`, `{"pageToken":"` + strings.Repeat("x", 300) + `"}`, `{"historyLength":-1}`, `{"contextId":true}`} {
		if _, f := ReadList([]byte(b)); f == nil || f.Code != CodeInvalidParams {
			t.Errorf("%s: %v", b, f)
		}
	}
}

// TestWriter_IsReadByTheSDKAndByUs writes a task in both versions and reads it
// with the protocol's own SDK and with the portal's client.
func TestWriter_IsReadByTheSDKAndByUs(t *testing.T) {
	k := Task{ID: "t1", ContextID: "c1", Status: Status{State: task.InputRequired, At: time.Unix(1, 5e6), Message: &Message{ID: "q", FromAgent: true, Parts: []task.Part{{Text: "Which?"}}}},
		Artifacts: []task.Artifact{{ID: "answer", Name: "Answer", Parts: parts}}, History: []Message{{ID: "m", Parts: []task.Part{{Text: "do"}}}}}
	b, err := json.Marshal(Writer{Version10}.Event(Event{Task: &k}))
	if err != nil {
		t.Fatal(err)
	}
	var sr sdk.StreamResponse
	if err := json.Unmarshal(b, &sr); err != nil {
		t.Fatal(err)
	}
	got := sr.Event.(*sdk.Task)
	if got.ID != "t1" || got.Status.State != sdk.TaskStateInputRequired || got.Status.Timestamp.UnixMilli() != 1005 || got.Status.Message.Parts[0].Text() != "Which?" || len(got.Artifacts[0].Parts) != 4 || got.History[0].Role != sdk.MessageRoleUser {
		t.Errorf("%+v", got)
	}
	for _, v := range []string{Version10, Version03} {
		for _, e := range []Event{{Task: &k}, {Message: &k.History[0]}, {Status: &StatusUpdate{TaskID: "t1", ContextID: "c1", Status: k.Status}}, {Artifact: &ArtifactUpdate{"t1", "c1", k.Artifacts[0], true, true}}} {
			b, err := json.Marshal(Writer{v}.Event(e))
			if err != nil {
				t.Fatal(err)
			}
			ev, err := decoder{}.decodeEvent(b)
			if err != nil {
				t.Errorf("%s: %v in %s", v, err, b)
				continue
			}
			switch {
			case e.Task != nil && (ev.Task == nil || ev.Task.Status.State != task.InputRequired || len(ev.Task.Artifacts[0].Parts) != 4),
				e.Message != nil && (ev.Message == nil || ev.Message.FromAgent || len(ev.Message.Parts) != 1),
				e.Status != nil && (ev.Status == nil || ev.Status.Status.Message == nil || ev.Status.TaskID != "t1"),
				e.Artifact != nil && (ev.Artifact == nil || !ev.Artifact.Append || !ev.Artifact.Last || len(ev.Artifact.Artifact.Parts) != 4):
				t.Errorf("%s: %s became %+v", v, b, ev)
			}
		}
	}
}

func TestRESTRoute_ReadsPaths(t *testing.T) {
	for path, want := range map[string]Route{
		"POST message:send":                        {Method: SendMessage},
		"POST calc/message:stream":                 {Method: StreamMessage, Tenant: "calc"},
		"GET tasks":                                {Method: ListTasks},
		"GET calc/tasks":                           {Method: ListTasks, Tenant: "calc"},
		"GET tasks/x":                              {Method: GetTask, Task: "x"},
		"GET a%2Fb/tasks/x%3Ay":                    {Method: GetTask, Tenant: "a/b", Task: "x:y"},
		"POST tasks/x:cancel":                      {Method: CancelTask, Task: "x"},
		"GET tasks/x:subscribe":                    {Method: SubscribeTask, Task: "x"},
		"POST tasks/tasks/x:subscribe":             {Method: SubscribeTask, Tenant: "tasks", Task: "x"},
		"DELETE tasks/x/pushNotificationConfigs/y": {Method: DeletePush, Task: "x", Config: "y"},
		"GET calc/tasks/x/pushNotificationConfigs": {Method: ListPush, Tenant: "calc", Task: "x"},
		"GET extendedAgentCard":                    {Method: ExtendedCard},
		"PUT tasks/x":                              {Task: "x"},
		"POST tasks/x/pushNotificationConfigs/y":   {Task: "x", Config: "y"},
	} {
		method, p, _ := strings.Cut(path, " ")
		if got, ok := RESTRoute(method, p); !ok || got != want {
			t.Errorf("%s: %+v %v", path, got, ok)
		}
	}
	for _, path := range []string{"", "/", "x", "tasks/", "tasks/x/", "tasks/x:", "tasks/:cancel", "tasks/x:dance", "a/b/tasks", "tasks/x/other", "tasks/%zz", "/tasks", "message:send/x"} {
		if got, ok := RESTRoute("GET", path); ok {
			t.Errorf("%q is %+v", path, got)
		}
	}
}

// FuzzRequests holds whoever sends anything to an answer: what is taken is
// within bounds, and what is not has a code and a text.
func FuzzRequests(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]}}}`,
		`{"jsonrpc":"2.0","id":"a","method":"message/send","params":{"message":{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"file","file":{"bytes":"AA=="}}]}}}`,
		`{"jsonrpc":"2.0","id":null,"method":"ListTasks","params":{"pageSize":3,"statusTimestampAfter":"2026-01-01T00:00:00Z"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x","historyLength":0,"tenant":"calc"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"CreateTaskPushNotificationConfig","params":{"taskId":"x","id":"c","url":"https://example.org","token":"t","authentication":{"scheme":"Bearer","credentials":"s"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tasks/pushNotificationConfig/set","params":{"taskId":"x","pushNotificationConfig":{"url":"https://example.org","authentication":{"schemes":["Bearer"]}}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"DeleteTaskPushNotificationConfig","params":{"task_id":"x","id":"c"}}`,
		`[]`, ``, `{"id":{}}`, `{"message":{"parts":[{"data":null}]}}`,
	} {
		f.Add([]byte(s))
	}
	fine := func(t *testing.T, f *Failure) {
		if f == nil {
			return
		}
		if f.Text == "" || f.HTTP() < 400 || kinds[f.Code].reason == "" {
			t.Errorf("%+v", f)
		}
		for _, v := range []any{f.RPC(), f.REST()} {
			if _, err := json.Marshal(v); err != nil {
				t.Error(err)
			}
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, fail := ReadCall(b)
		fine(t, fail)
		if !json.Valid(c.ID) {
			t.Errorf("id %q", c.ID)
		}
		params := c.Params
		if fail != nil {
			params = b
		}
		for _, v := range []string{Version10, Version03} {
			r, fail := ReadSend(params, v)
			fine(t, fail)
			if fail == nil {
				if r.Message.ID == "" || len(r.Message.ID) > maxID || len(r.Message.Parts) == 0 || len(r.Message.Parts) > maxRequestParts {
					t.Errorf("%+v", r)
				}
				if _, err := json.Marshal(Writer{v}.Event(Event{Message: &r.Message})); err != nil {
					t.Error(err)
				}
			}
		}
		r, fail := ReadTask(params)
		fine(t, fail)
		if fail == nil && (r.ID == "" || len(r.ID) > maxID) {
			t.Errorf("%+v", r)
		}
		l, fail := ReadList(params)
		fine(t, fail)
		if fail == nil && (l.PageSize < 1 || l.PageSize > maxPage) {
			t.Errorf("%+v", l)
		}
		_, fail = ReadTenant(params)
		fine(t, fail)
		for _, v := range []string{Version10, Version03} {
			c, fail := ReadPush(params, v)
			fine(t, fail)
			if fail == nil && (c.TaskID == "" || c.URL == "" || len(c.ID) > maxID) {
				t.Errorf("%+v", c)
			}
			for _, m := range []Method{GetPush, ListPush, DeletePush} {
				r, fail := ReadPushRequest(params, m, v)
				fine(t, fail)
				if fail == nil && (r.TaskID == "" || m == DeletePush && r.ID == "") {
					t.Errorf("%+v", r)
				}
			}
		}
	})
}
