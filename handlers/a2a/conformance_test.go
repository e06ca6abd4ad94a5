package a2a_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/testing/apptest"
)

// What the official kit of A2A 1.0 looks at and the other tests do not, asked
// of the agent it asks for.

const suite = "/agents/conformance"

func conforming(t *testing.T) (*apptest.Portal, *apptest.Client) {
	p := apptest.Start(t, func(c *app.Config) { c.Conformance = true })
	return p, p.User(t, "ada").NewToken()
}

func TestConformance_IsThereWithTheFlagOnly(t *testing.T) {
	t.Parallel()
	p, c := conforming(t)
	card := c.Must(http.MethodGet, suite+"/.well-known/agent-card.json", nil, http.StatusOK).Body
	for _, field := range []string{`"url": "` + p.URL() + suite + `/a2a",`, `"protocolVersion": "0.3`, `"preferredTransport"`, `"type": "http"`} {
		if strings.Contains(strings.ReplaceAll(card, `      "url"`, ""), field) && field != `"url": "`+p.URL()+suite+`/a2a",` {
			t.Errorf("the card has %s, which 1.0 has not", field)
		}
	}
	plain := apptest.Start(t)
	if got := plain.Guest(t).Do(http.MethodGet, suite+"/.well-known/agent-card.json", nil); got.Status != http.StatusNotFound {
		t.Errorf("without the flag: %d", got.Status)
	}
}

// TestConformance_AnswersWithAMessage: some answers are no work (§3.1.1).
func TestConformance_AnswersWithAMessage(t *testing.T) {
	t.Parallel()
	_, c := conforming(t)
	type answer struct {
		Task    *wireTask
		Message *wireMessage
	}
	read := func(b string) (a answer) {
		if err := json.Unmarshal([]byte(b), &a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	for range 2 { // sent again it is answered alike
		a := read(c.Must(http.MethodPost, suite+"/a2a/message:send", say("tck-message-response-1", "x", ""), http.StatusOK).Body)
		if a.Task != nil || a.Message == nil || a.Message.Parts[0]["text"] != "Direct message response" || a.Message.Role != "ROLE_AGENT" {
			t.Errorf("%+v", a)
		}
	}
	list := events(t, c, http.MethodPost, suite+"/a2a/message:stream", say("tck-message-response-2", "x", ""))
	if len(list) != 1 || read(list[0]).Message == nil {
		t.Errorf("the stream is %q", list)
	}
	if list = events(t, c, http.MethodPost, suite+"/a2a/message:stream", say("tck-stream-001", "x", "")); len(list) < 3 || read(list[0]).Task == nil {
		t.Errorf("the stream of a task is %q", list)
	}
}

// TestSubscribe_StaysWhileATaskWaits: the stream ends with the task (§3.1.6).
func TestSubscribe_StaysWhileATaskWaits(t *testing.T) {
	t.Parallel()
	_, c := conforming(t)
	k := rpc(c, suite+"/a2a", "SendMessage", say("tck-input-required-1", "x", "")).task(t)
	resp, err := c.HTTP.Do(c.Request(t.Context(), http.MethodGet, suite+"/a2a/tasks/"+k.ID+":subscribe", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	in := bufio.NewScanner(resp.Body)
	next := func() string {
		for in.Scan() {
			if data, ok := strings.CutPrefix(in.Text(), "data: "); ok {
				return data
			}
		}
		return ""
	}
	if first := next(); !strings.HasPrefix(first, `{"task":`) || !strings.Contains(first, "TASK_STATE_INPUT_REQUIRED") {
		t.Fatal(first)
	}
	again := rpc(c, suite+"/a2a", "SendMessage", say("tck-input-required-2", "x", `,"taskId":"`+k.ID+`"`)).task(t)
	if again.Status.State != "TASK_STATE_INPUT_REQUIRED" {
		t.Fatalf("%+v", again)
	}
	for e := next(); !strings.Contains(e, "TASK_STATE_INPUT_REQUIRED"); e = next() {
		if e == "" {
			t.Fatal("the stream ended where the task waits")
		}
	}
	rpc(c, suite+"/a2a", "SendMessage", say("tck-complete-task-1", "x", `,"taskId":"`+k.ID+`"`)).task(t)
	last := ""
	for e := next(); e != ""; e = next() {
		last = e
	}
	if !strings.Contains(last, "TASK_STATE_COMPLETED") {
		t.Errorf("ends with %s", last)
	}
}

// TestRequests_AreReadAsClientsWriteThem: with a slash at the end of the base,
// with the names of the protobuf, and as the media type that is sent.
func TestRequests_AreReadAsClientsWriteThem(t *testing.T) {
	t.Parallel()
	_, c := conforming(t)
	k := rpc(c, suite+"/a2a/", "SendMessage", say("m", "x", "")).task(t)
	if k.Status.State != "TASK_STATE_COMPLETED" {
		t.Errorf("%+v", k)
	}
	if short := rpc(c, suite+"/a2a", "GetTask", `{"id":"`+k.ID+`","history_length":1}`).task(t); len(short.History) != 1 {
		t.Errorf("history_length 1 gives %d messages", len(short.History))
	}
	list := rpc(c, suite+"/a2a", "ListTasks", `{"context_id":"nobody's","page_size":2}`)
	if !strings.Contains(string(list.Result), `"tasks":[]`) || !strings.Contains(string(list.Result), `"pageSize":2`) {
		t.Errorf("%s", list.Result)
	}
	kind := func(sent, accept, want string) {
		t.Helper()
		got := c.Must(http.MethodPost, suite+"/a2a/message:send", say(apptest.Fresh("m"), "x", ""), http.StatusOK, func(r *http.Request) {
			r.Header.Set("Content-Type", sent)
			r.Header.Set("Accept", accept)
		})
		if got.Header.Get("Content-Type") != want {
			t.Errorf("%s, %s: %s", sent, accept, got.Header.Get("Content-Type"))
		}
	}
	kind("application/json", "*/*", "application/json")
	kind("application/a2a+json", "*/*", "application/a2a+json")
	kind("application/json", "application/a2a+json, application/json", "application/a2a+json")
	kind("application/x-www-form-urlencoded", "*/*", "application/a2a+json") // curl -d
	for _, path := range []string{suite + "/a2a", suite + "/a2a/message:send"} {
		got := c.Do(http.MethodPost, path, `{}`, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") })
		if got.Status != http.StatusUnsupportedMediaType || !strings.Contains(got.Body, "CONTENT_TYPE_NOT_SUPPORTED") {
			t.Errorf("%s: %d %s", path, got.Status, got.Body)
		}
	}
}

// TestRequests_AreStrictJSON: what two readers may understand differently is
// refused on both bindings.
func TestRequests_AreStrictJSON(t *testing.T) {
	t.Parallel()
	_, c := conforming(t)
	deep := strings.Repeat(`[`, 70) + strings.Repeat(`]`, 70)
	for name, x := range map[string]struct{ body, want string }{
		"a field twice":  {`{"message":{"messageId":"a","messageId":"b","role":"ROLE_USER","parts":[{"text":"x"}]}}`, "twice"},
		"twice in data":  {`{"message":{"messageId":"a","role":"ROLE_USER","parts":[{"data":{"x":1,"x":2}}]}}`, "twice"},
		"too deep":       {`{"message":{"messageId":"a","role":"ROLE_USER","parts":[{"data":` + deep + `}]}}`, "nesting"},
		"NUL":            {`{"message":{"messageId":"a","role":"ROLE_USER","parts":[{"data":"x\u0000"}]}}`, "NUL"},
		"more than one":  {`{} {}`, "not JSON"},
		"half a message": {`{"message":`, "not JSON"},
	} {
		for path, body := range map[string]string{suite + "/a2a/message:send": x.body, suite + "/a2a": `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":` + x.body + `}`} {
			if got := c.Do(http.MethodPost, path, body); !strings.Contains(got.Body, "PARSE_ERROR") || !strings.Contains(got.Body, x.want) {
				t.Errorf("%s at %s: %d %s", name, path, got.Status, got.Body)
			}
		}
	}
}

func TestCard_IsSignedOnce(t *testing.T) {
	t.Parallel()
	_, c := conforming(t)
	path := suite + "/.well-known/agent-card.json"
	a, b := c.Must(http.MethodGet, path, nil, http.StatusOK), c.Must(http.MethodGet, path, nil, http.StatusOK)
	if a.Body != b.Body || a.Header.Get("ETag") != b.Header.Get("ETag") {
		t.Error("the same card is another one each time")
	}
}
