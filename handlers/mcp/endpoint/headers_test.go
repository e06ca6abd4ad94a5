package endpoint

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/strictjson"
)

func TestDecoded(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"us-west1": "us-west1", "": "", "a b\tc": "a b\tc", "=?base64?SGVsbG8=?=": "Hello", "=?base64?SGVsbG8=": "=?base64?SGVsbG8=", "SGVsbG8=": "SGVsbG8=", "=?BASE64?SGVsbG8=?=": "=?BASE64?SGVsbG8=?=",
		"=?base64?SGVsbG8sIOS4lueVjA==?=": "Hello, 世界"} {
		if got, ok := decodeValue(in); !ok || got != want {
			t.Errorf("%q is %q, %v; want %q", in, got, ok, want)
		}
	}
	for _, in := range []string{"=?base64?SGVsbG8?=", "=?base64?SGVs!!!bG8=?=", "=?base64?/w==?=", "=?base64?SGVsbG9=?=", "a\x00", "a\x7f", "é", "a\nb"} {
		if got, ok := decodeValue(in); ok {
			t.Errorf("%q is %q", in, got)
		}
	}
}

// TestCheckParams holds headers against arguments as the table of "Server
// Behavior for Custom Headers" has them.
func TestCheckParams(t *testing.T) {
	t.Parallel()
	list := findBindings(json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"N"},"on":{"type":"boolean","x-mcp-header":"On"},
		"deep":{"type":"object","properties":{"er":{"type":"string","x-mcp-header":"Deeper"}}},"bad":{"type":"string","x-mcp-header":"no good"},"plain":{"type":"string"}}}`))
	if len(list) != 4 {
		t.Fatalf("%+v", list)
	}
	for args, cases := range map[string]map[string]bool{
		`{}`:                                 {"": true, "Region=us": false},
		`{"region":null}`:                    {"": true, "Region=null": false},
		`{"region":"us","plain":"x"}`:        {"Region=us": true, "": false, "Region=eu": false, "Region=US": false, "Region==?base64?dXM=?=": true, "Region==?base64?dXM?=": false, "Region=us;Region=eu": false},
		`{"region":""}`:                      {"Region=": true, "": false},
		`{"n":42}`:                           {"N=42": true, "N=42.0": true, "N=43": false, "N=x": false},
		`{"on":true}`:                        {"On=true": true, "On=TRUE": false, "On=1": false},
		`{"deep":{"er":"x"}}`:                {"Deeper=x": true, "": false},
		`{"deep":{}}`:                        {"": true},
		`{"deep":"no object"}`:               {"": true},
		`{"region":["what","is","no text"]}`: {"": true},
	} {
		o, _ := strictjson.Split([]byte(args))
		for headers, want := range cases {
			h := make(http.Header)
			for one := range strings.SplitSeq(headers, ";") {
				if name, value, ok := strings.Cut(one, "="); ok {
					h.Add("Mcp-Param-"+name, value)
				}
			}
			p := checkParams(h, list, o)
			if (p == nil) != want || p != nil && (p.Code != CodeHeaderMismatch || p.Status != http.StatusBadRequest) {
				t.Errorf("%s with %q: %+v", args, headers, p)
			}
		}
	}
}

// FuzzReadMessages: whatever comes is refused in the protocol's own words or
// is messages, of which what is read again is the same.
func FuzzReadMessages(f *testing.F) {
	for _, s := range []string{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":"a","result":{}}`, `[{"jsonrpc":"2.0","method":"x","params":{"_meta":{"progressToken":1}}}]`, `{"jsonrpc":"2.0","id":null}`, `[]`, `{`, `{"jsonrpc":"2.0","id":1e9,"method":"\u0000"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		list, batch, p := readMessages(b)
		if p != nil {
			if p.Status != http.StatusBadRequest || p.Message == "" || !json.Valid(p.encodeError()) {
				t.Errorf("%q: %+v", b, p)
			}
			return
		}
		if len(list) == 0 || len(list) > maxBatch || !batch && len(list) != 1 {
			t.Fatalf("%q: %d messages", b, len(list))
		}
		for _, m := range list {
			if m.isRequest() && (m.isAnswer() || m.id == nil) || !m.isRequest() && !m.isAnswer() && m.id != nil {
				t.Errorf("%q: %+v", b, m)
			}
			if m.id != nil {
				if out := wrapAnswer(m.id, "result", []byte("{}")); !json.Valid(out) {
					t.Errorf("%q: the answer is %q", b, out)
				}
			}
			readClient(m.params)
			progressToken(m.params)
		}
	})
}
