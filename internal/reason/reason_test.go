package reason

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "null": "", "{}": "", "[]": "", `{"ok":true}`: "", `{"error":{`: "", `{"models":["a","b"]}`: "",
		"Out of memory\n": "Out of memory",
		"<html><head><title>502 Bad\n Gateway</title></head><body>x</body>": "502 Bad Gateway",
		"<html><body>x</body>":         "",
		`"quoted"`:                     "quoted",
		`{"error":"a"}`:                "a",
		`{"error":true,"message":"a"}`: "a",
		`{"error_description":"a","error":"invalid_request"}`:                                                  "invalid_request",
		`{"title":"Bad","detail":"a"}`:                                                                         "a",
		`{"detail":[{"msg":"a"},{"msg":"b"},{"msg":"a"}]}`:                                                     "a; b",
		`{"error":{"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"a\"}}"}}}`: "Provider returned error: a",
		`data: {"error":{"message":"a"}}`:                                                                      "a",
		"event: error\ndata: {\"message\":\"a\"}\n\n":                                                          "a",
		": hello\n\nerror: a":                                                                                  "a",
		"\xef\xbb\xbf" + `{"message":"a"}`:                                                                     "a",
		strings.Repeat("[", 50) + `"a"` + strings.Repeat("]", 50):                                              "",

		`{"Message":"a"}`: "a", `{"MESSAGE":"a"}`: "a", `{"err":"a"}`: "a", `{"exception":"a"}`: "a", `{"Fault":{"faultstring":"a"}}`: "a",
		`{"errcode":17,"errmsg":"a"}`:                                                               "a",
		`{"error_code":1,"error_msg":"a"}`:                                                          "a",
		`{"errorCode":"E1","errorMessage":"a"}`:                                                     "a",
		`{"errors":{"max_tokens":["a"]}}`:                                                           "max_tokens: a",
		`{"errors":{"n":["a"],"m":"b"}}`:                                                            "m: b; n: a",
		`{"max_tokens":["A valid integer is required."]}`:                                           "max_tokens: A valid integer is required.",
		`{"title":"One or more validation errors occurred.","errors":{"n":["a"]}}`:                  "n: a",
		`{"messages":["a"]}`:                                                                        "a",
		`{"non_field_errors":["a"]}`:                                                                "a",
		`{"error":{"code":"model_not_found"}}`:                                                      "model_not_found",
		`{"error":{"type":"overloaded_error","code":5}}`:                                            "overloaded_error",
		`{"odata.error":{"message":{"lang":"en","value":"a"}}}`:                                     "a",
		`{"status":500,"error":"Internal Server Error","message":"a"}`:                              "a",
		`{"message":"Internal Server Error","error":"a"}`:                                           "a",
		`{"code":-32603,"message":"Internal error","data":"a"}`:                                     "a",
		`{"code":-32603,"message":"Internal error","data":{"reason":"a"}}`:                          "a",
		`{"code":-32603,"message":"Internal error"}`:                                                "Internal error",
		`{"success":false,"errors":[{"code":1,"message":"a"}],"messages":[],"result":null}`:         "a",
		`{"message":"None","detail":"a"}`:                                                           "a",
		`{"error":true,"data":{"message":"a"}}`:                                                     "a",
		`{"message":"[{\"msg\":\"a\"}]"}`:                                                           "a",
		`{"error":{"message":"a"}} trailing`:                                                        "a",
		`{"error":{"message":"a","param":NaN}}`:                                                     "a",
		`{"error":{"message":"a\u00e9 cut`:                                                          "aé cut",
		`{"error":{"code":1,"message":"a","x":`:                                                     "a",
		"<?xml version='1.0'?><Error><Code>NoSuchKey</Code><Message>a &amp; b</Message></Error>":    "a & b",
		"<s:Envelope><s:Body><s:Fault><faultstring>a</faultstring></s:Fault></s:Body></s:Envelope>": "a",
		"<html><body><h1>a <b>b</b></h1></body></html>":                                             "a b",
		"<!DOCTYPE html><title>Error</title><pre>Cannot POST /v1</pre>":                             "Cannot POST /v1",
		"<title>404 Not Found</title><pre>use /v2</pre>":                                            "use /v2", "404 page not found": "404 page not found",
		`{"title":"500: Internal Server Error.","detail":"a"}`: "a",
		"<html><title>Error</title></html>":                    "Error",
	} {
		if got := Find([]byte(in)); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestIsSet(t *testing.T) {
	for _, in := range []string{``, `null`, `false`, `""`, `0`, `[]`, `{}`, `[null]`, `"null"`, `"None"`, `"success"`, `"OK"`,
		`{"code":0,"message":""}`, `{"code":"200","message":"success"}`, `{"code":200,"msg":null}`, `{"a":{"b":[]}}`, ` { } `} {
		if IsSet(json.RawMessage(in)) {
			t.Errorf("%q is an error", in)
		}
	}
	for _, in := range []string{`true`, `"a"`, `1`, `["a"]`, `{"code":500,"message":""}`, `{"message":"a"}`, `{"code":0,"message":"a"}`,
		`{"type":"x"}`, `{"error":{"error":true}}`, strings.Repeat("[", 50) + "0" + strings.Repeat("]", 50)} {
		if !IsSet(json.RawMessage(in)) {
			t.Errorf("%q is none", in)
		}
	}
}

func FuzzFind(f *testing.F) {
	f.Add([]byte(`{"error":{"message":"{\"a\":[1]}"}}`))
	f.Add([]byte("event: error\ndata: x"))
	f.Add([]byte("<title>x</title>"))
	f.Fuzz(func(t *testing.T, b []byte) {
		first := Find(b)
		if again := Find(b); again != first {
			t.Errorf("%q, then %q", first, again)
		}
		IsSet(b)
	})
}

// Each level has a cause within it, beside many texts that say only that there was an error. Reading the cause for each
// of them would take 35 to the power of the levels.
func TestFind_ReadsACauseOnce(t *testing.T) {
	inner := `"the quota is used up"`
	for range 5 {
		var b strings.Builder
		b.WriteString(`{"metadata":{"raw":` + inner + `}`)
		for _, name := range fields {
			b.WriteString(`,"` + name + `":"fail"`)
		}
		inner = b.String() + "}"
	}
	if got := Find([]byte(inner)); !strings.Contains(got, "quota") && !strings.Contains(got, "fail") {
		t.Errorf("%q", got)
	}
}
