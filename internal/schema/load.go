// Package schema turns the JSON Schema of a tool's arguments (2020-12, the keywords that tools use)
// into form fields, turns the texts of a form into JSON, and describes in sentences why a value
// does not fit. Schemas are untrusted: their size, depth and cost are bounded, and references are
// followed only inside the schema. A constraint that is not supported accepts every value, because
// the author of the schema checks its arguments again. The package does not depend on HTTP or HTML.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"agentsite/internal/fault"
)

const (
	// MaxBytes bounds a schema in bytes, maxDepth the nesting of its JSON.
	MaxBytes = 64 << 10
	maxDepth = 32
	// maxNodes bounds the nodes of a schema after its references were replaced by their targets.
	maxNodes = 1500
	// maxValueBytes bounds the JSON text of arguments that are built or checked.
	maxValueBytes = 256 << 10
)

// object is a JSON object that keeps the order of its keys, because forms show fields in that order.
type object struct {
	keys []string
	m    map[string]any // each is *object, []any, string, json.Number, bool or nil
}

func (o *object) get(key string) any {
	if o == nil {
		return nil
	}
	return o.m[key]
}

func (o *object) object(key string) *object {
	v, _ := o.get(key).(*object)
	return v
}

func (o *object) text(key string) string {
	s, _ := o.get(key).(string)
	return s
}

func (o *object) list(key string) []any {
	v, _ := o.get(key).([]any)
	return v
}

func (o *object) put(key string, v any) {
	if _, dup := o.m[key]; !dup {
		o.keys = append(o.keys, key)
	}
	o.m[key] = v
}

func newObject() *object { return &object{m: make(map[string]any)} }

// MarshalJSON implements json.Marshaler. It writes the keys in their original order.
func (o *object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, k := range o.keys {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(k)
		if err != nil {
			return nil, err
		}
		v, err := json.Marshal(o.m[k])
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(v)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

var errDeep = errors.New("nested too deep")

// decodeJSON reads exactly one JSON value, nested at most maxDepth deep.
func decodeJSON(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	v, err := decodeValue(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value")
	}
	return v, nil
}

func decodeValue(d *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, errDeep
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		o := newObject()
		for d.More() {
			k, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := decodeValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			o.put(k.(string), v)
		}
		_, err = d.Token()
		return o, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := decodeValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = d.Token()
		return list, err
	}
	return t, nil
}

// loadSchema parses a schema of type object and replaces its references. An empty raw gives a
// schema that accepts any object. The error is an Invalid fault.
func loadSchema(raw json.RawMessage) (*object, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return newObject(), nil
	}
	if len(raw) > MaxBytes {
		return nil, fault.New(fault.Invalid, "The schema is larger than %d KiB.", MaxBytes>>10)
	}
	v, err := decodeJSON(raw)
	if errors.Is(err, errDeep) {
		return nil, fault.New(fault.Invalid, "The schema is nested more than %d levels deep.", maxDepth)
	}
	root, ok := v.(*object)
	if err != nil || !ok {
		return nil, fault.Wrap(fault.Invalid, err, "The schema is not a JSON object.")
	}
	switch t := root.get("type").(type) {
	case nil:
	case string:
		ok = t == "object"
	case []any:
		ok = slices.Contains(t, any("object"))
	default:
		ok = false
	}
	if !ok {
		return nil, fault.New(fault.Invalid, "The schema must be of type object: arguments have names.")
	}
	e := &expander{root: root}
	out, _ := e.expandSchema(root, 0)
	expanded, ok := out.(*object)
	if !ok {
		expanded = newObject()
	}
	return expanded, nil
}

// Check reports whether raw can serve as the schema of a tool's arguments: an object schema within the
// bounds, without references to other documents. Its error is an Invalid fault.
func Check(raw json.RawMessage) error {
	if _, err := loadSchema(raw); err != nil {
		return err
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil
	}
	v, err := decodeJSON(raw)
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "The schema is not a JSON object.")
	}
	if ref := remoteRef(v, false); ref != "" {
		return fault.New(fault.Invalid, "The schema refers to another document (%.100q), which is not fetched.", ref)
	}
	return nil
}

// remoteRef returns the first $ref that leads out of the schema, "" for none. names is true inside
// properties and similar objects, where $ref is the name of a property and not a keyword.
func remoteRef(v any, names bool) string {
	switch v := v.(type) {
	case *object:
		for _, k := range v.keys {
			if s, ok := v.m[k].(string); ok && !names && (k == "$ref" || k == "$dynamicRef") && s != "" && s[0] != '#' {
				return s
			}
			if !names && slices.Contains([]string{"const", "enum", "default", "examples"}, k) {
				continue
			}
			if s := remoteRef(v.m[k], !names && slices.Contains(mapKeywords, k)); s != "" {
				return s
			}
		}
	case []any:
		for _, e := range v {
			if s := remoteRef(e, false); s != "" {
				return s
			}
		}
	}
	return ""
}
