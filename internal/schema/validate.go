package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
)

const missing = "fill this in"

// maxWork bounds the nodes of the schema times the nodes of the value. Beyond it a value is
// accepted unchecked, because the agent that wrote the schema checks its arguments again.
const maxWork = 1 << 19

// Validate checks args, a JSON object, against the schema raw. It returns a sentence per field path,
// with "" for the whole. It returns nil when everything fits, and also when the schema cannot be used
// at all: see Check.
func Validate(raw, args json.RawMessage) map[string]string {
	root, err := loadSchema(raw)
	if err != nil {
		return nil
	}
	if len(args) > maxValueBytes {
		return map[string]string{"": fmt.Sprintf("use at most %d KiB in all", maxValueBytes>>10)}
	}
	if len(bytes.TrimSpace(args)) == 0 {
		args = []byte("{}")
	}
	v, err := decodeJSON(args)
	o, ok := v.(*object)
	if err != nil || !ok {
		return map[string]string{"": "the arguments must be one JSON object, nested at most 32 levels deep"}
	}
	return checkArguments(root, o)
}

// checkArguments checks arguments against an expanded schema and returns one problem per field
// path, nil if there are none.
func checkArguments(root, args *object) map[string]string {
	if countNodes(root)*countNodes(args) > maxWork {
		return nil
	}
	wrong := make(map[string]string)
	collectProblems(root, args, "", 0, wrong)
	if len(wrong) == 0 && !fitsSchema(root, args) {
		wrong[""] = "the arguments do not fit together as the tool describes them"
	}
	if len(wrong) == 0 {
		return nil
	}
	return wrong
}

// collectProblems adds to wrong the fields of o that are missing, unknown or do not fit the schema
// s. at is the prefix of their paths. It enters objects up to depth 4.
func collectProblems(s, o *object, at string, depth int, wrong map[string]string) {
	props := s.object("properties")
	for _, r := range s.list("required") {
		name, _ := r.(string)
		if _, there := o.m[name]; !there {
			wrong[at+name] = missing
		}
	}
	for _, name := range o.keys {
		p, known := props.get(name), props != nil && slices.Contains(props.keys, name)
		switch {
		case !known && s.get("additionalProperties") == false && s.get("patternProperties") == nil:
			wrong[at+cutRunes(name, 100)] = "there is no such argument"
		case !known || fitsSchema(p, o.m[name]):
		default:
			sub, inner := dropNull(asObject(p)), asValue(o.m[name])
			before := len(wrong)
			if inner != nil && typeOf(sub) == "object" && depth < 4 {
				collectProblems(sub, inner, at+name+".", depth+1, wrong)
			}
			if len(wrong) == before {
				wrong[at+name] = explainMismatch(sub, o.m[name])
			}
		}
	}
}

func asObject(v any) *object {
	if o, ok := v.(*object); ok {
		return o
	}
	return newObject()
}

func asValue(v any) *object { o, _ := v.(*object); return o }

// fitsSchema runs the validator on a value. If the validator rejects the schema itself, every value
// fits.
func fitsSchema(schema, value any) bool {
	if schema == true || schema == nil {
		return true
	}
	b, err := json.Marshal(withoutTexts(schema, 0))
	if err != nil {
		return true
	}
	var s jsonschema.Schema
	if json.Unmarshal(b, &s) != nil {
		return true
	}
	r, err := s.Resolve(&jsonschema.ResolveOptions{})
	if err != nil {
		return true
	}
	return r.Validate(nativeValue(value)) == nil
}

// withoutTexts returns a schema without the keywords that do not affect validation, because their
// texts may be long and the validator would check defaults.
func withoutTexts(v any, depth int) any {
	switch v := v.(type) {
	case *object:
		out := make(map[string]any, len(v.m))
		for k, e := range v.m {
			switch {
			case slices.Contains(textKeywords, k) || k == "default" || k == "examples":
			case slices.Contains(mapKeywords, k):
				m := make(map[string]any)
				for name, s := range asObject(e).m {
					m[name] = withoutTexts(s, depth+1)
				}
				out[k] = m
			case slices.Contains(schemaKeywords, k):
				out[k] = withoutTexts(e, depth+1)
			case slices.Contains(listKeywords, k):
				list, _ := e.([]any)
				to := make([]any, len(list))
				for i, s := range list {
					to[i] = withoutTexts(s, depth+1)
				}
				out[k] = to
			default:
				out[k] = e
			}
		}
		return out
	}
	return v
}

// nativeValue converts a value to the Go types that the validator expects. A number beyond float64
// becomes the largest float64, which exceeds any bound.
func nativeValue(v any) any {
	switch v := v.(type) {
	case *object:
		m := make(map[string]any, len(v.m))
		for k, e := range v.m {
			m[k] = nativeValue(e)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = nativeValue(e)
		}
		return list
	case json.Number:
		f, err := v.Float64()
		if err != nil {
			return math.Copysign(math.MaxFloat64, f)
		}
		return f
	}
	return v
}

func countNodes(v any) int {
	n := 1
	switch v := v.(type) {
	case *object:
		for _, e := range v.m {
			n += countNodes(e)
		}
	case []any:
		for _, e := range v {
			n += countNodes(e)
		}
	case string:
		// A long text, such as a pattern, counts as several nodes.
		n += len(v) / 64
	}
	return n
}

// kinds holds the JSON types in words for error sentences.
var kinds = map[string]string{
	"string": "a text", "number": "a number", "integer": "a whole number", "boolean": "true or false",
	"array": "a list", "object": "an object", "null": "null",
}

func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case bool:
		return "boolean"
	case []any:
		return "array"
	case *object:
		return "object"
	case json.Number:
		if f, err := v.Float64(); err == nil && f == math.Trunc(f) {
			return "integer"
		}
		return "number"
	}
	return ""
}

// explainMismatch returns a sentence on why v, which the validator refused, does not fit s. It is a
// general one if no keyword explains the refusal.
func explainMismatch(s *object, v any) string {
	if values := enumOptions(s).values; len(values) > 0 {
		names := make([]string, len(values))
		for i, o := range values {
			names[i] = typedText(o)
		}
		if !slices.Contains(names, typedText(v)) {
			return "choose one of " + someOf(names)
		}
	}
	have, want := kindOf(v), typeOf(s)
	if want != "" && have != want && !(want == "number" && have == "integer") {
		return "this must be " + kinds[want] + ", not " + kinds[have]
	}
	switch v := v.(type) {
	case string:
		n := utf8.RuneCountInString(v)
		if m, ok := numberAt(s, "maxLength"); ok && float64(n) > m {
			return fmt.Sprintf("use at most %v characters", m)
		}
		if m, ok := numberAt(s, "minLength"); ok && float64(n) < m {
			return fmt.Sprintf("use at least %v characters", m)
		}
		if p := s.text("pattern"); p != "" && !matchesPattern(p, v) {
			return "this must match the pattern " + cutRunes(p, 100)
		}
	case json.Number:
		f, _ := v.Float64()
		if m, ok := numberAt(s, "minimum"); ok && f < m {
			return fmt.Sprintf("use %s or more", s.get("minimum"))
		}
		if m, ok := numberAt(s, "maximum"); ok && f > m {
			return fmt.Sprintf("use %s or less", s.get("maximum"))
		}
		if m, ok := numberAt(s, "exclusiveMinimum"); ok && f <= m {
			return fmt.Sprintf("use more than %s", s.get("exclusiveMinimum"))
		}
		if m, ok := numberAt(s, "exclusiveMaximum"); ok && f >= m {
			return fmt.Sprintf("use less than %s", s.get("exclusiveMaximum"))
		}
		if n, ok := s.get("multipleOf").(json.Number); ok {
			return "use a multiple of " + n.String()
		}
	case []any:
		if m, ok := numberAt(s, "minItems"); ok && float64(len(v)) < m {
			return fmt.Sprintf("give at least %v", m)
		}
		if m, ok := numberAt(s, "maxItems"); ok && float64(len(v)) > m {
			return fmt.Sprintf("give at most %v", m)
		}
		for i, e := range v {
			if items, ok := s.get("items").(*object); ok && s.get("prefixItems") == nil && !fitsSchema(items, e) {
				return fmt.Sprintf("item %d: %s", i+1, explainMismatch(dropNull(items), e))
			}
			if i >= 20 {
				break
			}
		}
		if s.get("uniqueItems") == true {
			return "give each item once"
		}
	}
	return "this value does not fit the tool's schema"
}

func numberAt(s *object, k string) (float64, bool) {
	n, ok := s.get(k).(json.Number)
	if !ok {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil
}

func matchesPattern(pattern, s string) bool {
	re, err := regexp.Compile(pattern)
	return err != nil || re.MatchString(s)
}

// Sentence joins a result of Validate or FromForm into one line for callers without a form: at most
// three fields, sorted by path.
func Sentence(wrong map[string]string) string {
	names := make([]string, 0, len(wrong))
	for n := range wrong {
		names = append(names, n)
	}
	slices.Sort(names)
	var parts []string
	for _, n := range names[:min(len(names), 3)] {
		if n == "" {
			parts = append(parts, wrong[n])
			continue
		}
		parts = append(parts, n+": "+wrong[n])
	}
	s := strings.Join(parts, "; ")
	if len(names) > 3 {
		s += fmt.Sprintf("; and %d more", len(names)-3)
	}
	return s
}
