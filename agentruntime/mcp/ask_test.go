package mcp

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"agentsite/internal/hub"
	"agentsite/internal/schema"
	"agentsite/internal/task"
	"agentsite/internal/testing/agenttest"
)

const searchSchema = `{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer"},"tags":{"type":"array","items":{"type":"string"}},"in":{"type":"object","properties":{"path":{"type":"string"}}}},"required":["query"]}`

func search() *offered {
	return &offered{Tool: hub.Tool{Name: "search", InputSchema: json.RawMessage(searchSchema)}}
}

func TestPairs(t *testing.T) {
	for text, want := range map[string]map[string]string{
		`query=cats`:                      {"query": "cats"},
		`query="two words" limit=3`:       {"query": "two words", "limit": "3"},
		`  query='it''`:                   nil,
		`query="a \"b\" \\ c" in.path=/x`: {"query": `a "b" \ c`, "in.path": "/x"},
		`tags=a,b query=x`:                {"tags": "a\nb", "query": "x"},
		`query=a=b`:                       {"query": "a=b"},
		`query= limit=2`:                  {"query": "", "limit": "2"},
		`what=cats`:                       nil,
		`query`:                           nil,
		``:                                nil,
		`is 1+1=2 true`:                   nil,
		`query="no end`:                   nil,
	} {
		got, ok := parsePairs(search(), text)
		if ok != (want != nil) || ok && !maps.Equal(got, want) {
			t.Errorf("%s: %q %v", text, got, ok)
		}
	}
}

// TestPairs_TakesWhatIsShown reads examples back as they were written.
func TestPairs_TakesWhatIsShown(t *testing.T) {
	for _, v := range []string{"x", "two words", `qu"ote`, `back\slash`, `it's`, `end\`, "", "ü 世界", `\"`, "a=b"} {
		got, ok := parsePairs(search(), "query="+quoteValue(v)+" limit=1")
		if !ok || got["query"] != v || got["limit"] != "1" {
			t.Errorf("%q as %s: %q %v", v, quoteValue(v), got, ok)
		}
	}
}

func TestFromText_OneTool(t *testing.T) {
	for text, want := range map[string]string{
		"find me cats":              `{"query":"find me cats"}`,
		"search cats":               `{"query":"cats"}`,
		`{"query":"x","limit":1}`:   `{"query":"x","limit":1}`,
		"search query=x tags=a,b":   `{"query":"x","tags":["a","b"]}`,
		"search in.path=/x query=y": `{"query":"y","in":{"path":"/x"}}`,
		"searching for love":        `{"query":"searching for love"}`,
	} {
		r := fromText(text, []offered{*search()})
		if r == nil || r.tool == nil || len(r.wrong) > 0 || string(r.args) != want {
			t.Errorf("%s: %+v", text, r)
		}
	}
	// Of several tools none is guessed.
	if r := fromText("find me cats", []offered{*search(), *search()}); r != nil {
		t.Errorf("%+v", r)
	}
}

func FuzzUnderstand(f *testing.F) {
	for _, s := range []string{"search query=a", `search {"query":"a"}`, `{"tool":"search","arguments":{}}`, `query="a\"b"`, "hello", `search query='`, `{"arguments":null}`, "/search in.path=\u2028x", `{"query":1e999}`} {
		f.Add(s, searchSchema, `{"limit":1}`)
	}
	f.Fuzz(func(t *testing.T, text, raw, before string) {
		if schema.Check(json.RawMessage(raw)) != nil {
			return
		}
		o := offered{Tool: hub.Tool{Name: "search", InputSchema: json.RawMessage(raw)}}
		parts := []task.Part{task.TextPart(text)}
		if json.Valid([]byte(text)) {
			parts = append(parts, task.Part{Data: json.RawMessage(text)})
		}
		for _, tools := range [][]offered{{o}, {o, {Tool: hub.Tool{Name: "other"}}}, nil} {
			r := parseRequest(parts, tools)
			if r == nil {
				continue
			}
			if r.tool == nil && r.unknown == "" && !r.form || !json.Valid(r.args) {
				t.Fatalf("%q: %+v", text, r)
			}
		}
		if h := helpText([]offered{o}); !utf8.ValidString(h) && utf8.ValidString(raw) || len(h) > maxHelp+2000 {
			t.Fatalf("%q", h)
		}
		if json.Valid([]byte(before)) {
			if r := completeRequest(&o, json.RawMessage(before), parts); !json.Valid(r.args) {
				t.Fatalf("%q and %q: %s", before, text, r.args)
			}
			q := question{Schema: json.RawMessage(raw)}
			if a, _ := q.readAnswer(parts); a.Action == "" || len(a.Content) > 0 && !json.Valid(a.Content) {
				t.Fatalf("%q: %+v", text, a)
			}
		}
	})
}

// TestRun_EndsInTime stops a call that takes longer than calls may.
func TestRun_EndsInTime(t *testing.T) {
	for name, modern := range map[string]bool{"modern": true, "legacy": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := agenttest.NewNetwork()
				s := network.MCPServer(t, modern)
				d := New(network.Transport(t), Config{CallTime: 30 * time.Second})
				t.Cleanup(d.Close)
				res, rec := do(t, d, textCall(s.Endpoint(agenttest.Wait), echoConfig(modern), "x"))
				if res.State != task.Failed || !strings.HasPrefix(res.Reason, "The server did not finish within 30s and was canceled.") {
					t.Errorf("%+v", res)
				}
				if len(s.Calls()) != 1 {
					t.Errorf("%d calls", len(s.Calls()))
				}
				<-s.Stopped
				if st := rec.Statuses(); len(st) > 2 || len(st) == 2 && st[1] != "working on it" {
					t.Errorf("%q", st)
				}
			})
		})
	}
}
