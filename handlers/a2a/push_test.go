package a2a_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// told is one request to a receiver.
type told struct {
	header http.Header
	body   string
	path   string
}

// state is that of the task or update that a body holds, in either version.
func (r told) state() string {
	var b struct {
		Status       struct{ State string }
		StatusUpdate struct{ Status struct{ State string } }
	}
	if err := json.Unmarshal([]byte(r.body), &b); err != nil {
		return err.Error()
	}
	return b.Status.State + b.StatusUpdate.Status.State
}

// receiver is where push notifications go.
func receiver(t *testing.T) (address string, got <-chan told) {
	t.Helper()
	out := make(chan told, 100)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		out <- told{r.Header, string(b), r.URL.Path}
	}))
	t.Cleanup(s.Close)
	return s.URL, out
}

// until reads what is told until the state, or until nothing comes for long.
func until(t *testing.T, got <-chan told, state string) (list []told) {
	t.Helper()
	for {
		select {
		case r := <-got:
			if list = append(list, r); r.state() == state {
				return list
			}
		case <-time.After(time.Minute):
			t.Fatalf("nothing more comes after %+v", list)
		}
	}
}

func TestPush_SDKCreatesAndIsTold(t *testing.T) {
	t.Parallel()
	address, got := receiver(t)
	model := agenttest.NewOpenAIServer(t)
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	slow := ada.Agent("public", model.Base(agenttest.Hang))
	for _, binding := range bindings {
		c := client(t, p, ada.NewToken(), "/agents/calc", binding)
		req := userSays("6*7")
		req.Config = &sdk.SendMessageConfig{ReturnImmediately: true, PushConfig: &sdk.PushConfig{ID: "mine", URL: address + "/one", Token: "tok-en",
			Auth: &sdk.PushAuthInfo{Scheme: "Bearer", Credentials: p.Canary("s3cret-" + binding[:1])}}}
		res, err := c.SendMessage(t.Context(), req)
		if err != nil {
			t.Fatal(binding, err)
		}
		k := res.(*sdk.Task)
		list := until(t, got, "TASK_STATE_COMPLETED")
		ids := map[string]bool{}
		for _, r := range list {
			if r.header.Get("Content-Type") != "application/a2a+json" || r.header.Get("Authorization") != "Bearer s3cret-"+binding[:1] ||
				r.header.Get("X-A2A-Notification-Token") != "tok-en" || r.header.Get("A2A-Version") != "1.0" || r.path != "/one" || ids[r.header.Get("Webhook-Id")] {
				t.Errorf("%s: %+v", binding, r)
			}
			ids[r.header.Get("Webhook-Id")] = true
			// The SDK reads it as an event of a stream.
			var e sdk.StreamResponse
			if err := json.Unmarshal([]byte(r.body), &e); err != nil || e.Event.TaskInfo().TaskID != k.ID {
				t.Errorf("%s: %v in %s", binding, err, r.body)
			}
		}
		if n := len(list); n < 2 || !strings.Contains(list[n-2].body, `"artifactUpdate"`) || !strings.Contains(list[n-2].body, "42") {
			t.Errorf("%s: the answer is not told before the end: %+v", binding, list)
		}

		made, err := c.CreateTaskPushConfig(t.Context(), &sdk.PushConfig{TaskID: k.ID, URL: address + "/late", Token: "x", Auth: &sdk.PushAuthInfo{Scheme: "Basic", Credentials: "y"}})
		if err != nil || made.ID == "" || made.URL != address+"/late" || made.Token != "" || made.Auth.Credentials != "" || made.Auth.Scheme != "Basic" {
			t.Fatalf("%s: %+v %v", binding, made, err)
		}
		if late := until(t, got, "TASK_STATE_COMPLETED"); late[0].path != "/late" {
			t.Errorf("%s: who asks late is not told how it ended: %+v", binding, late)
		}
		one, err := c.GetTaskPushConfig(t.Context(), &sdk.GetTaskPushConfigRequest{TaskID: k.ID, ID: "mine"})
		if err != nil || one.ID != "mine" || one.TaskID != k.ID || one.Token != "" || one.Auth.Credentials != "" {
			t.Errorf("%s: %+v %v", binding, one, err)
		}
		all, err := c.ListTaskPushConfigs(t.Context(), &sdk.ListTaskPushConfigRequest{TaskID: k.ID})
		if err != nil || len(all) != 2 {
			t.Errorf("%s: %+v %v", binding, all, err)
		}
		for range 2 { // the second time it is gone already
			if err := c.DeleteTaskPushConfig(t.Context(), &sdk.DeleteTaskPushConfigRequest{TaskID: k.ID, ID: "mine"}); err != nil {
				t.Errorf("%s: %v", binding, err)
			}
		}
		if _, err := c.GetTaskPushConfig(t.Context(), &sdk.GetTaskPushConfigRequest{TaskID: k.ID, ID: "mine"}); !errors.Is(err, sdk.ErrTaskNotFound) {
			t.Errorf("%s: %v", binding, err)
		}
		bob := client(t, p, p.User(t, "bob-"+strings.ToLower(binding[:1])).NewToken(), "/agents/calc", binding)
		if _, err := bob.ListTaskPushConfigs(t.Context(), &sdk.ListTaskPushConfigRequest{TaskID: k.ID}); !errors.Is(err, sdk.ErrTaskNotFound) {
			t.Errorf("%s: somebody else's: %v", binding, err)
		}

		// Of one that works it is told that it does, and that it was stopped.
		s := client(t, p, ada.NewToken(), "/agents/"+slow, binding)
		req = userSays("hello")
		req.Config = &sdk.SendMessageConfig{ReturnImmediately: true, PushConfig: &sdk.PushConfig{URL: address + "/two"}}
		if res, err = s.SendMessage(t.Context(), req); err != nil {
			t.Fatal(binding, err)
		}
		until(t, got, "TASK_STATE_WORKING")
		if _, err := s.CancelTask(t.Context(), &sdk.CancelTaskRequest{ID: res.(*sdk.Task).ID}); err != nil {
			t.Fatal(err)
		}
		until(t, got, "TASK_STATE_CANCELED")
	}
}

func TestPush_03IsToldTheWholeTask(t *testing.T) {
	t.Parallel()
	address, got := receiver(t)
	p := apptest.Start(t)
	c := p.Guest(t) // visitors, too
	a := rpc(c, calc, "message/send", `{"message":{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"text","text":"6*7"}]},
		"configuration":{"blocking":true,"pushNotificationConfig":{"id":"c","url":"`+address+`","token":"t","authentication":{"schemes":["Bearer"],"credentials":"x"}}}}`)
	k := a.task(t)
	list := until(t, got, "completed")
	last := list[len(list)-1]
	if !strings.Contains(last.body, `"kind":"task"`) || !strings.Contains(last.body, `"artifacts"`) || !strings.Contains(last.body, "42") || last.header.Get("A2A-Version") != "0.3" || last.header.Get("Authorization") != "Bearer x" || last.header.Get("Content-Type") != "application/json" {
		t.Errorf("%+v", last)
	}
	for method, is := range map[string]struct{ params, want string }{
		"tasks/pushNotificationConfig/set": {`{"taskId":"` + k.ID + `","pushNotificationConfig":{"id":"d","url":"` + address + `"}}`, `{"pushNotificationConfig":{"id":"d","url":"` + address + `"},"taskId":"` + k.ID + `"}`},
		"tasks/pushNotificationConfig/get": {`{"id":"` + k.ID + `","pushNotificationConfigId":"c"}`, `{"pushNotificationConfig":{"authentication":{"schemes":["Bearer"]},"id":"c","url":"` + address + `"},"taskId":"` + k.ID + `"}`},
	} {
		if got := rpc(c, calc, method, is.params); string(got.Result) != is.want {
			t.Errorf("%s: %s %+v", method, got.Result, got.Error)
		}
	}
	until(t, got, "completed") // of d
	if a := rpc(c, calc, "tasks/pushNotificationConfig/list", `{"id":"`+k.ID+`"}`); strings.Count(string(a.Result), `"taskId"`) != 2 || a.Result[0] != '[' {
		t.Errorf("%s %+v", a.Result, a.Error)
	}
	if got := c.Do(http.MethodPost, calc, `{"jsonrpc":"2.0","id":1,"method":"tasks/pushNotificationConfig/delete","params":{"id":"`+k.ID+`","pushNotificationConfigId":"c"}}`); !strings.Contains(got.Body, `"result":null`) {
		t.Error(got.Body)
	}
}

func TestPush_IsBoundedAndRefusesWhatItMayNotCall(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	c := p.User(t, "ada").NewToken()
	k := rpc(c, calc, "SendMessage", say("m", "1+1", "")).task(t)
	set := func(config string) rpcAnswer {
		return rpc(c, calc, "CreateTaskPushNotificationConfig", `{"taskId":"`+k.ID+`",`+config+`}`)
	}
	for _, bad := range []string{
		`"url":"http://169.254.169.254/latest/meta-data"`, `"url":"http://10.0.0.1/"`, `"url":"http://[::ffff:10.0.0.1]/"`, `"url":"http://2130706433/"`, `"url":"http://127.1/"`,
		`"url":"file:///etc/passwd"`, `"url":"gopher://example.org"`, `"url":"https://user:pass@example.org"`, `"url":"https://example.org:25"`, `"url":""`, `"url":5`,
		`"url":"https://example.org","token":"a\r\nX-Evil: 1"`, `"url":"https://example.org","authentication":{"scheme":"Bearer x\n","credentials":"y"}`,
		`"url":"https://example.org","authentication":{"credentials":"y"}`, `"url":"https://example.org","id":"` + strings.Repeat("x", 300) + `"`,
	} {
		if a := set(bad); a.code() != -32602 || a.Error.Message == "" {
			t.Errorf("%s: %s %+v", bad, a.Result, a.Error)
		}
	}
	for i := range 10 {
		if a := set(`"id":"` + string(rune('a'+i)) + `","url":"https://example.org"`); a.code() != 0 {
			t.Fatalf("%+v", a.Error)
		}
	}
	if a := set(`"id":"z","url":"https://example.org"`); a.code() != -32004 {
		t.Errorf("an eleventh: %s %+v", a.Result, a.Error)
	}
	// One of the same id takes the place of the first. Some clients write names
	// as protobuf does.
	if a := rpc(c, calc, "CreateTaskPushNotificationConfig", `{"task_id":"`+k.ID+`","id":"a","url":"https://example.org/new"}`); a.code() != 0 || !strings.Contains(string(a.Result), "/new") {
		t.Errorf("%s %+v", a.Result, a.Error)
	}
	// A message that is sent again asks once to be told.
	again := strings.TrimSuffix(say("again", "1+1", `,"contextId":"`+k.ContextID+`"`), "}") + `,"configuration":{"taskPushNotificationConfig":{"url":"https://example.org"}}}`
	first, second := rpc(c, calc, "SendMessage", again).task(t), rpc(c, calc, "SendMessage", again).task(t)
	if a := rpc(c, calc, "ListTaskPushNotificationConfigs", `{"taskId":"`+first.ID+`"}`); first.ID != second.ID || strings.Count(string(a.Result), `"url"`) != 1 {
		t.Errorf("%s %+v", a.Result, a.Error)
	}
	// With the conversation its hooks are gone.
	c.Must(http.MethodDelete, "/api/v1/conversations/"+k.ContextID, nil, http.StatusNoContent)
	if a := rpc(c, calc, "ListTaskPushNotificationConfigs", `{"taskId":"`+k.ID+`"}`); a.code() != -32001 {
		t.Errorf("%s %+v", a.Result, a.Error)
	}
}
