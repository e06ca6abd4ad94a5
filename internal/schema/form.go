package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// number matches a number in the syntax of JSON (RFC 8259 §6).
var number = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// FromForm builds the arguments for the schema raw from the texts of a form. get returns the text
// of the field at a path, and false if the form did not send the field, such as a box that is not
// ticked. Empty texts of optional fields are left out. The map holds one problem per path; it is
// nil when everything fits, and only then may the arguments be used. The error is an Invalid fault
// about the schema.
func FromForm(raw json.RawMessage, get func(path string) (string, bool)) (json.RawMessage, map[string]string, error) {
	specs, root, err := specsOf(raw)
	if err != nil {
		return nil, nil, err
	}
	args := newObject()
	wrong := make(map[string]string)
	size := 0
	for _, f := range specs {
		text, given := get(f.Path)
		size += len(text)
		if size > maxValueBytes {
			wrong[f.Path] = fmt.Sprintf("use at most %d KiB in all", maxValueBytes>>10)
			break
		}
		v, there, problem := f.parseValue(text, given)
		if problem != "" {
			wrong[f.Path] = problem
			continue
		}
		if !there {
			continue
		}
		at := args
		for _, k := range f.keys[:len(f.keys)-1] {
			if at.object(k) == nil {
				at.put(k, newObject())
			}
			at = at.object(k)
		}
		at.put(f.keys[len(f.keys)-1], v)
	}
	// A required object is sent even if all of its fields are empty.
	for _, f := range specs {
		if len(f.keys) > 1 && args.get(f.keys[0]) == nil && slices.Contains(root.list("required"), any(f.keys[0])) {
			args.put(f.keys[0], newObject())
		}
	}
	out, err := json.Marshal(args)
	if err != nil {
		wrong[""] = "this cannot be written as JSON"
	}
	for path, problem := range checkArguments(root, args) {
		// A problem of an object as a whole is not added when one of its fields has a problem.
		if _, dup := wrong[path]; !dup && !hasBelow(wrong, path) {
			wrong[path] = problem
		}
	}
	if len(wrong) == 0 {
		return out, nil, nil
	}
	return out, wrong, nil
}

func hasBelow(wrong map[string]string, path string) bool {
	for p := range wrong {
		if path == "" || strings.HasPrefix(p, path+".") {
			return true
		}
	}
	return false
}

// parseValue parses the text of a field as a JSON value. there is false if the argument is to be
// left out. problem is a phrase for the form, "" for none.
func (f *spec) parseValue(text string, given bool) (v any, there bool, problem string) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if !utf8.ValidString(text) {
		return nil, false, "this is not text in UTF-8"
	}
	trimmed := strings.TrimSpace(text)
	if f.Type == Boolean {
		return f.parseBoolean(trimmed, given)
	}
	if trimmed == "" {
		switch {
		case f.Type == List && f.Required:
			return []any{}, true, ""
		case f.Required:
			return nil, false, missing
		}
		return nil, false, ""
	}
	switch f.Type {
	case Choice:
		i := slices.Index(f.Options, text)
		if i < 0 {
			i = slices.Index(f.Options, trimmed)
		}
		if i < 0 {
			return nil, false, "choose one of " + someOf(f.Options)
		}
		return f.values[i], true, ""
	case Number, Integer:
		return parseNumber(f.kind, trimmed)
	case List:
		list := []any{}
		for i, line := range strings.Split(text, "\n") {
			line = strings.TrimSpace(line)
			if line == "" {
				continue
			}
			item, problem := f.parseItem(line)
			if problem != "" {
				return nil, false, fmt.Sprintf("line %d: %s", i+1, problem)
			}
			list = append(list, item)
		}
		return list, true, ""
	case JSON:
		v, err := decodeJSON([]byte(trimmed))
		if err != nil {
			// A field of any type accepts plain text, unless it looks like broken JSON.
			if f.kind == "" && !strings.ContainsAny(trimmed[:1], `{["`) {
				return text, true, ""
			}
			return nil, false, "write this as JSON, for example " + sampleJSON(f.kind)
		}
		return v, true, ""
	}
	if f.Type == Text {
		return trimmed, true, ""
	}
	return text, true, ""
}

func (f *spec) parseItem(line string) (any, string) {
	if len(f.values) > 0 {
		i := slices.Index(f.Options, line)
		if i < 0 {
			return nil, "choose from " + someOf(f.Options)
		}
		return f.values[i], ""
	}
	if f.of == "string" {
		return line, ""
	}
	v, _, problem := parseNumber(f.of, line)
	return v, problem
}

func (f *spec) parseBoolean(text string, given bool) (any, bool, string) {
	switch strings.ToLower(text) {
	case "on", "true", "1", "yes":
		return true, true, ""
	case "off", "false", "0", "no":
		return false, true, ""
	case "":
		// A browser does not send a box that is not ticked. It means false only if the default is
		// true; else the argument is left out.
		return false, f.Required || f.Default == "true" && !given, ""
	}
	return nil, false, "say yes or no"
}

func parseNumber(kind, text string) (any, bool, string) {
	if len(text) > 100 || !number.MatchString(text) {
		if kind == "integer" {
			return nil, false, "write a whole number"
		}
		return nil, false, "write a number, for example 1.5"
	}
	return json.Number(text), true, ""
}

func sampleJSON(kind string) string {
	switch kind {
	case "array":
		return `["a", "b"]`
	case "object":
		return `{"name": "value"}`
	}
	return `{"a": 1}, [1, 2] or "text"`
}

// someOf lists the first options for a sentence, and the number of the others.
func someOf(options []string) string {
	const most = 8
	list := options[:min(len(options), most)]
	out := make([]string, len(list))
	for i, o := range list {
		out[i] = cutRunes(o, 40)
	}
	s := strings.Join(out, ", ")
	if len(options) > most {
		s += fmt.Sprintf(" and %d others", len(options)-most)
	}
	return s
}

// ToForm is the inverse of FromForm: it returns the texts of the form's fields by path. Arguments
// without a field are left out. The error is an Invalid fault about the schema.
func ToForm(raw, args json.RawMessage) (map[string]string, error) {
	specs, _, err := specsOf(raw)
	if err != nil {
		return nil, err
	}
	out := make(map[string]string)
	if len(args) > maxValueBytes || len(bytes.TrimSpace(args)) == 0 {
		return out, nil
	}
	v, _ := decodeJSON(args)
	for _, f := range specs {
		at := v
		for _, k := range f.keys {
			o, _ := at.(*object)
			at = o.get(k)
		}
		if at != nil {
			out[f.Path] = f.formText(at)
		}
	}
	return out, nil
}
