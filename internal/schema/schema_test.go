package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"agentsite/internal/fault"
)

const weather = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"type": "object",
	"properties": {
		"place": {"type": "string", "title": "Place", "description": "Town or city", "minLength": 2, "maxLength": 80, "examples": ["Bern"]},
		"days": {"type": "integer", "minimum": 1, "exclusiveMaximum": 15, "default": 3},
		"unit": {"$ref": "#/$defs/unit", "description": "Of the temperature"},
		"loud": {"type": "boolean", "default": true},
		"note": {"anyOf": [{"type": "string", "maxLength": 5000}, {"type": "null"}], "default": null},
		"tags": {"type": "array", "items": {"type": "string", "maxLength": 5}, "maxItems": 2},
		"codes": {"type": "array", "items": {"type": "integer"}},
		"area": {"type": "object", "properties": {"lat": {"type": "number"}, "deep": {"type": "object", "properties": {"x": {"type": "string"}}}}, "required": ["lat"]},
		"level": {"oneOf": [{"const": 1, "title": "low"}, {"const": 2, "title": "high"}]},
		"any": {}
	},
	"required": ["place"],
	"additionalProperties": false,
	"$defs": {"unit": {"type": "string", "enum": ["celsius", "kelvin"]}}
}`

func TestFields_FollowTheSchema(t *testing.T) {
	got, err := Fields(json.RawMessage(weather))
	if err != nil {
		t.Fatal(err)
	}
	want := []Field{
		{Name: "place", Path: "place", Title: "Place", Description: "Town or city", Type: Text, Required: true, MaxLength: 80, Examples: []string{"Bern"}},
		{Name: "days", Path: "days", Type: Integer, Default: "3", Min: "1", Max: "14"},
		{Name: "unit", Path: "unit", Description: "Of the temperature", Type: Choice, Options: []string{"celsius", "kelvin"}},
		{Name: "loud", Path: "loud", Type: Boolean, Default: "true"},
		{Name: "note", Path: "note", Type: TextArea, MaxLength: 5000},
		{Name: "tags", Path: "tags", Type: List},
		{Name: "codes", Path: "codes", Type: List},
		{Name: "lat", Path: "area.lat", Type: Number},
		{Name: "deep", Path: "area.deep", Type: JSON},
		{Name: "level", Path: "level", Type: Choice, Options: []string{"1", "2"}, Labels: []string{"low", "high"}},
		{Name: "any", Path: "any", Type: JSON},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func form(values map[string]string) func(string) (string, bool) {
	return func(p string) (string, bool) { v, ok := values[p]; return v, ok }
}

func TestFromForm_BuildsTypedArguments(t *testing.T) {
	values := map[string]string{
		"place": " Bern ", "days": "7", "unit": "kelvin", "loud": "on", "note": "two\r\nlines ", "tags": "a\r\n\r\nb\r\n",
		"codes": "1\n12345678901234567890", "area.lat": "46.9", "area.deep": `{"x":"y"}`, "level": "2", "any": "hello",
	}
	args, wrong, err := FromForm(json.RawMessage(weather), form(values))
	if err != nil || wrong != nil {
		t.Fatal(wrong, err)
	}
	const want = `{"place":"Bern","days":7,"unit":"kelvin","loud":true,"note":"two\nlines ","tags":["a","b"],"codes":[1,12345678901234567890],"area":{"lat":46.9,"deep":{"x":"y"}},"level":2,"any":"hello"}`
	if string(args) != want {
		t.Errorf("%s\nwant %s", args, want)
	}
	if wrong := Validate(json.RawMessage(weather), args); wrong != nil {
		t.Errorf("what the form made does not fit: %v", wrong)
	}
	// The way back shows what was typed.
	back, err := ToForm(json.RawMessage(weather), args)
	if err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(back, func(k, _ string) bool { return k == "any" })
	again, wrong, _ := FromForm(json.RawMessage(weather), form(back))
	if wrong != nil || string(again) != strings.Replace(want, `,"any":"hello"`, "", 1) {
		t.Errorf("back and forth: %s %v", again, wrong)
	}
	// A box without its tick says no where silence would mean yes.
	args, wrong, err = FromForm(json.RawMessage(weather), form(map[string]string{"place": "Bern"}))
	if err != nil || wrong != nil || string(args) != `{"place":"Bern","loud":false}` {
		t.Errorf("%s %v %v", args, wrong, err)
	}
}

func TestFromForm_SaysWhatIsWrong(t *testing.T) {
	args, wrong, err := FromForm(json.RawMessage(weather), form(map[string]string{
		"place": "", "days": "soon", "unit": "miles", "loud": "maybe", "tags": "toolong\nb", "codes": "1\nx", "area.deep": "{", "level": "3",
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"place": "fill this in", "days": "write a whole number", "unit": "choose one of celsius, kelvin", "loud": "say yes or no",
		"tags": "item 1: use at most 5 characters", "codes": "line 2: write a whole number", "area.deep": `write this as JSON, for example {"name": "value"}`, "level": "choose one of 1, 2",
	}
	if d := cmp.Diff(want, wrong); d != "" {
		t.Errorf("%s\n%s", args, d)
	}
	// One part of an optional object makes its required ones required.
	_, wrong, _ = FromForm(json.RawMessage(weather), form(map[string]string{"place": "Bern", "area.deep": "{}"}))
	if d := cmp.Diff(map[string]string{"area.lat": "fill this in"}, wrong); d != "" {
		t.Error(d)
	}
}

func TestValidate_NamesTheField(t *testing.T) {
	for _, tt := range []struct{ schema, args, field, say string }{
		{weather, `{"place":"Bern"}`, "", ""},
		{weather, `{"place":"Bern","days":3.0,"note":null}`, "", ""},
		{weather, `{}`, "place", "fill this in"},
		{weather, ``, "place", "fill this in"},
		{weather, `[]`, "", "one JSON object"},
		{weather, `{"place":"B"}`, "place", "at least 2 characters"},
		{weather, `{"place":7}`, "place", "this must be a text, not a whole number"},
		{weather, `{"place":"Bern","days":15}`, "days", "use less than 15"},
		{weather, `{"place":"Bern","days":0}`, "days", "use 1 or more"},
		{weather, `{"place":"Bern","days":1.5}`, "days", "a whole number"},
		{weather, `{"place":"Bern","city":"x"}`, "city", "no such argument"},
		{weather, `{"place":"Bern","area":{}}`, "area.lat", "fill this in"},
		{weather, `{"place":"Bern","area":{"lat":"x"}}`, "area.lat", "a number"},
		{weather, `{"place":"Bern","area":3}`, "area", "an object"},
		{weather, `{"place":"Bern","tags":["a","b","c"]}`, "tags", "at most 2"},
		{weather, `{"place":"Bern","level":9}`, "level", "choose one of 1, 2"},
		{`{"properties":{"a":{"pattern":"^x"}}}`, `{"a":"y"}`, "a", "pattern ^x"},
		{`{"properties":{"a":{"type":"integer","multipleOf":5}}}`, `{"a":7}`, "a", "multiple of 5"},
		{`{"properties":{"a":{"type":"number","multipleOf":0.1}}}`, `{"a":0.3}`, "", ""},
		{`{"properties":{"a":{},"b":{}},"dependentRequired":{"a":["b"]}}`, `{"a":1}`, "", "do not fit together"},
		{`{"properties":{"a":{"items":[{"type":"string"},{"type":"number"}]}}}`, `{"a":["x","y"]}`, "a", "does not fit"},
		{`{"properties":{"a":{"const":null}}}`, `{"a":1}`, "a", "does not fit"},
		{``, `{"whatever":1}`, "", ""},
		// What is not understood lets everything through.
		{`{"properties":{"a":{"pattern":"(?=x)y"}}}`, `{"a":"z"}`, "", ""},
		{`{"properties":{"a":{"$ref":"https://example.org/x.json"}}}`, `{"a":1}`, "", ""},
		{`{"properties":{"a":{"not":{"$ref":"https://example.org/x.json"}}}}`, `{"a":1}`, "", ""},
		{`{"properties":{"a":{"oneOf":[{"$ref":"other"},{"type":"number"}]}}}`, `{"a":1}`, "", ""},
		{`{"patternProperties":{"(?!x)":{}},"additionalProperties":false}`, `{"a":1}`, "", ""},
		{`{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"a":{"minimum":1,"exclusiveMinimum":true}}}`, `{"a":0}`, "a", "use 1 or more"},
		{`{"properties":{"$ref":{"type":"string"}}}`, `{"$ref":1}`, "$ref", "a text"},
		{`{"properties":{"t":{"$ref":"#/$defs/tree"}},"$defs":{"tree":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/tree"}}}}}}`, `{"t":{"kids":[{"kids":[]}]}}`, "", ""},
		{`{"properties":{"t":{"$ref":"#/$defs/tree"}},"$defs":{"tree":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/tree"}}}}}}`, `{"t":{"kids":3}}`, "t.kids", "a list"},
	} {
		wrong := Validate(json.RawMessage(tt.schema), json.RawMessage(tt.args))
		if tt.say == "" {
			if wrong != nil {
				t.Errorf("%.60s %s: %v", tt.schema, tt.args, wrong)
			}
			continue
		}
		if len(wrong) != 1 || !strings.Contains(wrong[tt.field], tt.say) {
			t.Errorf("%.60s %s: %v, want %s: …%s…", tt.schema, tt.args, wrong, tt.field, tt.say)
		}
	}
}

func TestCheck(t *testing.T) {
	nested := strings.Repeat(`{"properties":{"a":`, 40) + "{}" + strings.Repeat("}}", 40)
	for raw, want := range map[string]string{
		``: "", `{}`: "", weather: "", `{"type":["object","null"]}`: "",
		`{"properties":{"$ref":{"type":"string"}}}`:          "",
		`{"properties":{"a":{"$ref":"#"}}}`:                  "",
		`{"properties":{"a":{"const":{"$ref":"http://x"}}}}`: "",
		`[]`: "not a JSON object", `{"a":`: "not a JSON object", `{} {}`: "not a JSON object",
		`{"type":"string"}`: "must be of type object", `{"type":7}`: "must be of type object",
		`{"properties":{"a":{"$ref":"http://169.254.169.254/x"}}}`: "refers to another document",
		`{"$comment":"` + strings.Repeat("x", MaxBytes) + `"}`:     "larger than",
		nested: "nested more than",
	} {
		err := Check(json.RawMessage(raw))
		if want == "" && err != nil || want != "" && (!fault.Is(err, fault.Invalid) || !strings.Contains(fault.As(err).Safe, want)) {
			t.Errorf("%.80s: %v, want %q", raw, err, want)
		}
	}
}

// hostile schemas and a value for each: none may cost more than a moment.
func hostile() map[string][2]string {
	var wide, fan strings.Builder
	for i := range 30 {
		fmt.Fprintf(&fan, `"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	for i := range 3000 {
		fmt.Fprintf(&wide, `{"const":"%d"},`, i)
	}
	deepValue := strings.Repeat("[", 30) + strings.Repeat("]", 30)
	return map[string][2]string{
		"self":        {`{"$ref":"#"}`, `{"a":1}`},
		"self below":  {`{"properties":{"a":{"$ref":"#/properties/a"}}}`, `{"a":1}`},
		"two":         {`{"properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"$ref":"#/$defs/y"},"y":{"allOf":[{"$ref":"#/$defs/x"}]}}}`, `{"a":1}`},
		"dynamic":     {`{"$dynamicAnchor":"n","properties":{"a":{"$dynamicRef":"#n"}}}`, `{"a":{"a":{}}}`},
		"fan":         {`{"properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{` + fan.String() + `"d30":{"type":"string"}}}`, `{"a":1}`},
		"not":         {`{"properties":{"a":` + strings.Repeat(`{"not":`, 25) + "{}" + strings.Repeat("}", 25) + `}}`, `{"a":1}`},
		"wide":        {`{"properties":{"a":{"anyOf":[` + wide.String() + `{}]}}}`, `{"a":"` + strings.Repeat("x", 200<<10) + `"}`},
		"pattern":     {`{"properties":{"a":{"pattern":"^(a+)+$"}}}`, `{"a":"` + strings.Repeat("a", 100<<10) + `!"}`},
		"repeat":      {`{"properties":{"a":{"pattern":"((a{1,30}){1,30}){1,30}"}}}`, `{"a":"aaaa"}`},
		"huge":        {`{"properties":{"a":{"minLength":1e300,"maxItems":-4,"multipleOf":0,"maximum":1e999}}}`, `{"a":1e999}`},
		"deep":        {`{"properties":{"a":{"items":{"items":{"uniqueItems":true}}}}}`, `{"a":` + deepValue + `}`},
		"unique":      {`{"properties":{"a":{"uniqueItems":true,"items":{"type":"string"}}}}`, `{"a":[` + strings.Repeat(`"x",`, 20000) + `"x"]}`},
		"conditional": {`{"properties":{"a":` + strings.Repeat(`{"if":`, 20) + "{}" + strings.Repeat(`,"then":{},"else":false}`, 20) + `}}`, `{"a":1}`},
		"odd":         {`{"type":"object","properties":[],"required":{},"enum":{},"allOf":[],"$defs":7,"items":"x","additionalProperties":"no"}`, `{"a":1}`},
		"nulls":       {`{"properties":{"a":null,"b":{"type":null,"properties":{"c":null}}},"required":[null]}`, `{"a":1,"b":{"c":1}}`},
		"names":       {`{"properties":{"a.b":{"type":"string"},"a":{"type":"object","properties":{"b":{"type":"string"}}},"":{}}}`, `{"a.b":1,"a":{"b":1}}`},
	}
}

// TestHostileSchemas_CostLittle counts nodes and allocations, because work that
// grows without bounds makes either.
func TestHostileSchemas_CostLittle(t *testing.T) {
	const maxAllocs = 3_000_000
	for name, c := range hostile() {
		raw, args := json.RawMessage(c[0]), json.RawMessage(c[1])
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		exercise(t, raw, args)
		runtime.ReadMemStats(&after)
		if n := after.Mallocs - before.Mallocs; n > maxAllocs {
			t.Errorf("%s takes %d allocations", name, n)
		}
		if root, err := loadSchema(raw); err == nil && countNodes(root) > 4*maxNodes {
			t.Errorf("%s has %d nodes", name, countNodes(root))
		}
	}
}

// exercise calls everything and checks what holds for every input.
func exercise(t *testing.T, raw, args json.RawMessage) {
	t.Helper()
	checked := Check(raw)
	fields, err := Fields(raw)
	if checked == nil && err != nil {
		t.Fatalf("%.200s was accepted, but has no fields: %v", raw, err)
	}
	if len(fields) > maxFields {
		t.Fatalf("%d fields", len(fields))
	}
	paths := make(map[string]bool)
	values := make(map[string]string)
	for _, f := range fields {
		if paths[f.Path] {
			t.Fatalf("two fields at %q", f.Path)
		}
		paths[f.Path] = true
		if f.Name == "" || f.Labels != nil && len(f.Labels) != len(f.Options) || len(f.Options) > maxOptions {
			t.Fatalf("%+v", f)
		}
		values[f.Path] = f.Default
		switch {
		case values[f.Path] != "":
		case len(f.Options) > 0:
			values[f.Path] = f.Options[0]
		case f.Type == Number || f.Type == Integer:
			values[f.Path] = "1"
		default:
			values[f.Path] = "1"
		}
	}
	built, wrong, err := FromForm(raw, form(values))
	if err == nil && !json.Valid(built) {
		t.Fatalf("built %q of %v", built, values)
	}
	for _, m := range []map[string]string{wrong, Validate(raw, args)} {
		for p, say := range m {
			if say == "" || !utf8.ValidString(say) || len(say) > 1000 || strings.Contains(say, "%!") {
				t.Fatalf("%q: %q", p, say)
			}
		}
	}
	// What a form accepted, the check accepts.
	if err == nil && wrong == nil {
		if v := Validate(raw, built); v != nil {
			t.Fatalf("%.200s: %s was accepted, then refused: %v", raw, built, v)
		}
	}
	if _, err := ToForm(raw, args); err != nil && checked == nil {
		t.Fatal(err)
	}
	Sentence(wrong)
}

func FuzzSchema(f *testing.F) {
	f.Add(weather, `{"place":"Bern"}`)
	for _, c := range hostile() {
		if len(c[0])+len(c[1]) < 8<<10 { // large seeds take the fuzzer long to mutate
			f.Add(c[0], c[1])
		}
	}
	f.Fuzz(func(t *testing.T, raw, args string) {
		late := time.AfterFunc(time.Minute, func() { panic("this takes too long") })
		defer late.Stop()
		exercise(t, json.RawMessage(raw), json.RawMessage(args))
	})
}

func TestSentence(t *testing.T) {
	if s := Sentence(map[string]string{"b": "x", "a": "y", "c": "z", "d": "w"}); s != "a: y; b: x; c: z; and 1 more" {
		t.Error(s)
	}
}
