package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"pgregory.net/rapid"

	"agentsite/internal/task"
	"agentsite/internal/testing/agenttest"
)

const echoTool = `{"name":"echo","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}`

// odd is a server whose answers to a few methods are given; it answers the rest as begun does.
func odd(t testing.TB, results map[string]string) string {
	return speaking(t, func(w http.ResponseWriter, r rpc) {
		result, ok := results[r.Method]
		switch {
		case ok && r.ID != nil:
			fmt.Fprint(reply(w), strings.ReplaceAll(result, "ID", string(r.ID)))
		case begun(w, r):
		case r.Method == "tools/list":
			fmt.Fprintf(reply(w), `{"jsonrpc":"2.0","id":%s,"result":{"tools":[%s]}}`, r.ID, echoTool)
		default:
			fmt.Fprintf(reply(w), `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"Hello"}]}}`, r.ID)
		}
	})
}

func TestDriver_TakesServersOfOtherLanguages(t *testing.T) {
	begin := `{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2025-06-18","capabilities":%s,"serverInfo":%s}}`
	list := `{"jsonrpc":"2.0","id":ID,"result":{"tools":%s}}`
	call := `{"jsonrpc":"2.0","id":ID,"result":%s}`
	png := "iVBORw0KGgo="
	for name, tt := range map[string]struct{ method, answer string }{
		"plain":                  {"", ""},
		"capabilities list":      {"initialize", fmt.Sprintf(begin, `{"tools":[]}`, `{"name":"x","version":"1"}`)},
		"capabilities empty":     {"initialize", fmt.Sprintf(begin, `[]`, `{"name":"x","version":"1"}`)},
		"capabilities null":      {"initialize", fmt.Sprintf(begin, `{"tools":{},"prompts":null,"logging":[],"resources":false,"experimental":[]}`, `{"name":"x","version":"1"}`)},
		"capability as boolean":  {"initialize", fmt.Sprintf(begin, `{"tools":true}`, `{"name":"x","version":1.2}`)},
		"listChanged as text":    {"initialize", fmt.Sprintf(begin, `{"tools":{"listChanged":"true"}}`, `{"name":["x"],"version":null}`)},
		"server info list":       {"initialize", fmt.Sprintf(begin, `{"tools":{}}`, `[]`)},
		"server info null":       {"initialize", fmt.Sprintf(begin, `{"tools":{}}`, `null`)},
		"instructions null":      {"initialize", strings.Replace(fmt.Sprintf(begin, `{"tools":{}}`, `{"name":"x","version":"1"}`), `"capabilities"`, `"instructions":null,"_meta":[],"capabilities"`, 1)},
		"byte order mark":        {"initialize", "\xef\xbb\xbf" + fmt.Sprintf(begin, `{"tools":{}}`, `{"name":"x","version":"1"}`)},
		"no version of JSON-RPC": {"initialize", strings.Replace(fmt.Sprintf(begin, `{"tools":{}}`, `{"name":"x","version":"1"}`), `"jsonrpc":"2.0",`, "", 1)},
		"id as text":             {"tools/call", `{"jsonrpc":"2.0","id":"ID","result":{"content":[{"type":"text","text":"Hello"}]}}`},
		"id as float":            {"tools/call", `{"jsonrpc":"2.0","id":ID.0,"result":{"content":[{"type":"text","text":"Hello"}]}}`},
		"error null":             {"tools/call", `{"jsonrpc":"2.0","id":ID,"error":null,"result":{"content":[{"type":"text","text":"Hello"}]}}`},
		"error false":            {"tools/call", `{"jsonrpc":"2.0","id":ID,"error":false,"result":{"content":[{"type":"text","text":"Hello"}]}}`},
		"annotations list":       {"tools/list", fmt.Sprintf(list, `[`+echoTool+`,{"name":"now","inputSchema":{"type":"object"},"annotations":[]}]`)},
		"meta list":              {"tools/list", fmt.Sprintf(list, `[`+echoTool+`,{"name":"now","inputSchema":{"type":"object"},"_meta":[]}]`)},
		"hint as text":           {"tools/list", fmt.Sprintf(list, `[`+echoTool+`,{"name":"now","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":"true","title":null}}]`)},
		"description list":       {"tools/list", fmt.Sprintf(list, `[`+echoTool+`,{"name":"now","inputSchema":{"type":"object"},"description":["a","b"]}]`)},
		"schema list":            {"tools/list", fmt.Sprintf(list, `[`+echoTool+`,{"name":"now","inputSchema":[]}]`)},
		"schema null":            {"tools/list", fmt.Sprintf(list, `[`+echoTool+`,{"name":"now","inputSchema":null,"outputSchema":[]}]`)},
		"schema missing":         {"tools/list", fmt.Sprintf(list, `[`+echoTool+`,{"name":"now"}]`)},
		"schema without type":    {"tools/list", fmt.Sprintf(list, `[`+echoTool+`,{"name":"now","inputSchema":{"properties":[],"required":null}}]`)},
		"tool without name":      {"tools/list", fmt.Sprintf(list, `[`+echoTool+`,{"inputSchema":{}},7,null,"x",[]]`)},
		"icons text":             {"tools/list", fmt.Sprintf(list, `[`+echoTool+`,{"name":"now","icons":"x.png","execution":[]}]`)},
		"tools as object":        {"tools/list", fmt.Sprintf(list, `{"0":`+echoTool+`}`)},
		"cursor null":            {"tools/list", strings.Replace(fmt.Sprintf(list, `[`+echoTool+`]`), `"tools"`, `"nextCursor":null,"_meta":[],"tools"`, 1)},
		"result meta":            {"tools/call", fmt.Sprintf(call, `{"content":[{"type":"text","text":"Hello"}],"_meta":[]}`)},
		"structured null":        {"tools/call", fmt.Sprintf(call, `{"content":[{"type":"text","text":"Hello"}],"structuredContent":null}`)},
		"isError text":           {"tools/call", fmt.Sprintf(call, `{"content":[{"type":"text","text":"Hello"}],"isError":"false"}`)},
		"isError null":           {"tools/call", fmt.Sprintf(call, `{"content":[{"type":"text","text":"Hello"}],"isError":null}`)},
		"unknown block":          {"tools/call", fmt.Sprintf(call, `{"content":[{"type":"widget","html":"x"},{"type":"text","text":"Hello"}]}`)},
		"unknown block of text":  {"tools/call", fmt.Sprintf(call, `{"content":[{"type":"markdown","text":"Hello"}]}`)},
		"block without type":     {"tools/call", fmt.Sprintf(call, `{"content":[{"text":"Hello"}]}`)},
		"block as text":          {"tools/call", fmt.Sprintf(call, `{"content":["Hello",null,[]]}`)},
		"content as text":        {"tools/call", fmt.Sprintf(call, `{"content":"Hello"}`)},
		"content as block":       {"tools/call", fmt.Sprintf(call, `{"content":{"type":"text","text":"Hello"}}`)},
		"block annotations":      {"tools/call", fmt.Sprintf(call, `{"content":[{"type":"text","text":"Hello","annotations":[],"_meta":[]}]}`)},
		"image as data URL":      {"tools/call", fmt.Sprintf(call, `{"content":[{"type":"image","mimeType":null,"data":"data:image/png;base64,`+png+`"},{"type":"text","text":"Hello"}]}`)},
		"image in lines":         {"tools/call", fmt.Sprintf(call, `{"content":[{"type":"image","mimeType":"image/png","data":"iVBORw0\nKGgo"},{"type":"text","text":"Hello"}]}`)},
		"image not in base64":    {"tools/call", fmt.Sprintf(call, `{"content":[{"type":"image","mimeType":"image/png","data":"?"},{"type":"text","text":"Hello"}]}`)},
		"resource without URI":   {"tools/call", fmt.Sprintf(call, `{"content":[{"type":"resource","resource":{"text":"Hello"}}]}`)},
		"resource list":          {"tools/call", fmt.Sprintf(call, `{"content":[{"type":"resource","resource":[]},{"type":"text","text":"Hello"}]}`)},
		"version of October":     {"initialize", strings.Replace(fmt.Sprintf(begin, `{"tools":{}}`, `{"name":"x","version":"1"}`), "2025-06-18", "2024-10-07", 1)},
		"version as year":        {"initialize", strings.Replace(fmt.Sprintf(begin, `{"tools":{}}`, `{"name":"x","version":"1"}`), `"2025-06-18"`, "2025", 1)},
		"version between":        {"initialize", strings.Replace(fmt.Sprintf(begin, `{"tools":{}}`, `{"name":"x","version":"1"}`), "2025-06-18", "2025-04-01", 1)},
		"answer in a list":       {"initialize", "[" + fmt.Sprintf(begin, `{"tools":{}}`, `{"name":"x","version":"1"}`) + "]"},
		"stream as JSON":         {"initialize", "event: message\ndata: " + fmt.Sprintf(begin, `{"tools":{}}`, `{"name":"x","version":"1"}`) + "\n\n"},
		"call as stream":         {"tools/call", "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\ndata: " + fmt.Sprintf(call, `{"content":"Hello"}`) + "\n\n"},
		"text after":             {"tools/call", fmt.Sprintf(call, `{"content":"Hello"}`) + "\n<!-- 3 ms -->"},
		"call in a list":         {"tools/call", "[" + fmt.Sprintf(call, `{"content":"Hello"}`) + "]"},
		"input_schema":           {"tools/list", fmt.Sprintf(list, strings.Replace("["+echoTool+"]", "inputSchema", "input_schema", 1))},
		"parameters":             {"tools/list", fmt.Sprintf(list, strings.Replace("["+echoTool+"]", "inputSchema", "parameters", 1))},
		"result as text":         {"tools/call", fmt.Sprintf(call, `"Hello"`)},
		"result as list":         {"tools/call", fmt.Sprintf(call, `[{"type":"text","text":"Hello"}]`)},
		"toolResult":             {"tools/call", fmt.Sprintf(call, `{"toolResult":"Hello"}`)},
		"output object":          {"tools/call", fmt.Sprintf(call, `{"output":{"a":"Hello"}}`)},
		"link without name":      {"tools/call", fmt.Sprintf(call, `{"content":[{"type":"resource_link","uri":"https://a.example/"},{"type":"resource_link"},{"type":"text","text":"Hello"}]}`)},
	} {
		url := odd(t, map[string]string{tt.method: tt.answer})
		res, _ := do(t, newDriver(t), textCall(url, nil, `echo text="hi"`))
		if res.State != task.Completed || !strings.Contains(task.PlainText(res.Parts), "Hello") {
			t.Errorf("%s: %s %q %s", name, res.State, task.PlainText(res.Parts), res.Reason)
		}
	}
}

func TestDriver_TakesJSONInPlaceOfAStream(t *testing.T) {
	for _, method := range []string{"initialize", "tools/list", "tools/call"} {
		url := speaking(t, func(w http.ResponseWriter, r rpc) {
			if r.Method == method {
				w = &labelled{w}
			}
			switch {
			case r.Method == "notifications/initialized":
				http.Error(w, "what?", http.StatusBadRequest)
			case begun(w, r):
			case r.Method == "tools/list":
				fmt.Fprintf(reply(w), `{"jsonrpc":"2.0","id":%s,"result":{"tools":[%s]}}`, r.ID, echoTool)
			default:
				fmt.Fprintf(reply(w), "{\"jsonrpc\":\"2.0\",\n\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"Hello\"}],\"structuredContent\":[]}}", r.ID)
			}
		})
		res, _ := do(t, newDriver(t), textCall(url, nil, `echo text="hi"`))
		if got := task.PlainText(res.Parts); got != "Hello" {
			t.Errorf("%s: %q %s", method, got, res.Reason)
		}
	}
}

// labelled writes answers with the type of a stream.
type labelled struct{ http.ResponseWriter }

func (l *labelled) Write(b []byte) (int, error) {
	l.Header().Set("Content-Type", "text/event-stream")
	return l.ResponseWriter.Write(b)
}

func TestDriver_FindsTheReason(t *testing.T) {
	for name, answer := range map[string]string{
		"data":   `{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"Internal error","data":"because"}}`,
		"reason": `{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"Internal error","data":{"reason":"because"}}}`,
		"beside": `{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"No paper","data":{"reason":"because"}}}`,
		"text":   `{"jsonrpc":"2.0","id":ID,"error":"because"}`,
		"detail": `500 {"detail":"because"}`,
		"errors": `422 {"errors":{"text":["because"]}}`,
		"plain":  `502 because`,
		"page":   `503 <html><h1>because</h1></html>`,
		"cut":    `500 {"error":{"message":"because","trace":"` + strings.Repeat("x", 5000) + `"}}`,
	} {
		url := speaking(t, func(w http.ResponseWriter, r rpc) {
			switch {
			case begun(w, r):
			case r.Method == "tools/list":
				fmt.Fprintf(reply(w), `{"jsonrpc":"2.0","id":%s,"result":{"tools":[%s]}}`, r.ID, echoTool)
			case answer[0] != '{':
				var status int
				fmt.Sscanf(answer, "%d", &status)
				reply(w)
				w.WriteHeader(status)
				fmt.Fprint(w, answer[4:])
			default:
				fmt.Fprint(reply(w), strings.ReplaceAll(answer, "ID", string(r.ID)))
			}
		})
		res, _ := do(t, newDriver(t), textCall(url, nil, `echo text="hi"`))
		if res.State != task.Failed || !strings.Contains(res.Reason, "because") || strings.Contains(res.Reason, "xxx") {
			t.Errorf("%s: %s %s", name, res.State, res.Reason)
		}
	}
}

func TestDriver_SaysWhatItCannotShow(t *testing.T) {
	url := odd(t, map[string]string{"tools/call": `{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"hologram"},null]}}`})
	res, _ := do(t, newDriver(t), textCall(url, nil, `echo text="hi"`))
	if !strings.Contains(task.PlainText(res.Parts), "of a kind that this portal does not know") {
		t.Errorf("%+v", res)
	}
	url = odd(t, map[string]string{"tools/call": `{"jsonrpc":"2.0","id":ID,"error":{"code":"-32000","message":["no","paper"]}}`})
	if res, _ = do(t, newDriver(t), textCall(url, nil, `echo text="hi"`)); !strings.Contains(res.Reason, "no paper") {
		t.Errorf("%+v", res)
	}
}

// A message in a type of content that is wrong, or in none, is read by its first bytes.
func TestDriver_TakesWrongContentTypes(t *testing.T) {
	for _, media := range []string{"", "text/plain; charset=utf-8", "application/octet-stream", "text/json"} {
		for _, stream := range []bool{false, true} {
			url := speaking(t, func(w http.ResponseWriter, r rpc) {
				if r.Method != "tools/call" {
					if r.Method == "tools/list" {
						fmt.Fprintf(reply(w), `{"jsonrpc":"2.0","id":%s,"result":{"tools":[%s]}}`, r.ID, echoTool)
						return
					}
					begun(w, r)
					return
				}
				w.Header()["Content-Type"] = []string{media}
				body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"Hello"}]}}`, r.ID)
				if stream {
					body = "event: message\r\ndata:" + body + "\r\n\r\n"
				}
				fmt.Fprint(w, body)
			})
			res, _ := do(t, newDriver(t), textCall(url, nil, `echo text="hi"`))
			if !strings.Contains(task.PlainText(res.Parts), "Hello") {
				t.Errorf("%q, stream %v: %+v", media, stream, res)
			}
		}
	}
}

// A server that forgot the session has not run the call, so it is repeated, once for each session.
func TestDriver_BeginsALostSessionAgain(t *testing.T) {
	for name, gone := range map[string]func(http.ResponseWriter){
		"404": func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) },
		"404 with RPC": func(w http.ResponseWriter) {
			reply(w)
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}`)
		},
		"400": func(w http.ResponseWriter) { http.Error(w, "Bad Request: No valid session ID provided", 400) },
	} {
		sessions, calls := 0, 0
		s := agenttest.NewNetwork()
		url := serveRaw(t, s, func(w http.ResponseWriter, r *http.Request, msg rpc) {
			switch msg.Method {
			case "initialize":
				sessions++
				w.Header().Set(sessionHeader, fmt.Sprintf("s%d", sessions))
				begun(w, msg)
			case "tools/list":
				fmt.Fprintf(reply(w), `{"jsonrpc":"2.0","id":%s,"result":{"tools":[%s]}}`, msg.ID, echoTool)
			case "tools/call":
				if r.Header.Get(sessionHeader) == "s1" {
					gone(w)
					return
				}
				calls++
				fmt.Fprintf(reply(w), `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"Hello %s"}]}}`, msg.ID, r.Header.Get(sessionHeader))
			default:
				begun(w, msg)
			}
		})
		d := New(s.Transport(t), Config{})
		t.Cleanup(d.Close)
		res, _ := do(t, d, textCall(url, nil, `echo text="hi"`))
		if got := task.PlainText(res.Parts); got != "Hello s2" || calls != 1 || sessions != 2 {
			t.Errorf("%s: %q %s, %d calls in %d sessions", name, got, res.Reason, calls, sessions)
		}
	}
}

func TestDriver_GivesUpOnServersThatLoseEverySession(t *testing.T) {
	sessions := 0
	n := agenttest.NewNetwork()
	url := serveRaw(t, n, func(w http.ResponseWriter, r *http.Request, msg rpc) {
		switch msg.Method {
		case "initialize":
			sessions++
			w.Header().Set(sessionHeader, fmt.Sprintf("s%d", sessions))
			begun(w, msg)
		case "tools/list", "tools/call":
			w.WriteHeader(http.StatusNotFound)
		default:
			begun(w, msg)
		}
	})
	d := New(n.Transport(t), Config{})
	t.Cleanup(d.Close)
	if res, _ := do(t, d, textCall(url, nil, `echo text="hi"`)); res.State != task.Failed || sessions > 8 {
		t.Errorf("%+v after %d sessions", res, sessions)
	}
}

func serveRaw(t *testing.T, n *agenttest.Network, fn func(http.ResponseWriter, *http.Request, rpc)) string {
	s := n.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var msg rpc
		json.NewDecoder(r.Body).Decode(&msg)
		fn(w, r, msg)
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

func TestDriver_SpeaksTheTransportOf2024(t *testing.T) {
	server := sdk.NewServer(&sdk.Implementation{Name: "old", Version: "1"}, nil)
	type in struct {
		Text string `json:"text"`
	}
	sdk.AddTool(server, &sdk.Tool{Name: "echo"}, func(_ context.Context, _ *sdk.CallToolRequest, a in) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "you said " + a.Text}}}, nil, nil
	})
	n := agenttest.NewNetwork()
	old := sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return server }, nil)
	s := n.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.RawQuery == "" {
			http.Error(w, "no", http.StatusMethodNotAllowed)
			return
		}
		old.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	d := New(n.Transport(t), Config{})
	t.Cleanup(d.Close)
	for range 2 {
		res, _ := do(t, d, textCall(s.URL+"/sse", nil, `echo text="hi"`))
		if got := task.PlainText(res.Parts); got != "you said hi" {
			t.Errorf("%q %s", got, res.Reason)
		}
	}
}

// Whatever one tool or block holds, the others are used.
func TestMendMessage_OneOddElementCostsOnlyItself(t *testing.T) {
	value := rapid.SampledFrom([]string{`null`, `true`, `0`, `-1.5`, `""`, `"x"`, `[]`, `{}`, `[null]`, `[[]]`, `[{}]`, `{"a":[]}`, `["a"]`})
	method := func(m string) func(string) (string, json.RawMessage, bool) {
		return func(id string) (string, json.RawMessage, bool) { return m, json.RawMessage(`1`), id == "1" }
	}
	object := func(t *rapid.T, names ...string) string {
		var out []string
		for _, n := range names {
			if rapid.Bool().Draw(t, n+" is there") {
				out = append(out, fmt.Sprintf("%q:%s", n, value.Draw(t, n)))
			}
		}
		return "{" + strings.Join(out, ",") + "}"
	}
	rapid.Check(t, func(t *rapid.T) {
		tool := object(t, "name", "title", "description", "inputSchema", "outputSchema", "annotations", "_meta", "icons", "execution")
		in := `{"jsonrpc":"2.0","id":"1","result":{"_meta":` + value.Draw(t, "meta") + `,"tools":[` + tool + `,` + value.Draw(t, "tool") + `,` + echoTool + `]}}`
		var list struct{ Result sdk.ListToolsResult }
		out := mendMessage([]byte(in), method("tools/list"))
		if err := json.Unmarshal(out, &list); err != nil || !hasEcho(list.Result.Tools) {
			t.Fatalf("%s became %s: %v", in, out, err)
		}
		block := object(t, "type", "text", "data", "mimeType", "resource", "annotations", "_meta", "uri", "name")
		kind := rapid.SampledFrom([]string{"text", "image", "audio", "resource", "resource_link", "x"}).Draw(t, "kind")
		block = `{"type":"` + kind + `"` + strings.Replace(","+block[1:], ",}", "}", 1)
		in = `{"jsonrpc":"2.0","id":1.0,"result":{"content":[` + block + `,` + value.Draw(t, "block") + `,{"type":"text","text":"Hello"}],"isError":` + value.Draw(t, "isError") + `}}`
		var res struct{ Result sdk.CallToolResult }
		out = mendMessage([]byte(in), method("tools/call"))
		if err := json.Unmarshal(out, &res); err != nil || !strings.Contains(string(out), "Hello") {
			t.Fatalf("%s became %s: %v", in, out, err)
		}
	})
}

func hasEcho(tools []*sdk.Tool) bool {
	for _, t := range tools {
		if t.Name == "echo" {
			return true
		}
	}
	return false
}

func TestMendMessage_LeavesGoodMessages(t *testing.T) {
	for _, in := range []string{
		`{"id":1,"jsonrpc":"2.0","result":{"tools":[` + echoTool + `]}}`,
		`{"id":1,"jsonrpc":"2.0","result":{"content":[{"text":"a","type":"text"}],"structuredContent":{"a":[],"b":null}}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":"a"}}`,
		`{"error":{"code":-1,"message":"a"},"id":1,"jsonrpc":"2.0"}`,
		`nope`, `[1]`, `{"a":1}`, ``,
	} {
		m := "tools/call"
		if strings.Contains(in, "tools") {
			m = "tools/list"
		}
		out := mendMessage([]byte(in), func(id string) (string, json.RawMessage, bool) { return m, json.RawMessage(`1`), id == "1" })
		var a, b any
		if json.Unmarshal([]byte(in), &a) != nil {
			a, b = in, string(out)
		} else if err := json.Unmarshal(out, &b); err != nil {
			t.Errorf("%s: %v", out, err)
		}
		if diff := cmp.Diff(a, b); diff != "" {
			t.Errorf("%s: %s", in, diff)
		}
	}
}
