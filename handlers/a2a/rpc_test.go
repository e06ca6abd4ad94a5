package a2a_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"agentsite/internal/ident"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

const calc = "/agents/calc/a2a"

func TestRPC_RefusesInTheProtocolsForm(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	c := p.User(t, "ada").NewToken()
	for name, is := range map[string]struct {
		body string
		code int
		id   any
	}{
		"no JSON":            {`{"jsonrpc":`, -32700, nil},
		"not UTF-8":          {"{\"jsonrpc\":\"\xff\"}", -32700, nil},
		"nothing":            {``, -32700, nil},
		"a batch":            {`[{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x"}}]`, -32600, nil},
		"a number":           {`7`, -32600, nil},
		"no id":              {`{"jsonrpc":"2.0","method":"GetTask","params":{"id":"x"}}`, -32600, nil},
		"an object as id":    {`{"jsonrpc":"2.0","id":{},"method":"GetTask"}`, -32600, nil},
		"another version":    {`{"jsonrpc":"1.0","id":7,"method":"GetTask"}`, -32600, float64(7)},
		"no method":          {`{"jsonrpc":"2.0","id":"a"}`, -32600, "a"},
		"a method of no one": {`{"jsonrpc":"2.0","id":"a","method":"Dance"}`, -32601, "a"},
		"params of a list":   {`{"jsonrpc":"2.0","id":"a","method":"GetTask","params":[1]}`, -32602, "a"},
		"no task":            {`{"jsonrpc":"2.0","id":"a","method":"GetTask","params":{}}`, -32602, "a"},
		"no params":          {`{"jsonrpc":"2.0","id":"a","method":"SendMessage"}`, -32602, "a"},
		"a wrong type":       {`{"jsonrpc":"2.0","id":"a","method":"GetTask","params":{"id":5}}`, -32602, "a"},
		"an unknown task":    {`{"jsonrpc":"2.0","id":"a","method":"GetTask","params":{"id":"nope"}}`, -32001, "a"},
		"a well-formed one":  {`{"jsonrpc":"2.0","id":"a","method":"CancelTask","params":{"id":"` + ident.NewID() + `"}}`, -32001, "a"},
		"no such page":       {`{"jsonrpc":"2.0","id":"a","method":"ListTasks","params":{"pageToken":"?"}}`, -32602, "a"},
		"a page too large":   {`{"jsonrpc":"2.0","id":"a","method":"ListTasks","params":{"pageSize":101}}`, -32602, "a"},
		"a page of nothing":  {`{"jsonrpc":"2.0","id":"a","method":"ListTasks","params":{"pageSize":0}}`, -32602, "a"},
		"no state":           {`{"jsonrpc":"2.0","id":"a","method":"ListTasks","params":{"status":"DONE"}}`, -32602, "a"},
		"no time":            {`{"jsonrpc":"2.0","id":"a","method":"ListTasks","params":{"statusTimestampAfter":"today"}}`, -32602, "a"},
		"a tenant":           {`{"jsonrpc":"2.0","id":"a","method":"ListTasks","params":{"tenant":"guide"}}`, -32602, "a"},
		"push":               {`{"jsonrpc":"2.0","id":"a","method":"ListTaskPushNotificationConfigs","params":{"taskId":"x"}}`, -32001, "a"},
		"push of no task":    {`{"jsonrpc":"2.0","id":"a","method":"CreateTaskPushNotificationConfig","params":{"url":"https://example.org"}}`, -32602, "a"},
		"push nowhere":       {`{"jsonrpc":"2.0","id":"a","method":"SendMessage","params":` + strings.TrimSuffix(say("m", "1+1", ""), "}") + `,"configuration":{"taskPushNotificationConfig":{"url":"ftp://example.org"}}}}`, -32602, "a"},
		"a strange context":  {`{"jsonrpc":"2.0","id":"a","method":"SendMessage","params":` + say("m", "1+1", `,"contextId":"mine"`) + `}`, -32602, "a"},
		"a strange task":     {`{"jsonrpc":"2.0","id":"a","method":"SendMessage","params":` + say("m", "1+1", `,"taskId":"mine"`) + `}`, -32001, "a"},
	} {
		a := raw(c, calc, is.body)
		if a.code() != is.code || a.ID != is.id || a.status != http.StatusOK {
			t.Errorf("%s: %d %v %+v", name, a.status, a.ID, a.Error)
			continue
		}
		if d := a.Error.Data; len(d) != 1 || d[0].Type != "type.googleapis.com/google.rpc.ErrorInfo" || d[0].Reason == "" || d[0].Domain != "a2a-protocol.org" || a.Error.Message == "" {
			t.Errorf("%s: %+v", name, a.Error)
		}
	}
	for name, message := range map[string]string{
		"no id":         `{"role":"ROLE_USER","parts":[{"text":"x"}]}`,
		"no role":       `{"messageId":"m","parts":[{"text":"x"}]}`,
		"another role":  `{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"x"}]}`,
		"no parts":      `{"messageId":"m","role":"ROLE_USER","parts":[]}`,
		"nothing said":  `{"messageId":"m","role":"ROLE_USER","parts":[{"text":" "}]}`,
		"two in one":    `{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x","url":"https://example.org"}]}`,
		"none in one":   `{"messageId":"m","role":"ROLE_USER","parts":[{"mediaType":"text/plain"}]}`,
		"no part":       `{"messageId":"m","role":"ROLE_USER","parts":["x"]}`,
		"no base64":     `{"messageId":"m","role":"ROLE_USER","parts":[{"raw":"ä"}]}`,
		"a local file":  `{"messageId":"m","role":"ROLE_USER","parts":[{"url":"/files/x"}]}`,
		"many parts":    `{"messageId":"m","role":"ROLE_USER","parts":[` + strings.TrimSuffix(strings.Repeat(`{"text":"x"},`, 33), ",") + `]}`,
		"a long id":     `{"messageId":"` + strings.Repeat("m", 300) + `","role":"ROLE_USER","parts":[{"text":"x"}]}`,
		"a list":        `[]`,
		"wrong in part": `{"messageId":"m","role":"ROLE_USER","parts":[{"text":5}]}`,
	} {
		if a := rpc(c, calc, "SendMessage", `{"message":`+message+`}`); a.code() != -32602 {
			t.Errorf("%s: %+v", name, a.Error)
		}
	}
	if a := raw(c, "/agents/nobody/a2a", `{"jsonrpc":"2.0","id":1,"method":"ListTasks"}`); a.status != http.StatusNotFound || a.Error.Data[0].Reason != "NOT_FOUND" {
		t.Errorf("no agent: %d %+v", a.status, a.Error)
	}
	if a := raw(p.Bearer(t, "agsk_wrong"), calc, `{"jsonrpc":"2.0","id":1,"method":"ListTasks"}`); a.status != http.StatusUnauthorized || a.Error == nil {
		t.Errorf("a bad token: %d %+v", a.status, a.Error)
	}
	if a := raw(c, calc, `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"x":"`+strings.Repeat("x", 5<<20)+`"}}`); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("too large: %d %+v", a.status, a.Error)
	}
	guest := p.Guest(t).Do(http.MethodPost, calc, `{"jsonrpc":"2.0","id":1,"method":"GetExtendedAgentCard"}`)
	if guest.Status != http.StatusUnauthorized || !strings.HasPrefix(guest.Header.Get("WWW-Authenticate"), "Bearer") {
		t.Errorf("the extended card without a credential: %d %v", guest.Status, guest.Header)
	}
}

func TestRPC_NegotiatesTheVersion(t *testing.T) {
	t.Parallel()
	c := apptest.Start(t).Guest(t)
	for v, want := range map[string]int{"": 0, "1.0": 0, "1.0.1": 0, "0.3": -32601, "0.3.0": -32601, "2.0": -32009, "0.2": -32009, "1": -32009, "x": -32009} {
		for _, path := range []string{calc, calc + "?A2A-Version=" + v} {
			var edit []func(*http.Request)
			if path == calc {
				edit = append(edit, version(v))
			}
			var a rpcAnswer
			if err := json.Unmarshal([]byte(c.Do(http.MethodPost, path, `{"jsonrpc":"2.0","id":1,"method":"ListTasks"}`, edit...).Body), &a); err != nil || a.code() != want {
				t.Errorf("%q at %s: %+v %v", v, path, a.Error, err)
			}
		}
	}
}

func TestSend_GoesOnWhereTheAgentAsks(t *testing.T) {
	t.Parallel()
	p, _, other := far(t)
	ada := p.User(t, "ada")
	c := ada.NewToken()
	base := "/agents/" + foreign(ada, other) + "/a2a"
	k := rpc(c, base, "SendMessage", say("one", "ask", "")).task(t)
	if k.Status.State != "TASK_STATE_INPUT_REQUIRED" || k.Status.Message == nil || k.Status.Message.Role != "ROLE_AGENT" || fmt.Sprint(k.Status.Message.Parts) != "[map[text:Which one?]]" || len(k.Artifacts) != 0 {
		t.Fatalf("%+v", k)
	}
	if a := rpc(c, base, "SendMessage", say("two", "blue", `,"taskId":"`+k.ID+`","contextId":"`+ident.NewID()+`"`)); a.code() != -32602 {
		t.Errorf("another context: %+v", a.Error)
	}
	if a := rpc(c, calc, "SendMessage", say("two", "blue", `,"taskId":"`+k.ID+`"`)); a.code() != -32001 {
		t.Errorf("at another agent: %+v", a.Error)
	}
	got := rpc(c, base, "SendMessage", say("two", "the blue one", `,"taskId":"`+k.ID+`"`)).task(t)
	if got.ID != k.ID || got.Status.State != "TASK_STATE_COMPLETED" || got.Status.Message != nil || len(got.Artifacts) == 0 || !strings.Contains(fmt.Sprint(got.Artifacts), "the blue one") {
		t.Fatalf("%+v", got)
	}
	var ids []string
	for _, m := range got.History {
		ids = append(ids, m.Role)
	}
	if !slices.Equal(ids, []string{"ROLE_USER", "ROLE_AGENT", "ROLE_USER", "ROLE_AGENT"}) || got.History[0].MessageID != "one" || got.History[2].MessageID != "two" {
		t.Errorf("%+v", got.History)
	}
	if a := rpc(c, base, "SendMessage", say("three", "more", `,"taskId":"`+k.ID+`"`)); a.code() != -32004 {
		t.Errorf("to a task that has ended: %+v", a.Error)
	}
	// The same message again is the same task, whatever came of it since.
	again := rpc(c, base, "SendMessage", say("two", "the blue one", `,"contextId":"`+k.ContextID+`"`)).task(t)
	if again.ID != k.ID || again.Status.State != "TASK_STATE_COMPLETED" {
		t.Errorf("%+v", again)
	}
	if again = rpc(c, base, "SendMessage", say("two", "the blue one", `,"taskId":"`+k.ID+`"`)).task(t); again.ID != k.ID || again.Status.State != "TASK_STATE_COMPLETED" {
		t.Errorf("%+v", again)
	}
	if no := rpc(c, base, "SendMessage", say("four", "refuse", "")).task(t); no.Status.State != "TASK_STATE_REJECTED" || no.Status.Message == nil {
		t.Errorf("%+v", no)
	}
}

func TestTasks_AreTheirCallersOnly(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada, bob := p.User(t, "ada").NewToken(), p.User(t, "bob").NewToken()
	k := rpc(ada, calc, "SendMessage", say("one", "1+1", "")).task(t)
	for name, c := range map[string]*apptest.Client{"bob": bob, "a visitor": p.Guest(t)} {
		for _, method := range []string{"GetTask", "CancelTask", "SubscribeToTask"} {
			if a := rpc(c, calc, method, `{"id":"`+k.ID+`"}`); a.code() != -32001 {
				t.Errorf("%s, %s: %+v", name, method, a)
			}
		}
		if a := rpc(c, calc, "SendMessage", say("one", "1+1", `,"contextId":"`+k.ContextID+`"`)); a.code() != -32602 {
			t.Errorf("%s: into the context: %+v", name, a)
		}
		if a := rpc(c, calc, "ListTasks", `{"contextId":"`+k.ContextID+`"}`); string(a.Result) != `{"nextPageToken":"","pageSize":50,"tasks":[],"totalSize":0}` {
			t.Errorf("%s: %s %+v", name, a.Result, a.Error)
		}
	}
	// It is a conversation like any other to its caller.
	ada.Must(http.MethodGet, "/api/v1/conversations/"+k.ContextID, nil, http.StatusOK)
}

func TestOld_ClientsOf03AreServed(t *testing.T) {
	t.Parallel()
	p, model, _ := far(t)
	ada := p.User(t, "ada")
	slow := "/agents/" + ada.Agent("public", model.Base(agenttest.Hang)) + "/a2a"
	c := ada.NewToken()
	send := `{"message":{"kind":"message","messageId":"%s","role":"user","parts":[{"kind":"text","text":"6*7"}]},"configuration":{"blocking":%t}}`
	k := rpc(c, calc, "message/send", fmt.Sprintf(send, "one", true)).task(t)
	if k.Kind != "task" || k.Status.State != "completed" || len(k.Artifacts) == 0 || k.Artifacts[0].Parts[0]["kind"] != "text" || k.History[1].Role != "agent" {
		t.Fatalf("%+v", k)
	}
	if got := rpc(c, calc, "tasks/get", `{"id":"`+k.ID+`"}`).task(t); got.ID != k.ID {
		t.Errorf("%+v", got)
	}
	running := rpc(c, slow, "message/send", fmt.Sprintf(send, "two", false)).task(t)
	if running.Status.State != "submitted" && running.Status.State != "working" {
		t.Errorf("%+v", running)
	}
	if got := rpc(c, slow, "tasks/cancel", `{"id":"`+running.ID+`"}`).task(t); got.Status.State != "canceled" {
		t.Errorf("%+v", got)
	}
	list := events(t, c, http.MethodPost, calc, `{"jsonrpc":"2.0","id":3,"method":"message/stream","params":`+fmt.Sprintf(send, "three", true)+`}`)
	if len(list) < 1 || !strings.Contains(list[0], `"kind":"task"`) {
		t.Fatalf("%q", list)
	}
	if end := list[len(list)-1]; len(list) > 1 && (!strings.Contains(end, `"kind":"status-update"`) || !strings.Contains(end, `"final":true`)) {
		t.Errorf("the last event is %s", end)
	}
	if a := rpc(c, calc, "message/send", `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]}}`); a.code() != -32602 {
		t.Errorf("a message of 1.0: %+v", a.Error)
	}
	if a := rpc(c, calc, "tasks/pushNotificationConfig/get", `{"id":"x"}`); a.code() != -32001 {
		t.Errorf("push: %+v", a.Error)
	}
}

func TestTenant_NamesTheAgentAtThePortalsBase(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	c := p.User(t, "ada").NewToken()
	params := say("one", "6*7", "")
	k := rpc(c, "/a2a", "SendMessage", `{"tenant":"calc",`+params[1:]).task(t)
	if k.Status.State != "TASK_STATE_COMPLETED" || !strings.Contains(fmt.Sprint(k.Artifacts), "42") {
		t.Fatalf("%+v", k)
	}
	var got wireTask
	c.Get(http.MethodGet, "/a2a/calc/tasks/"+k.ID, nil, http.StatusOK, &got)
	if got.ID != k.ID {
		t.Errorf("%+v", got)
	}
	if a := rpc(c, "/a2a", "GetTask", `{"id":"`+k.ID+`"}`); a.code() != -32001 {
		t.Errorf("the guide shows the calculator's task: %+v", a)
	}
	if a := rpc(c, "/a2a", "ListTasks", `{"tenant":"nobody"}`); a.status != http.StatusNotFound {
		t.Errorf("%+v", a)
	}
}
