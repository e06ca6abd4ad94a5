package a2a_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

func TestREST_RefusesInTheProtocolsForm(t *testing.T) {
	t.Parallel()
	c := apptest.Start(t).User(t, "ada").NewToken()
	for _, is := range []struct {
		method, path, body string
		status             int
		reason             string
	}{
		{"GET", "/tasks/nope", "", 404, "TASK_NOT_FOUND"},
		{"POST", "/tasks/nope:cancel", "", 404, "TASK_NOT_FOUND"},
		{"POST", "/tasks/nope:subscribe", "", 404, "TASK_NOT_FOUND"},
		{"GET", "/tasks/nope:subscribe", "", 404, "TASK_NOT_FOUND"},
		{"POST", "/tasks/nope:dance", "", 404, "METHOD_NOT_FOUND"},
		{"GET", "/nothing/at/all", "", 404, "METHOD_NOT_FOUND"},
		{"GET", "/message:send", "", 405, "METHOD_NOT_FOUND"},
		{"POST", "/message:send", "", 400, "INVALID_PARAMS"},
		{"POST", "/message:send", "{", 400, "PARSE_ERROR"},
		{"POST", "/message:send", "[]", 400, "INVALID_PARAMS"},
		{"POST", "/message:stream", `{"message":{}}`, 400, "INVALID_PARAMS"},
		{"GET", "/tasks?pageSize=many", "", 400, "INVALID_PARAMS"},
		{"GET", "/tasks?includeArtifacts=perhaps", "", 400, "INVALID_PARAMS"},
		{"GET", "/tasks/x?historyLength=-1", "", 400, "INVALID_PARAMS"},
		{"POST", "/tasks/x/pushNotificationConfigs", "{}", 400, "INVALID_PARAMS"},
		{"POST", "/tasks/x/pushNotificationConfigs", "[]", 400, "PARSE_ERROR"},
		{"POST", "/tasks/x/pushNotificationConfigs", `{"url":"https://example.org"}`, 404, "TASK_NOT_FOUND"},
		{"GET", "/tasks/x/pushNotificationConfigs", "", 404, "TASK_NOT_FOUND"},
		{"GET", "/tasks/x/pushNotificationConfigs/y", "", 404, "TASK_NOT_FOUND"},
		{"DELETE", "/tasks/x/pushNotificationConfigs/y", "", 404, "TASK_NOT_FOUND"},
		{"GET", "/guide/tasks", "", 400, "INVALID_PARAMS"}, // an agent's own base has no tenants
	} {
		var body any
		if is.body != "" {
			body = is.body
		}
		a := c.Do(is.method, calc+is.path, body, version("1.0"))
		var e struct {
			Error struct {
				Code            int
				Status, Message string
				Details         []struct {
					Type   string `json:"@type"`
					Reason string
				}
			}
		}
		if err := json.Unmarshal([]byte(a.Body), &e); err != nil {
			t.Errorf("%s %s: %v in %s", is.method, is.path, err, a.Body)
			continue
		}
		if a.Status != is.status || e.Error.Code != is.status || e.Error.Status == "" || e.Error.Message == "" || len(e.Error.Details) != 1 || e.Error.Details[0].Reason != is.reason {
			t.Errorf("%s %s: %d %s", is.method, is.path, a.Status, a.Body)
		}
	}
	if a := c.Do(http.MethodGet, calc+"/tasks", nil, version("0.3")); a.Status != http.StatusBadRequest || !strings.Contains(a.Body, "VERSION_NOT_SUPPORTED") {
		t.Errorf("0.3: %d %s", a.Status, a.Body)
	}
	if a := c.Do(http.MethodPost, calc+"/message:send", "x", func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }); !strings.Contains(a.Body, "CONTENT_TYPE_NOT_SUPPORTED") {
		t.Errorf("text: %d %s", a.Status, a.Body)
	}
}

func TestREST_AnswersInItsMediaType(t *testing.T) {
	t.Parallel()
	c := apptest.Start(t).Guest(t)
	a := c.Must(http.MethodPost, calc+"/message:send", say("one", "1+1", ""), http.StatusOK, func(r *http.Request) { r.Header.Set("Content-Type", "application/a2a+json") })
	if a.Header.Get("Content-Type") != "application/a2a+json" || !strings.HasPrefix(a.Body, `{"task":{`) {
		t.Errorf("%v %s", a.Header, a.Body)
	}
	plain := c.Must(http.MethodGet, calc+"/tasks", nil, http.StatusOK, func(r *http.Request) { r.Header.Set("Accept", "application/json") })
	if plain.Header.Get("Content-Type") != "application/json" || plain.Body != `{"nextPageToken":"","pageSize":50,"tasks":[],"totalSize":0}` {
		t.Errorf("%v %s", plain.Header, plain.Body)
	}
}

// TestStream_BeginsWithTheTaskAndEndsWithItsState reads a stream as it stands
// on the wire, on both bindings.
func TestStream_BeginsWithTheTaskAndEndsWithItsState(t *testing.T) {
	t.Parallel()
	p, model, other := far(t)
	ada := p.User(t, "ada")
	name := ada.Agent("public", model.Base(agenttest.Echo))
	asks := foreign(ada, other)
	c := ada.NewToken()
	type event struct {
		Task           *wireTask
		StatusUpdate   *struct{ Status struct{ State string } }
		ArtifactUpdate *struct {
			Artifact struct {
				ArtifactID string `json:"artifactId"`
				Parts      []struct{ Text string }
			}
			Append, LastChunk bool
		}
	}
	read := func(binding, agent, text string) (out []event) {
		path, body := "/agents/"+agent+"/a2a/message:stream", say(apptest.Fresh("m"), text, "")
		if binding == "JSONRPC" {
			path, body = "/agents/"+agent+"/a2a", `{"jsonrpc":"2.0","id":7,"method":"SendStreamingMessage","params":`+body+`}`
		}
		for _, line := range events(t, c, http.MethodPost, path, body) {
			b := []byte(line)
			if binding == "JSONRPC" {
				var env struct {
					JSONRPC string
					ID      int
					Result  json.RawMessage
				}
				if json.Unmarshal(b, &env) != nil || env.ID != 7 || env.JSONRPC != "2.0" {
					t.Fatalf("no envelope: %s", line)
				}
				b = env.Result
			}
			var e event
			if err := json.Unmarshal(b, &e); err != nil {
				t.Fatalf("%v in %s", err, line)
			}
			out = append(out, e)
		}
		return out
	}
	for _, binding := range bindings {
		list := read(binding, name, "one two three")
		if len(list) < 2 || list[0].Task == nil {
			t.Fatalf("%s: %+v", binding, list)
		}
		var text string
		chunks, last := 0, false
		for _, e := range list[1 : len(list)-1] {
			if u := e.ArtifactUpdate; u != nil {
				if last || u.Artifact.ArtifactID != "answer" || u.Append != (chunks > 0) {
					t.Errorf("%s: %+v after %d", binding, u, chunks)
				}
				chunks++
				text += u.Artifact.Parts[0].Text
				last = u.LastChunk
			}
		}
		if text != agenttest.Echoed("one two three") || !last {
			t.Errorf("%s: %q, last %v", binding, text, last)
		}
		if end := list[len(list)-1].StatusUpdate; end == nil || end.Status.State != "TASK_STATE_COMPLETED" {
			t.Errorf("%s: ends with %+v", binding, list[len(list)-1])
		}
		list = read(binding, asks, "ask")
		if end := list[len(list)-1].StatusUpdate; end == nil || end.Status.State != "TASK_STATE_INPUT_REQUIRED" {
			t.Errorf("%s: ends with %+v", binding, list[len(list)-1])
		}
	}
}

// TestSubscribe_TellsWhatCameBefore joins an answer that has begun, by both
// methods of HTTP, and cancels it.
func TestSubscribe_TellsWhatCameBefore(t *testing.T) {
	t.Parallel()
	p, model, _ := far(t)
	ada := p.User(t, "ada")
	c := ada.NewToken()
	base := "/agents/" + ada.Agent("public", model.Base(agenttest.Stall)) + "/a2a"
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		body := strings.TrimSuffix(say(apptest.Fresh("m"), "hello", ""), "}") + `,"configuration":{"returnImmediately":true}}`
		var sent struct{ Task wireTask }
		c.Get(http.MethodPost, base+"/message:send", body, http.StatusOK, &sent)
		resp, err := c.HTTP.Do(c.Request(t.Context(), method, base+"/tasks/"+sent.Task.ID+":subscribe", nil))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		in := bufio.NewScanner(resp.Body)
		next := func(what string) string {
			for in.Scan() {
				if data, ok := strings.CutPrefix(in.Text(), "data: "); ok && strings.Contains(data, what) {
					return data
				}
			}
			t.Fatalf("%s: the stream ended before %s", method, what)
			return ""
		}
		next(`{"task":`)
		next(`"artifactUpdate"`)
		var k wireTask
		c.Get(http.MethodPost, base+"/tasks/"+sent.Task.ID+":cancel", nil, http.StatusOK, &k)
		if k.Status.State != "TASK_STATE_CANCELED" || k.Status.Message == nil {
			t.Errorf("%s: %+v", method, k)
		}
		next("TASK_STATE_CANCELED")
		if in.Scan() && in.Text() != "" || in.Scan() {
			t.Errorf("%s: after the end comes %q", method, in.Text())
		}
	}
}

// TestFiles_CanBeFetchedByWhoGetsTheTask: a file's address opens it without a
// credential, for a while.
func TestFiles_CanBeFetchedByWhoGetsTheTask(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	c := p.User(t, "ada").NewToken()
	body := `{"message":{"messageId":"one","role":"ROLE_USER","parts":[{"text":"6*7"},{"raw":"aGVsbG8=","filename":"a.txt","mediaType":"text/plain"}]}}`
	var sent struct{ Task wireTask }
	c.Get(http.MethodPost, calc+"/message:send", body, http.StatusOK, &sent)
	if len(sent.Task.History) == 0 || len(sent.Task.History[0].Parts) != 2 {
		t.Fatalf("%+v", sent)
	}
	at, _ := sent.Task.History[0].Parts[1]["url"].(string)
	path, ok := strings.CutPrefix(at, p.URL())
	if !ok {
		t.Fatalf("the file is at %q", at)
	}
	if a := p.Guest(t).Must(http.MethodGet, path, nil, http.StatusOK); a.Body != "hello" {
		t.Errorf("%q", a.Body)
	}
	path, _, _ = strings.Cut(path, "?")
	if a := p.Guest(t).Do(http.MethodGet, path, nil); a.Status == http.StatusOK {
		t.Error("without its key the file is open to everybody")
	}
}
