package record_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gowebpki/jcs"
	"pgregory.net/rapid"

	"agentsite/internal/record"
)

var (
	memberName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)
	plainInt   = regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`)
)

// oracle says by other people's code what Canonical says: b is its own RFC
// 8785 form, and holds nothing that payloads may not.
func oracle(b []byte) bool {
	form, err := jcs.Transform(b)
	if err != nil || !bytes.Equal(form, b) || !utf8.Valid(b) || len(b) == 0 || b[0] != '{' {
		return false
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return false
	}
	return plain(v, 0)
}

func plain(v any, depth int) bool {
	switch v := v.(type) {
	case map[string]any:
		for name, x := range v {
			if !memberName.MatchString(name) || !plain(x, depth+1) {
				return false
			}
		}
		return depth < 8
	case []any:
		for _, x := range v {
			if !plain(x, depth+1) {
				return false
			}
		}
		return depth < 8
	case json.Number:
		s := strings.TrimPrefix(v.String(), "-")
		return plainInt.MatchString(v.String()) && (len(s) < 16 || len(s) == 16 && s <= "9007199254740991")
	case string:
		return !strings.Contains(v, "\x00")
	case bool:
		return true
	}
	return false
}

// sample draws a text that is JSON, or nearly.
func sample(t *rapid.T) []byte {
	name := rapid.OneOf(rapid.StringMatching(`[a-z][a-z0-9_]{0,3}`), rapid.SampledFrom([]string{"A", "", "a-b", "ſ", "é", "a\x00", "1a", "_a", strings.Repeat("x", 40), strings.Repeat("x", 41)}))
	number := rapid.OneOf(rapid.Map(rapid.Int64Range(-9007199254740993, 9007199254740993), func(n int64) json.RawMessage {
		b, _ := json.Marshal(n)
		return b
	}), rapid.Map(rapid.SampledFrom([]string{"-0", "0", "1.5", "1.0", "1e3", "1E3", "9007199254740991", "9007199254740992", "-9007199254740992", "01", "-", "1e999", "123456789012345678901234567890"}),
		func(s string) json.RawMessage { return json.RawMessage(s) }))
	var value func(depth int) any
	value = func(depth int) any {
		kind := rapid.IntRange(0, 12).Draw(t, "kind")
		switch {
		case kind == 0 && depth < 9:
			m := map[string]any{}
			for range rapid.IntRange(0, 3).Draw(t, "members") {
				m[name.Draw(t, "name")] = value(depth + 1)
			}
			return m
		case kind == 1 && depth < 9:
			list := []any{}
			for range rapid.IntRange(0, 3).Draw(t, "elements") {
				list = append(list, value(depth+1))
			}
			return list
		case kind == 2 && depth < 9: // deep
			return []any{value(depth + 1)}
		case kind < 7:
			return rapid.String().Draw(t, "text")
		case kind == 7:
			return rapid.SampledFrom([]string{"\x00", "\x01\x1f\x7f", "\b\t\n\f\r\v", "\"\\/", "<>&\u2028\u2029", "\U0001F600\uffff\ue000", "a\u0301"}).Draw(t, "odd")
		case kind == 8:
			return rapid.Bool().Draw(t, "bool")
		case kind == 9 && rapid.IntRange(0, 5).Draw(t, "rare") == 0:
			return nil
		}
		if rapid.IntRange(0, 3).Draw(t, "sane") > 0 {
			return rapid.Int64Range(-1000, 1000).Draw(t, "small")
		}
		return number.Draw(t, "number")
	}
	m := map[string]any{}
	for range rapid.IntRange(0, 4).Draw(t, "members") {
		m[rapid.OneOf(rapid.StringMatching(`[a-z][a-z0-9_]{0,3}`), name).Draw(t, "name")] = value(1)
	}
	raw, err := json.Marshal(m)
	if err != nil { // a number that is none
		return []byte(`{"a":01}`)
	}
	if b, err := jcs.Transform(raw); err == nil && rapid.IntRange(0, 3).Draw(t, "canonical") > 0 {
		return b
	}
	return raw
}

func TestCanonical_AgreesWithJCS(t *testing.T) {
	t.Parallel()
	yes, no := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		b := sample(t)
		for range rapid.IntRange(0, 2).Draw(t, "changes") {
			at := rapid.IntRange(0, len(b)-1).Draw(t, "at")
			with := rapid.SampledFrom([]string{"", "\"", "{", "}", "[", "]", ",", ":", " ", "\\", "\\u0041", "\\u001f", "\\u001F", "\\u0000", "\\n", "\\u000a", "\\/", "0", "-", ".", "e", "null", "true", "\xff", "\xc3", "a", "\n", "\x00", "\\ud800", "\\ud83d\\ude00"}).Draw(t, "with")
			b = append(append(bytes.Clone(b[:at]), with...), b[at+rapid.IntRange(0, 1).Draw(t, "instead"):]...)
			if len(b) == 0 {
				b = []byte("x")
			}
		}
		want := oracle(b)
		if want {
			yes++
		} else {
			no++
		}
		if err := record.Canonical(b); (err == nil) != want {
			t.Fatalf("%q: %v, want ok %v", b, err, want)
		}
	})
	if !t.Failed() && (yes == 0 || no == 0) {
		t.Errorf("%d good, %d bad: the samples say nothing", yes, no)
	}
}

func TestCanonical_SaysWhy(t *testing.T) {
	t.Parallel()
	deep := func(n int) string {
		return `{"a":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + `}`
	}
	for in, want := range map[string]record.Reason{
		`{}`: "", `{"a":[]}`: "", `{"a":{},"b":[1,-1,0]}`: "", `{"a":"\u001f\b\t\n\f\r\"\\/` + "\u007f\u2028" + `"}`: "", deep(8): "",
		deep(9): record.TooDeep, ``: record.NotJSON, `[]`: record.NotJSON, `"a"`: record.NotJSON, `{`: record.NotJSON, `{"a"`: record.NotJSON, `{"a":`: record.NotJSON,
		`{"a":1`: record.NotJSON, `{"a":1,`: record.NotJSON, `{"a":1,}`: record.NotJSON, `{"a":[1,]}`: record.NotJSON, `{}{}`: record.NotJSON, `{} `: record.NotJSON,
		`{"a":tru}`: record.NotJSON, `{"a":"x`: record.NotJSON, `{"a":"` + "\n" + `"}`: record.NotJSON, `{"a":"\x"}`: record.NotJSON, `{"a":"\u12"}`: record.NotJSON, `{"a":01}`: record.NotJSON, `{"a":-}`: record.NotJSON, `{a:1}`: record.NotJSON, `{'a':1}`: record.NotJSON,
		` {}`: record.NotJSON, `{ }`: record.NotCanonical, `{"a": 1}`: record.NotCanonical, `{"a":1, "b":1}`: record.NotCanonical, `{"b":1,"a":1}`: record.NotCanonical,
		`{"a":-0}`: record.NotCanonical, `{"a":"\u0041"}`: record.NotCanonical, `{"a":"\u000a"}`: record.NotCanonical, `{"a":"\u001F"}`: record.NotCanonical, `{"a":"\/"}`: record.NotCanonical, `{"a":"\ud83d\ude00"}`: record.NotCanonical,
		`{"a":1,"a":2}`: record.Duplicate, `{"A":1}`: record.BadName, `{"":1}`: record.BadName, `{"a-b":1}`: record.BadName, `{"\u0061":1}`: record.BadName, `{"ſ":1}`: record.BadName, `{"` + strings.Repeat("a", 41) + `":1}`: record.BadName,
		`{"a":null}`: record.HasNull, `{"a":[null]}`: record.HasNull, `{"a":1.5}`: record.BadNumber, `{"a":1e3}`: record.BadNumber, `{"a":9007199254740992}`: record.BadNumber, `{"a":-9007199254740992}`: record.BadNumber, `{"a":` + strings.Repeat("9", 400) + `}`: record.BadNumber,
		"{\"a\":\"\xff\"}": record.BadText, `{"a":"\u0000"}`: record.BadText, "{\"a\":\"\x00\"}": record.NotJSON,
	} {
		if got := record.ReasonOf(record.Canonical([]byte(in))); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// Whoever sends much makes nobody keep much.
func TestCanonical_AllocatesNothing(t *testing.T) {
	b := []byte(`{"a":[` + strings.Repeat(`"x\n",`, 1000) + `{"b":"` + strings.Repeat(`é`, 1000) + `"}],"c":123}`)
	if n := testing.AllocsPerRun(10, func() {
		if err := record.Canonical(b); err != nil {
			t.Error(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzCanonical(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":[1,-1,{"b":"\u001f\n"}],"c":true}`, `{"a":1,"a":1}`, `{"a":"\ud800"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := record.Canonical(b); (err == nil) != oracle(b) {
			t.Errorf("%q: %v", b, err)
		}
	})
}
