package openapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// object is the schema of an object without a type.
func (b *builder) object(name string, o Object) (Schema, error) {
	properties, required := Schema{}, []string{}
	for _, key := range slices.Sorted(maps.Keys(o)) {
		field, optional := strings.CutSuffix(key, "?")
		s, err := b.value(name, o[key])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", field, err)
		}
		if !optional {
			required = append(required, field)
		}
		properties[field] = b.note(name, field, s)
	}
	return Schema{"type": "object", "properties": properties, "required": required}, nil
}

func (b *builder) value(name string, v any) (Schema, error) {
	switch v := v.(type) {
	case Schema:
		return v, nil
	case Object:
		return b.object(name, v)
	case []Object:
		s, err := b.object(name, v[0])
		return Schema{"type": "array", "items": s}, err
	}
	return b.schema(reflect.TypeOf(v), false)
}

// note adds what is said about a field.
func (b *builder) note(component, field string, s Schema) Schema {
	for _, key := range []string{component + "." + field, strings.TrimSuffix(component, "Input") + "." + field,
		"*." + field} {
		n, ok := b.api.Fields[key]
		if !ok {
			continue
		}
		b.noted[key] = true
		if n["$ref"] != nil {
			s = Schema{}
		}
		out := maps.Clone(s)
		for k, v := range n {
			// What is said of a list's items goes to them.
			if items, ok := out["items"].(Schema); ok && k == "items" {
				items = maps.Clone(items)
				maps.Copy(items, v.(Schema))
				v = items
			}
			out[k] = v
		}
		return out
	}
	return s
}

var rawJSON = reflect.TypeFor[json.RawMessage]()

// schema is what encoding/json makes of a type, or takes for it.
func (b *builder) schema(t reflect.Type, input bool) (Schema, error) {
	if words, ok := b.api.Enums[t]; ok {
		name := cmp.Or(b.api.Names[t], title(t.Name()))
		b.schemas[name] = words
		return Ref(name), nil
	}
	if t == rawJSON {
		return Schema{}, nil
	}
	switch t.Kind() {
	case reflect.String:
		return Schema{"type": "string"}, nil
	case reflect.Bool:
		return Schema{"type": "boolean"}, nil
	case reflect.Int, reflect.Int64:
		return Schema{"type": "integer", "format": "int64", "minimum": 0}, nil
	case reflect.Float64:
		return Schema{"type": "number"}, nil
	case reflect.Pointer:
		return b.schema(t.Elem(), input)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return Schema{"type": "string", "contentEncoding": "base64"}, nil
		}
		items, err := b.schema(t.Elem(), input)
		return Schema{"type": "array", "items": items}, err
	case reflect.Map:
		values, err := b.schema(t.Elem(), input)
		return Schema{"type": "object", "additionalProperties": values}, err
	case reflect.Struct:
		return b.component(t, input)
	}
	return nil, fmt.Errorf("%s has no schema", t)
}

// title is the name of a component for a type: agentJSON is Agent, sayBody is
// SayInput.
func title(name string) string {
	name = strings.TrimSuffix(strings.TrimSuffix(name, "JSON"), "Body")
	return strings.ToUpper(name[:1]) + name[1:]
}

// component refers to the schema of a struct, and makes it when it is new. As
// an input a type has a component of its own: there, fields may be left out.
func (b *builder) component(t reflect.Type, input bool) (Schema, error) {
	if t.Name() == "" {
		return b.fields(t, "", input)
	}
	name := cmp.Or(b.api.Names[t], title(t.Name()))
	if input && !strings.HasSuffix(name, "Input") {
		name += "Input"
	}
	if old, ok := b.of[name]; ok {
		if old != t {
			return nil, fmt.Errorf("%s and %s are both %s", old, t, name)
		}
		return Ref(name), nil
	}
	b.of[name] = t
	s, err := b.fields(t, name, input)
	b.schemas[name] = s
	return Ref(name), err
}

func (b *builder) fields(t reflect.Type, name string, input bool) (Schema, error) {
	properties, required := Schema{}, []string{}
	var add func(t reflect.Type, component string) error
	add = func(t reflect.Type, component string) error {
		for f := range t.Fields() {
			if f.Anonymous {
				inner := cmp.Or(b.api.Names[f.Type], title(f.Type.Name()))
				if err := add(f.Type, inner); err != nil {
					return err
				}
			}
		}
		for f := range t.Fields() {
			tag := f.Tag.Get("json")
			if f.Anonymous || !f.IsExported() || tag == "-" {
				continue
			}
			key, options, _ := strings.Cut(tag, ",")
			if key == "" {
				return fmt.Errorf("%s.%s has no name in JSON", t, f.Name)
			}
			s, err := b.schema(f.Type, input)
			if err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
			properties[key] = b.note(component, key, s)
			if !input && !strings.Contains(options, "omitempty") && !slices.Contains(required, key) {
				required = append(required, key)
			}
		}
		return nil
	}
	if err := add(t, name); err != nil {
		return nil, err
	}
	if input {
		required = b.api.Required[name]
		for _, key := range required {
			if properties[key] == nil {
				return nil, fmt.Errorf("%s must have %s, which is no field", name, key)
			}
		}
	}
	s := Schema{"type": "object", "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	return s, nil
}
