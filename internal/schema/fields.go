package schema

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// Type is the kind of form control for a field.
type Type string

// The kinds of form controls.
const (
	Text     Type = "text"
	TextArea Type = "textarea"
	Number   Type = "number"
	Integer  Type = "integer"
	Boolean  Type = "boolean"
	Choice   Type = "choice" // one of Options
	List     Type = "list"   // text area with one item per line
	JSON     Type = "json"   // text area that takes any JSON value
)

// Field is one field of a form for a tool's arguments. Default and Options are texts in the form
// that people type and FromForm parses.
type Field struct {
	Name        string // name of the argument
	Path        string // key of the field in the form: Name, or object.Name for a field inside an object
	Title       string
	Description string
	Type        Type
	Required    bool
	Default     string
	Options     []string
	// Labels are the texts to show for Options, one each; nil shows the options themselves.
	Labels   []string
	Min, Max string // bounds of a number as text, "" for none
	// MaxLength bounds a text in characters, 0 for none.
	MaxLength int
	Format    string
	Examples  []string
}

const (
	maxFields   = 64
	maxOptions  = 200
	maxExamples = 5
	maxShown    = 300  // runes of a title, an option or an example
	maxText     = 1000 // runes of a description
	maxDefault  = 4000
)

// spec is a Field together with the data that FromForm needs to build its value.
type spec struct {
	Field
	schema *object
	keys   []string // path of the value in the arguments
	kind   string   // JSON type of the value, "" for any
	values []any    // values that Options stand for, in the same order
	of     string   // JSON type of the items of a List
}

// Fields returns the fields of a form for the arguments of the schema raw, in the schema's order,
// at most 64. If there are more, optional ones are left out first. The error is an Invalid fault
// about the schema.
func Fields(raw json.RawMessage) ([]Field, error) {
	specs, _, err := specsOf(raw)
	if err != nil {
		return nil, err
	}
	out := make([]Field, len(specs))
	for i, s := range specs {
		out[i] = s.Field
	}
	return out, nil
}

func specsOf(raw json.RawMessage) ([]spec, *object, error) {
	root, err := loadSchema(raw)
	if err != nil {
		return nil, nil, err
	}
	var out []spec
	props := root.object("properties")
	if props == nil {
		return nil, root, nil
	}
	required := root.list("required")
	for _, name := range props.keys {
		if name == "" || len(name) > 200 {
			continue
		}
		need := slices.Contains(required, any(name))
		s := describeField(name, props.m[name])
		s.Path, s.keys, s.Required = name, []string{name}, need
		if inner := s.flatProperties(props); inner != nil {
			subRequired := s.schema.list("required")
			for _, sub := range inner.keys {
				f := describeField(sub, inner.m[sub])
				f.Path, f.keys = name+"."+sub, []string{name, sub}
				f.Required = need && slices.Contains(subRequired, any(sub))
				out = append(out, f)
			}
			continue
		}
		out = append(out, s)
	}
	if len(out) > maxFields {
		// Optional fields are cut off first.
		slices.SortStableFunc(out, func(a, b spec) int {
			if a.Required == b.Required {
				return 0
			}
			if a.Required {
				return -1
			}
			return 1
		})
		out = out[:maxFields]
	}
	return out, root, nil
}

// flatProperties returns the properties of an object that the form shows field by field, and nil if
// the object is one JSON field: it has many properties, a default, or a path that would be
// ambiguous.
func (s *spec) flatProperties(siblings *object) *object {
	if s.kind != "object" {
		return nil
	}
	inner := s.schema.object("properties")
	if inner == nil || len(inner.keys) == 0 || len(inner.keys) > 12 || s.schema.get("default") != nil {
		return nil
	}
	for _, k := range inner.keys {
		if k == "" || len(k) > 200 || strings.Contains(k, ".") || strings.Contains(s.Name, ".") ||
			siblings.m[s.Name+"."+k] != nil {
			return nil
		}
	}
	return inner
}

// dropNull simplifies a schema of the form "this or null" to "this", because forms leave an
// argument out instead of sending null. s is not changed.
func dropNull(s *object) *object {
	for range 4 {
		var next *object
		for _, k := range []string{"anyOf", "oneOf", "allOf"} {
			var real []*object
			for _, v := range s.list(k) {
				if o, ok := v.(*object); ok && o.text("type") != "null" {
					real = append(real, o)
				}
			}
			if len(real) == 1 && s.get("type") == nil && s.get("enum") == nil {
				next = newObject()
				for _, name := range real[0].keys {
					next.put(name, real[0].m[name])
				}
				for _, name := range s.keys {
					if name != k {
						next.put(name, s.m[name])
					}
				}
			}
		}
		if next == nil {
			return s
		}
		s = next
	}
	return s
}

func typeOf(s *object) string {
	if t := s.text("type"); t != "" {
		return t
	}
	kind := ""
	for _, t := range s.list("type") {
		if t == "null" {
			continue
		}
		if kind != "" {
			return ""
		}
		kind, _ = t.(string)
	}
	if kind == "" && s.get("properties") != nil {
		return "object"
	}
	return kind
}

// describeField returns the form field for a property. A property that no other control fits
// becomes a JSON field.
func describeField(name string, v any) spec {
	s, ok := v.(*object)
	if !ok {
		s = newObject()
	}
	s = dropNull(s)
	f := spec{schema: s, kind: typeOf(s), Field: Field{
		Name: name, Type: JSON, Title: cutRunes(s.text("title"), maxShown),
		Description: cutRunes(s.text("description"), maxText), Format: cutRunes(s.text("format"), 40),
	}}
	if enum := enumOptions(s); len(enum.values) > 0 {
		f.Type, f.values = Choice, enum.values
		for _, v := range enum.values {
			f.Options = append(f.Options, typedText(v))
		}
		if enum.labels != nil {
			f.Labels = enum.labels
		}
	} else {
		f.setControl(s)
	}
	if d := s.get("default"); d != nil {
		f.Default = f.formText(d)
	}
	for _, e := range s.list("examples") {
		if t := f.formText(e); t != "" && utf8.RuneCountInString(t) <= maxShown && len(f.Examples) < maxExamples {
			f.Examples = append(f.Examples, t)
		}
	}
	return f
}

func (f *spec) setControl(s *object) {
	switch f.kind {
	case "string":
		f.Type = Text
		if n, ok := s.get("maxLength").(json.Number); ok {
			i, _ := n.Int64()
			f.MaxLength = int(i)
		}
		media := s.text("contentMediaType")
		if f.MaxLength > 200 || media != "" ||
			slices.Contains([]string{"text", "content", "body", "code", "message", "prompt", "markdown", "html"},
				strings.ToLower(f.Name)) {
			f.Type = TextArea
		}
	case "number", "integer":
		f.Type = Number
		if f.kind == "integer" {
			f.Type = Integer
		}
		f.Min, f.Max = boundText(s, "minimum"), boundText(s, "maximum")
		// Number inputs have only inclusive bounds. An exclusive bound of an integer becomes the
		// next integer.
		if f.kind == "integer" {
			if n, ok := s.get("exclusiveMinimum").(json.Number); ok && f.Min == "" {
				f.Min = nextInteger(n, 1)
			}
			if n, ok := s.get("exclusiveMaximum").(json.Number); ok && f.Max == "" {
				f.Max = nextInteger(n, -1)
			}
		}
	case "boolean":
		f.Type = Boolean
	case "array":
		items, ok := s.get("items").(*object)
		if !ok || s.get("prefixItems") != nil {
			return
		}
		items = dropNull(items)
		switch of := typeOf(items); of {
		case "string", "number", "integer":
			f.Type, f.of = List, of
			if enum := enumOptions(items); len(enum.values) > 0 {
				f.values, f.Labels = enum.values, enum.labels
				for _, v := range enum.values {
					f.Options = append(f.Options, typedText(v))
				}
			}
		}
	}
}

func boundText(s *object, k string) string {
	n, _ := s.get(k).(json.Number)
	return cutRunes(n.String(), 30)
}

func nextInteger(n json.Number, step int64) string {
	i, err := n.Int64()
	if err != nil || i > 1<<53 || i < -1<<53 {
		return ""
	}
	b, _ := json.Marshal(i + step)
	return string(b)
}

// enumeration holds the allowed values of a field. labels has one text per value, or is nil.
type enumeration struct {
	values []any
	labels []string
}

// enumOptions returns the allowed values of a schema. It returns none if values are too many, too
// long or not distinct as texts, because a form could not offer them.
func enumOptions(s *object) enumeration {
	var values []any
	var labels []string
	switch {
	case s.get("enum") != nil:
		for _, v := range s.list("enum") {
			if v != nil {
				values = append(values, v)
			}
		}
	case s.m["const"] != nil:
		values = []any{s.m["const"]}
	default:
		list := s.list("oneOf")
		if list == nil {
			list = s.list("anyOf")
		}
		for _, v := range list {
			o, ok := v.(*object)
			if !ok || o.m["const"] == nil {
				return enumeration{}
			}
			values = append(values, o.m["const"])
			label := o.text("title")
			if label == "" {
				label = typedText(o.m["const"])
			}
			labels = append(labels, cutRunes(label, maxShown))
		}
	}
	if len(values) > maxOptions {
		return enumeration{}
	}
	seen := make(map[string]bool)
	for _, v := range values {
		t := typedText(v)
		if utf8.RuneCountInString(t) > maxShown || seen[t] || strings.ContainsAny(t, "\r\n") {
			return enumeration{}
		}
		seen[t] = true
	}
	return enumeration{values, labels}
}

// formText returns a value as text that FromForm parses back for this field; "" if there is none.
func (f *spec) formText(v any) string {
	var t string
	switch {
	case f.Type == List:
		var lines []string
		list, ok := v.([]any)
		for _, e := range list {
			line := typedText(e)
			ok = ok && !strings.ContainsAny(line, "\r\n")
			lines = append(lines, line)
		}
		if !ok {
			return ""
		}
		t = strings.Join(lines, "\n")
	case f.Type == JSON:
		b, err := json.Marshal(v)
		if err != nil {
			return ""
		}
		t = string(b)
	default:
		t = typedText(v)
		if f.Type == Choice && !slices.Contains(f.Options, t) {
			return ""
		}
	}
	if len(t) > maxDefault || !utf8.ValidString(t) {
		return ""
	}
	return t
}

// typedText returns a single value as text: a string unchanged, anything else as JSON.
func typedText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

func cutRunes(s string, runes int) string {
	s = strings.ToValidUTF8(strings.TrimSpace(s), "")
	if utf8.RuneCountInString(s) <= runes {
		return s
	}
	r := []rune(s)
	return string(r[:runes-1]) + "…"
}
