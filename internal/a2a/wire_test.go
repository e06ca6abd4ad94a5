package a2a

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2apb/v0/pbjson"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"agentsite/internal/task"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	}))
}

func dial(t *testing.T, ep Endpoint) *Client {
	t.Helper()
	if ep.URL == "" {
		ep.URL = "http://a.example/base"
	}
	c, err := New(http.DefaultTransport, ep)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var parts = []task.Part{
	{Text: "hello"}, {Raw: []byte{0, 1, 0xff}, MediaType: "image/png", Filename: "x.png"},
	{URL: "https://example.com/f", MediaType: "text/plain"}, {Data: json.RawMessage(`{"data":{"a":1}}`)},
}

// TestSend_IsReadByTheSDK lets the protocol's own SDK read what is sent.
func TestSend_IsReadByTheSDK(t *testing.T) {
	m := Message{ID: "m1", ContextID: "c1", TaskID: "t1", Parts: parts}
	check := func(name string, got *sdk.Message, now bool) {
		t.Helper()
		if got == nil || got.ID != "m1" || got.ContextID != "c1" || got.TaskID != "t1" || got.Role != sdk.MessageRoleUser || len(got.Parts) != 4 || !now {
			t.Fatalf("%s: %+v", name, got)
		}
		if got.Parts[0].Text() != "hello" || !bytes.Equal(got.Parts[1].Raw(), parts[1].Raw) || got.Parts[1].Filename != "x.png" || got.Parts[2].URL() != "https://example.com/f" {
			t.Errorf("%s: parts differ", name)
		}
		if d := cmp.Diff(map[string]any{"data": map[string]any{"a": 1.0}}, got.Parts[3].Data()); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	b, err := json.Marshal(dial(t, Endpoint{Tenant: "x"}).sendParams(m, false))
	var req sdk.SendMessageRequest
	if err == nil {
		err = json.Unmarshal(b, &req)
	}
	if err != nil || req.Tenant != "x" {
		t.Fatalf("%+v %v", req, err)
	}
	check("1.0", req.Message, req.Config.ReturnImmediately)

	b, _ = json.Marshal(dial(t, Endpoint{Version: Version03, Binding: BindingREST}).sendParams(m, false))
	old, err := pbjson.FromProtoSendMessageRequest(b)
	if err != nil {
		t.Fatal(err)
	}
	check("0.3 HTTP+JSON", old.Message, old.Config.ReturnImmediately)
	if !strings.Contains(string(b), `"content":[`) {
		t.Errorf("%s", b)
	}

	b, _ = json.Marshal(dial(t, Endpoint{Version: Version03}).sendParams(m, false))
	want := `{"configuration":{"blocking":false},"message":{"contextId":"c1","kind":"message","messageId":"m1","parts":[` +
		`{"kind":"text","text":"hello"},{"file":{"bytes":"AAH/","mimeType":"image/png","name":"x.png"},"kind":"file"},` +
		`{"file":{"mimeType":"text/plain","uri":"https://example.com/f"},"kind":"file"},{"data":{"data":{"a":1}},"kind":"data"}],"role":"user","taskId":"t1"}}`
	if string(b) != want {
		t.Errorf("0.3 JSON-RPC:\n%s\nwant\n%s", b, want)
	}
}

// TestDecode_ReadsWhatTheSDKWrites is the other direction.
func TestDecode_ReadsWhatTheSDKWrites(t *testing.T) {
	list := sdk.ContentParts{sdk.NewTextPart("hello"), {Content: sdk.Raw(parts[1].Raw), MediaType: "image/png", Filename: "x.png"},
		sdk.NewFileURLPart("https://example.com/f", "text/plain"), sdk.NewDataPart(map[string]any{"data": map[string]any{"a": 1}})}
	full := &sdk.Task{ID: "t1", ContextID: "c1", Status: sdk.TaskStatus{State: sdk.TaskStateCanceled, Message: &sdk.Message{ID: "m", Role: sdk.MessageRoleAgent, Parts: list}},
		Artifacts: []*sdk.Artifact{{ID: "a1", Name: "n", Parts: list}}, History: []*sdk.Message{{ID: "h", Role: sdk.MessageRoleUser, Parts: list}}}
	want := Task{ID: "t1", ContextID: "c1", Status: Status{State: task.Canceled, Message: &Message{ID: "m", FromAgent: true, Parts: parts}},
		Artifacts: []task.Artifact{{ID: "a1", Name: "n", Parts: parts}}, History: []Message{{ID: "h", Parts: parts}}}
	new10, _ := json.Marshal(sdk.StreamResponse{Event: full})
	old, _ := pbjson.ToProtoStreamEvent(full)
	for name, in := range map[string]struct {
		b []byte
		d decoder
	}{"1.0": {new10, decoder{}}, "0.3 HTTP+JSON": {old, decoder{wrapped: true}}} {
		ev, err := in.d.decodeEvent(in.b)
		if err != nil || ev.Task == nil {
			t.Fatalf("%s: %v", name, err)
		}
		if d := cmp.Diff(want, *ev.Task); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestDecode_ToleratesAndRefuses(t *testing.T) {
	for in, want := range map[string]string{
		`{"kind":"task","id":"t","status":{"state":"input-required"}}`:                         "task input_required",
		`{"id":"t","status":{"state":"TASK_STATE_CANCELLED"}}`:                                 "task canceled",
		`{"task":{"id":"t","status":{"state":"DREAMING","timestamp":"yesterday"}}}`:            "task ",
		`{"kind":"status-update","taskId":"t","final":true,"status":{"state":"completed"}}`:    "status completed",
		`{"statusUpdate":{"taskId":"t","status":null}}`:                                        "status ",
		`{"kind":"artifact-update","taskId":"t","artifact":{"artifactId":"a","parts":null}}`:   "artifact a",
		`{"parts":[{"type":"text","text":"x"}],"role":"agent"}`:                                "message 1",
		`{"message":{"role":"ROLE_AGENT","parts":[{"text":"x"},{"text":7},[],{"raw":"***"}]}}`: "message 2",
	} {
		ev, err := decoder{}.decodeEvent([]byte(in))
		got := ""
		switch {
		case ev.Task != nil:
			got = "task " + string(ev.Task.Status.State)
		case ev.Status != nil:
			got = "status " + string(ev.Status.Status.State)
		case ev.Artifact != nil:
			got = "artifact " + ev.Artifact.Artifact.ID
		case ev.Message != nil:
			got = fmt.Sprint("message ", len(ev.Message.Parts))
		}
		if err != nil || got != want {
			t.Errorf("%s: %q %v", in, got, err)
		}
	}
	many := `{"kind":"task","id":"t","status":{},"artifacts":[` + strings.Repeat(`{"artifactId":"a"},`, 200) + `{}]}`
	for _, in := range []string{``, `null`, `[]`, `7`, `"x"`, `{}`, `{"task":7}`, `{"task":{"id":""}}`, `{"task":{"id":".."}}`,
		`{"task":{"id":"` + strings.Repeat("x", 300) + `"}}`, `{"artifactUpdate":{"taskId":"t"}}`, `{"kind":"message"`, many} {
		if ev, err := (decoder{}).decodeEvent([]byte(in)); err == nil {
			t.Errorf("%.60s: %+v", in, ev)
		} else if _, ok := errors.AsType[*Error](err); !ok || Reason(err) == "" {
			t.Errorf("%.60s: %v", in, err)
		}
	}
}

func TestRequest_GoesToTheRightPlace(t *testing.T) {
	for _, tt := range []struct {
		ep   Endpoint
		op   operation
		want string
	}{
		{Endpoint{}, opGet, "POST http://a.example/base"},
		{Endpoint{Binding: BindingREST}, opGet, "GET http://a.example/base/tasks/a%2Fb%3Fc?historyLength=20"},
		{Endpoint{Binding: BindingREST, Tenant: "x/y"}, opSend, "POST http://a.example/base/x%2Fy/message:send"},
		{Endpoint{Binding: BindingREST, URL: "http://a.example/?key=1"}, opStream, "POST http://a.example/message:stream?key=1"},
		{Endpoint{Binding: BindingREST}, opSubscribe, "POST http://a.example/base/tasks/a%2Fb%3Fc:subscribe"},
		{Endpoint{Binding: BindingREST, Version: Version03}, opSubscribe, "GET http://a.example/base/v1/tasks/a%2Fb%3Fc:subscribe"},
		{Endpoint{Binding: BindingREST, Version: Version03, URL: "http://a.example/v1/"}, opCancel, "POST http://a.example/v1/tasks/a%2Fb%3Fc:cancel"},
	} {
		c := dial(t, tt.ep)
		req, err := c.newRequest(t.Context(), tt.op, "a/b?c", c.taskParams("a/b?c", 0))
		if err != nil || req.Method+" "+req.URL.String() != tt.want {
			t.Errorf("%+v: %s %s %v", tt.ep, req.Method, req.URL, err)
		}
	}
}

func TestRequest_CarriesTheCredential(t *testing.T) {
	for _, tt := range []struct{ header, secret, name, want string }{
		{"", "abc", "Authorization", "Bearer abc"}, {"", "Basic dTpw", "Authorization", "Basic dTpw"},
		{"X-Key", "abc", "X-Key", "abc"}, {"authorization", "abc", "Authorization", "Bearer abc"}, {"", "", "Authorization", ""},
	} {
		c := dial(t, Endpoint{AuthHeader: tt.header, Secret: tt.secret})
		req, _ := c.newRequest(t.Context(), opGet, "t", nil)
		if got := req.Header.Get(tt.name); got != tt.want {
			t.Errorf("%+v: %q", tt, got)
		}
	}
	for _, ep := range []Endpoint{{URL: "nonsense"}, {URL: "http://a", AuthHeader: "Host"}, {URL: "http://a", Secret: "a\nb"}, {URL: "http://a", Version: "2"}} {
		if _, err := New(http.DefaultTransport, ep); err == nil {
			t.Errorf("%+v passed", ep)
		}
	}
}

func TestStream_IsBounded(t *testing.T) {
	for name, tt := range map[string]struct {
		event, want string
		times       int
	}{
		"events": {`{"statusUpdate":{"taskId":"t","status":{}}}`, "more than 10000 events", 20_000},
		"bytes":  {`{"message":{"parts":[{"text":"` + strings.Repeat("x", 900_000) + `"}]}}`, "larger than 8 MiB", 100},
		"one":    {`{"message":{"parts":[{"text":"` + strings.Repeat("x", 2<<20) + `"}]}}`, "larger than 1 MiB", 1},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for range tt.times {
				if _, err := fmt.Fprintf(w, "data: %s\n\n", tt.event); err != nil {
					return
				}
			}
		}))
		var last error
		n := 0
		for _, err := range dial(t, Endpoint{URL: s.URL, Binding: BindingREST}).Stream(t.Context(), Message{ID: "m"}) {
			n++
			last = err
		}
		if last == nil || !strings.Contains(Reason(last), tt.want) || n > maxEvents+1 {
			t.Errorf("%s: %d events, %v", name, n, last)
		}
		s.Close()
	}
}

func TestStream_BreakClosesTheConnection(t *testing.T) {
	closed := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, `data: {"jsonrpc":"2.0","result":{"task":{"id":"t","status":{}}}}`+"\n\n")
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(closed)
	}))
	defer s.Close()
	for ev, err := range dial(t, Endpoint{URL: s.URL}).Stream(t.Context(), Message{ID: "m"}) {
		if err != nil || ev.Task == nil {
			t.Errorf("%+v %v", ev, err)
		}
		break
	}
	<-closed
}

func TestRandomUUID(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$`)
	if a, b := randomUUID(), randomUUID(); !form.MatchString(a) || a == b {
		t.Errorf("%s %s", a, b)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"task":{"id":"t","status":{"state":"TASK_STATE_WORKING"},"artifacts":[{"artifactId":"a","parts":[{"text":"x"}]}]}}`, false)
	f.Add(`{"kind":"artifact-update","taskId":"t","artifact":{"parts":[{"kind":"file","file":{"bytes":"aGk="}}]}}`, false)
	f.Add(`{"message":{"content":[{"file":{"fileWithBytes":"YUdrPQ=="}},{"data":{"data":{}}}]}}`, true)
	f.Fuzz(func(t *testing.T, s string, wrapped bool) {
		ev, err := decoder{wrapped: wrapped}.decodeEvent([]byte(s))
		if err != nil {
			return
		}
		n := 0
		for _, set := range []bool{ev.Task != nil, ev.Message != nil, ev.Status != nil, ev.Artifact != nil} {
			if set {
				n++
			}
		}
		if taskID, contextID := ev.IDs(); n != 1 || len(taskID) > maxID || len(contextID) > maxID {
			t.Errorf("%d kinds in %+v", n, ev)
		}
	})
}
