package lenientjson

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Forms names members of requests of a protocol that may have another form than in its schema.
type Forms struct {
	Objects []string // an empty list is an empty object
	Texts   []string // a number is a text
	Lists   []string // one value is a list of it, an empty text or object an empty list
	Opaque  []string // members that are not looked into
}

// maxMended bounds the depth to which Mend looks.
const maxMended = 8

// Mend returns a JSON value in which the named members have the forms of the schema, at any depth. Other
// text than JSON is returned as it is.
func (f Forms) Mend(raw []byte) []byte { return f.mendValue(bytes.TrimSpace(raw), maxMended) }

func (f Forms) mendValue(raw []byte, depth int) []byte {
	if len(raw) == 0 || depth == 0 {
		return raw
	}
	switch raw[0] {
	case '[':
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil {
			return raw
		}
		for i := range list {
			list[i] = f.mendValue(list[i], depth-1)
		}
		return marshalOr(list, raw)
	case '{':
		var o map[string]json.RawMessage
		if json.Unmarshal(raw, &o) != nil {
			return raw
		}
		for name, v := range o {
			switch {
			case slices.Contains(f.Objects, name) && isEmptyList(bytes.TrimSpace(v)):
				o[name] = json.RawMessage("{}")
			case slices.Contains(f.Texts, name) && (v[0] == '-' || v[0] >= '0' && v[0] <= '9'):
				o[name] = marshalOr(string(v), v)
			case slices.Contains(f.Lists, name):
				o[name] = f.mendValue(asList(bytes.TrimSpace(v)), depth-1)
			case !slices.Contains(f.Opaque, name):
				o[name] = f.mendValue(v, depth-1)
			}
		}
		return marshalOr(o, raw)
	}
	return raw
}

func asList(v []byte) []byte {
	switch {
	case v[0] == '[', v[0] == 'n':
		return v
	case string(v) == `""`, v[0] == '{' && len(bytes.TrimSpace(v[1:len(v)-1])) == 0:
		return []byte("[]")
	}
	return slices.Concat([]byte("["), v, []byte("]"))
}

func marshalOr(v any, otherwise []byte) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return otherwise
	}
	return b
}
