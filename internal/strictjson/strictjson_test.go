package strictjson_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"agentsite/internal/strictjson"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	many := func(last string) string {
		var b strings.Builder
		b.WriteByte('{')
		for i := range 40 {
			b.WriteString(`"n` + strings.Repeat("x", i) + `":1,`)
		}
		return b.String() + `"` + last + `":1}`
	}
	for in, want := range map[string]error{
		`{"a":1,"b":[{"a":1},{"a":2}],"c":"\u00e9\ud83d\ude00"}`: nil,
		`{"a":1,"A":2}`:            nil,
		`"\\u0000"`:                nil,
		`["a","a"]`:                nil,
		many("other"):              nil,
		many("nxxx"):               &strictjson.TwiceError{Name: "nxxx"},
		`{"a":1,"a":2}`:            &strictjson.TwiceError{Name: "a"},
		`{"b":{"a":1,"\u0061":2}}`: &strictjson.TwiceError{Name: "a"},
		"\"\xff\"":                 strictjson.ErrUTF8,
		`"\u0000"`:                 strictjson.ErrNUL,
		`{"a\u0000":1}`:            strictjson.ErrNUL,
		`"\ud800"`:                 strictjson.ErrSurrogate,
		`"\ud800x"`:                strictjson.ErrSurrogate,
		`"\ud800\n"`:               strictjson.ErrSurrogate,
		`"\ude00"`:                 strictjson.ErrSurrogate,
		`"\ud800\ud800"`:           strictjson.ErrSurrogate,
		strings.Repeat("[", 64) + strings.Repeat("]", 64):           nil,
		strings.Repeat("[", 65) + strings.Repeat("]", 65):           strictjson.ErrDepth,
		strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65): strictjson.ErrDepth,
	} {
		got := strictjson.Check([]byte(in))
		if twice, ok := errors.AsType[*strictjson.TwiceError](want); ok {
			if is, ok := errors.AsType[*strictjson.TwiceError](got); !ok || is.Name != twice.Name {
				t.Errorf("%.80s: %v, want %v", in, got, want)
			}
			continue
		}
		if !errors.Is(got, want) {
			t.Errorf("%.80s: %v, want %v", in, got, want)
		}
	}
	for _, in := range []string{``, `{`, `{"a":1}x`, `{"a":1,}`, "\"\x00\"", `01`, `nul`} {
		if _, ok := errors.AsType[*json.SyntaxError](strictjson.Check([]byte(in))); !ok {
			t.Errorf("%q is no syntax error", in)
		}
	}
}

func TestSplit(t *testing.T) {
	t.Parallel()
	o, ok := strictjson.Split([]byte(` { "a" : [1, {"x":","}] , "B\u0041":"q\"}" ,"n":null,"o":{"p":{}} } `))
	if !ok || len(o) != 4 || string(o.Get("a")) != `[1, {"x":","}]` || string(o.Get("BA")) != `"q\"}"` || string(o.Get("n")) != "null" || o.Get("A") != nil {
		t.Fatalf("%v %q", ok, o)
	}
	if s, ok := o.Text("BA"); !ok || s != `q"}` {
		t.Errorf("%q %v", s, ok)
	}
	if s, ok := o.Text("none"); !ok || s != "" {
		t.Errorf("%q %v", s, ok)
	}
	if _, ok := o.Text("n"); ok {
		t.Error("null is a text")
	}
	if p, ok := o.Object("o"); !ok || len(p) != 1 || p[0].Name != "p" {
		t.Errorf("%q %v", p, ok)
	}
	if _, ok := o.Object("a"); ok {
		t.Error("a list is an object")
	}
	for _, in := range []string{"", "[]", "1", `"{}"`} {
		if _, ok := strictjson.Split([]byte(in)); ok {
			t.Errorf("%q is an object", in)
		}
	}
}

// FuzzSplit holds what is read against encoding/json.
func FuzzSplit(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":1}`, `{"a":{"b":[1,2,{"c":"}"}]},"d":"\u0061\\\""}`, `[{"a":1,"a":2}]`, `{"a":1,"\u0061":2}`, "{\"\xff\":1}", `"\ud800"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if strictjson.Check(b) != nil {
			return
		}
		o, ok := strictjson.Split(b)
		var want map[string]json.RawMessage
		if err := json.Unmarshal(b, &want); (err == nil && want != nil) != ok {
			t.Fatalf("%q: %v, %v", b, ok, err)
		}
		if len(o) != len(want) {
			t.Fatalf("%q: %d members, want %d", b, len(o), len(want))
		}
		for _, m := range o {
			if string(want[m.Name]) != string(m.Value) {
				t.Errorf("%q: %q is %q, want %q", b, m.Name, m.Value, want[m.Name])
			}
		}
	})
}
