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

// maxWork bounds the schema's nodes times the value's: beyond it a value is
// not judged, for whoever made the schema judges it again.
const maxWork = 1 << 19

// Validate says where args, a JSON object, does not fit the schema raw: a
// sentence by field path, "" being the whole. It returns nil when everything
// fits, and also when the schema cannot be used at all: see Check.
func Validate(raw, args json.RawMessage) map[string]string {
	root, err := load(raw)
	if err != nil {
		return nil
	}
	if len(args) > maxValueBytes {
		return map[string]string{"": fmt.Sprintf("use at most %d KiB in all", maxValueBytes>>10)}
	}
	if len(bytes.TrimSpace(args)) == 0 {
		args = []byte("{}")
	}
	v, err := decode(args)
	o, ok := v.(*object)
	if err != nil || !ok {
		return map[string]string{"": "the arguments must be one JSON object, nested at most 32 levels deep"}
	}
	return check(root, o)
}

// check judges arguments by an expanded schema.
func check(root, args *object) map[string]string {
	if count(root)*count(args) > maxWork {
		return nil
	}
	wrong := make(map[string]string)
	blame(root, args, "", 0, wrong)
	if len(wrong) == 0 && !fits(root, args) {
		wrong[""] = "the arguments do not fit together as the tool describes them"
	}
	if len(wrong) == 0 {
		return nil
	}
	return wrong
}

// blame finds the fields of o that are missing, unknown or do not fit.
func blame(s, o *object, at string, depth int, wrong map[string]string) {
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
			wrong[at+short(name, 100)] = "there is no such argument"
		case !known || fits(p, o.m[name]):
		default:
			sub, inner := plainly(asObject(p)), asValue(o.m[name])
			before := len(wrong)
			if inner != nil && typeOf(sub) == "object" && depth < 4 {
				blame(sub, inner, at+name+".", depth+1, wrong)
			}
			if len(wrong) == before {
				wrong[at+name] = complaint(sub, o.m[name])
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

// fits asks the validator. A schema that it does not take fits everything.
func fits(schema, value any) bool {
	if schema == true || schema == nil {
		return true
	}
	b, err := json.Marshal(bare(schema, 0))
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
	return r.Validate(native(value)) == nil
}

// bare is a schema without what says nothing about validity: texts in it may
// be long, defaults need not fit.
func bare(v any, depth int) any {
	switch v := v.(type) {
	case *object:
		out := make(map[string]any, len(v.m))
		for k, e := range v.m {
			switch {
			case slices.Contains(textKeywords, k) || k == "default" || k == "examples":
			case slices.Contains(mapKeywords, k):
				m := make(map[string]any)
				for name, s := range asObject(e).m {
					m[name] = bare(s, depth+1)
				}
				out[k] = m
			case slices.Contains(schemaKeywords, k):
				out[k] = bare(e, depth+1)
			case slices.Contains(listKeywords, k):
				list, _ := e.([]any)
				to := make([]any, len(list))
				for i, s := range list {
					to[i] = bare(s, depth+1)
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

// native is a value as the validator takes it. A number beyond float64 stays
// one that no bound admits.
func native(v any) any {
	switch v := v.(type) {
	case *object:
		m := make(map[string]any, len(v.m))
		for k, e := range v.m {
			m[k] = native(e)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = native(e)
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

func count(v any) int {
	n := 1
	switch v := v.(type) {
	case *object:
		for _, e := range v.m {
			n += count(e)
		}
	case []any:
		for _, e := range v {
			n += count(e)
		}
	case string:
		// Patterns and messages cost by the length.
		n += len(v) / 64
	}
	return n
}

// kinds names the JSON types for a sentence.
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

// complaint says what about v does not fit s, which the validator refused.
func complaint(s *object, v any) string {
	if values, _ := options(s); len(values) > 0 {
		names := make([]string, len(values))
		for i, o := range values {
			names[i] = typed(o)
		}
		if !slices.Contains(names, typed(v)) {
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
		if m, ok := limit(s, "maxLength"); ok && float64(n) > m {
			return fmt.Sprintf("use at most %v characters", m)
		}
		if m, ok := limit(s, "minLength"); ok && float64(n) < m {
			return fmt.Sprintf("use at least %v characters", m)
		}
		if p := s.text("pattern"); p != "" && !matches(p, v) {
			return "this must match the pattern " + short(p, 100)
		}
	case json.Number:
		f, _ := v.Float64()
		for _, b := range []struct {
			key, say string
			bad      func(m float64) bool
		}{
			{"minimum", "use %s or more", func(m float64) bool { return f < m }},
			{"maximum", "use %s or less", func(m float64) bool { return f > m }},
			{"exclusiveMinimum", "use more than %s", func(m float64) bool { return f <= m }},
			{"exclusiveMaximum", "use less than %s", func(m float64) bool { return f >= m }},
		} {
			if m, ok := limit(s, b.key); ok && b.bad(m) {
				return fmt.Sprintf(b.say, s.get(b.key))
			}
		}
		if n, ok := s.get("multipleOf").(json.Number); ok {
			return "use a multiple of " + n.String()
		}
	case []any:
		if m, ok := limit(s, "minItems"); ok && float64(len(v)) < m {
			return fmt.Sprintf("give at least %v", m)
		}
		if m, ok := limit(s, "maxItems"); ok && float64(len(v)) > m {
			return fmt.Sprintf("give at most %v", m)
		}
		for i, e := range v {
			if items, ok := s.get("items").(*object); ok && s.get("prefixItems") == nil && !fits(items, e) {
				return fmt.Sprintf("item %d: %s", i+1, complaint(plainly(items), e))
			}
			if i >= 20 {
				break
			}
		}
		if s.get("uniqueItems") == true {
			return "give each item once"
		}
	}
	return "this value does not fit what the tool describes"
}

func limit(s *object, k string) (float64, bool) {
	n, ok := s.get(k).(json.Number)
	if !ok {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil
}

func matches(pattern, s string) bool {
	re, err := regexp.Compile(pattern)
	return err != nil || re.MatchString(s)
}

// Sentence makes one line of what Validate or FromForm found, for places that
// show no form: at most three fields, in order.
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
