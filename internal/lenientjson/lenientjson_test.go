package lenientjson

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

type named struct {
	Name string `json:"name"`
}

func (n *named) SetText(s string) { n.Name = s }

type card struct {
	Text    string            `json:"text"`
	Count   int               `json:"count"`
	Small   uint8             `json:"small"`
	Ratio   float64           `json:"ratio"`
	On      bool              `json:"on"`
	Object  struct{ A int }   `json:"object"`
	Named   named             `json:"named"`
	Map     map[string]string `json:"map"`
	Texts   []string          `json:"texts"`
	Objects []struct {
		ID string `json:"id"`
	} `json:"objects"`
	Pointer *struct{ A int }  `json:"pointer"`
	Raw     json.RawMessage   `json:"raw"`
	Raws    []json.RawMessage `json:"raws"`
	Any     any               `json:"any"`
}

// form returns the decoded card in JSON, without its empty fields.
func form(t *testing.T, in string) map[string]any {
	t.Helper()
	var c card
	if err := Decode([]byte(in), &c); err != nil {
		t.Fatalf("%s: %v", in, err)
	}
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	for k, v := range out {
		switch b, _ := json.Marshal(v); string(b) {
		case `null`, `""`, `0`, `false`, `{"A":0}`, `{"name":""}`, `[]`, `{}`:
			delete(out, k)
		}
	}
	return out
}

func TestDecode_TakesOtherForms(t *testing.T) {
	for in, want := range map[string]string{
		"\xef\xbb\xbf{\"text\":\"a\"}": `{"text":"a"}`,
		"\xff\xfe{\x00}\x00":           `{}`,
		"\xfe\xff\x00{\x00}":           `{}`,
		`null`:                         `{}`,
		`[]`:                           `{}`,
		`"x"`:                          `{}`,
		`{"text":7}`:                   `{"text":"7"}`,
		`{"text":true}`:                `{"text":"true"}`,
		`{"text":null}`:                `{}`,
		`{"text":{}}`:                  `{}`,
		`{"text":["a",1,null,"b"]}`:    `{"text":"a\n1\nb"}`,
		`{"count":12.0}`:               `{"count":12}`,
		`{"count":1746709563.49}`:      `{"count":1746709563}`,
		`{"count":"12"}`:               `{"count":12}`,
		`{"count":" 12.0 "}`:           `{"count":12}`,
		`{"count":"soon"}`:             `{}`,
		`{"count":{}}`:                 `{}`,
		`{"count":true}`:               `{"count":1}`,
		`{"count":1e400}`:              `{"count":4611686018427387904}`,
		`{"small":300}`:                `{}`,
		`{"small":"9"}`:                `{"small":9}`,
		`{"ratio":"0.5"}`:              `{"ratio":0.5}`,
		`{"on":"true"}`:                `{"on":true}`,
		`{"on":1}`:                     `{"on":true}`,
		`{"on":"False"}`:               `{}`,
		`{"on":[]}`:                    `{}`,
		`{"object":[]}`:                `{}`,
		`{"object":null}`:              `{}`,
		`{"object":"x"}`:               `{}`,
		`{"object":{"A":"3"}}`:         `{"object":{"A":3}}`,
		`{"named":"Acme"}`:             `{"named":{"name":"Acme"}}`,
		`{"named":["Acme"]}`:           `{}`,
		`{"map":[]}`:                   `{}`,
		`{"map":{"a":1}}`:              `{"map":{"a":"1"}}`,
		`{"texts":"a"}`:                `{"texts":["a"]}`,
		`{"texts":null}`:               `{}`,
		`{"texts":["a",null,2]}`:       `{"texts":["a","2"]}`,
		`{"texts":{"0":"a","2":"b"}}`:  `{"texts":["a","b"]}`,
		`{"texts":{}}`:                 `{}`,
		`{"objects":{"id":"x"}}`:       `{"objects":[{"id":"x"}]}`,
		`{"objects":[7,{"id":3},null,"x",{"id":[]}]}`: `{"objects":[{"id":"3"},{"id":""}]}`,
		`{"pointer":[]}`:                `{}`,
		`{"pointer":false}`:             `{}`,
		`{"raw":[1, "x"],"any":[null]}`: `{"raw":[1,"x"],"any":[null]}`,
		`{"raws":{"a":1}}`:              `{"raws":[{"a":1}]}`,
		`{"text":"a","text":"b"}`:       `{"text":"b"}`,
		"{\"text\":\"a\xff\"}":          `{"text":"a�"}`,
	} {
		var expected map[string]any
		if err := json.Unmarshal([]byte(want), &expected); err != nil {
			t.Fatal(want, err)
		}
		if diff := cmp.Diff(expected, form(t, in)); diff != "" {
			t.Errorf("%s: %s", in, diff)
		}
	}
}

func TestDecode_RefusesWhatIsNoJSON(t *testing.T) {
	for _, in := range []string{``, `{`, `nope`, `<html>`, `{"a":1}}`, `{"a":}`} {
		var c card
		if Decode([]byte(in), &c) == nil {
			t.Errorf("%q was decoded", in)
		}
	}
}

// Any JSON decodes: a value in another form costs only itself.
func TestDecode_TakesAnyValueInAnyField(t *testing.T) {
	value := rapid.SampledFrom([]string{`null`, `true`, `0`, `-1.5`, `1e30`, `""`, `"7"`, `"x"`, `[]`, `{}`, `[null]`,
		`[[]]`, `[{}]`, `{"a":{}}`, `{"0":1}`, `["a",{"id":1}]`})
	fields := []string{"text", "count", "small", "ratio", "on", "object", "named", "map", "texts", "objects",
		"pointer", "raw", "raws", "any", "unknown"}
	rapid.Check(t, func(t *rapid.T) {
		in := `{"last":1`
		for _, f := range fields {
			in += `,"` + f + `":` + value.Draw(t, f)
		}
		var c struct {
			card
			Last int `json:"last"`
		}
		if err := Decode([]byte(in+"}"), &c); err != nil || c.Last != 1 {
			t.Fatalf("%s: %v", in, err)
		}
	})
}

func TestOrObject(t *testing.T) {
	for in, want := range map[string]string{``: `{}`, `null`: `{}`, `[]`: `{}`, ` [ ] `: `{}`, `{"a":1}`: `{"a":1}`,
		`[1]`: `[1]`, `"x"`: `"x"`, `[[]]`: `[[]]`} {
		if got := string(OrObject([]byte(in))); got != want {
			t.Errorf("%q: %s", in, got)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"texts":{"0":[]},"objects":[{"id":1}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var c card
		if err := Decode(b, &c); err == nil && !json.Valid(TrimMark(b)) {
			t.Errorf("%q was decoded", b)
		}
	})
}
