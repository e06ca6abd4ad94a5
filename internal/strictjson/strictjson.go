// Package strictjson checks JSON from outside before anything acts on it:
// that it is one value in valid UTF-8, nested at most so deep, that no object
// has a name twice and no text a NUL or half a surrogate pair. Readers differ
// in what they make of such input, and a check that one of them passes must
// hold for the next. It splits objects by exact names; encoding/json takes a
// name in any case. The package knows nothing of what the values mean.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf8"
)

// MaxDepth is how deep a value may nest.
const MaxDepth = 64

// What Check finds, beside a *json.SyntaxError.
var (
	ErrUTF8      = errors.New("text that is not UTF-8")
	ErrNUL       = errors.New("text with a NUL character")
	ErrSurrogate = errors.New(`half a surrogate pair, such as \ud800 alone`)
	ErrDepth     = errors.New("more than " + strconv.Itoa(MaxDepth) + " levels of nesting")
)

// TwiceError says that an object has the name twice.
type TwiceError struct{ Name string }

// Error implements error.
func (e *TwiceError) Error() string {
	name := e.Name
	if len(name) > 60 {
		name = name[:60] + "…"
	}
	return "the name " + strconv.QuoteToGraphic(name) + " twice in one object"
}

// Check says what is wrong with b, nil for nothing. Its errors read well
// behind "The JSON has". The time it takes grows with the length of b.
func Check(b []byte) error {
	if !utf8.Valid(b) {
		return ErrUTF8
	}
	if !json.Valid(b) {
		var v json.RawMessage
		return json.Unmarshal(b, &v) // which says where
	}
	return walk(b)
}

// level is one object or array that is open.
type level struct {
	object bool
	name   bool // the next text is a name
	names  names
}

// walk looks at what the syntax allows; b is valid.
func walk(b []byte) error {
	var room [8]level
	open := room[:0]
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			if len(open) == MaxDepth {
				return ErrDepth
			}
			open = append(open, level{object: b[i] == '{', name: b[i] == '{'})
		case '}', ']':
			open = open[:len(open)-1]
		case ',':
			top := &open[len(open)-1]
			top.name = top.object
		case '"':
			end, escaped := stringEnd(b, i)
			text := b[i+1 : end]
			if escaped {
				if err := checkEscapes(text); err != nil {
					return err
				}
			}
			if n := len(open); n > 0 && open[n-1].name {
				open[n-1].name = false
				name := string(text)
				if escaped {
					name = unquote(b[i : end+1])
				}
				if !open[n-1].names.add(name) {
					return &TwiceError{name}
				}
			}
			i = end
		}
	}
	return nil
}

// stringEnd is where the text that begins at i ends, and whether it has
// escapes.
func stringEnd(b []byte, i int) (end int, escaped bool) {
	for i++; b[i] != '"'; i++ {
		if b[i] == '\\' {
			escaped = true
			i++
		}
	}
	return i, escaped
}

// checkEscapes looks at the \u of a text.
func checkEscapes(s []byte) error {
	low := false // the second half of a pair must follow
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || s[i+1] != 'u' {
			if low {
				return ErrSurrogate
			}
			if s[i] == '\\' {
				i++
			}
			continue
		}
		n, _ := strconv.ParseUint(string(s[i+2:i+6]), 16, 16)
		i += 5
		switch {
		case n == 0:
			return ErrNUL
		case low != (n >= 0xdc00 && n <= 0xdfff):
			return ErrSurrogate
		}
		low = n >= 0xd800 && n <= 0xdbff
	}
	if low {
		return ErrSurrogate
	}
	return nil
}

// fewNames is how many names are compared one by one.
const fewNames = 12

// names are those of one object.
type names struct {
	few  []string
	many map[string]bool
}

// add reports false for a name that is there already.
func (n *names) add(name string) bool {
	if n.many != nil {
		if n.many[name] {
			return false
		}
		n.many[name] = true
		return true
	}
	for _, s := range n.few {
		if s == name {
			return false
		}
	}
	n.few = append(n.few, name)
	if len(n.few) > fewNames {
		n.many = make(map[string]bool, 4*fewNames)
		for _, s := range n.few {
			n.many[s] = true
		}
	}
	return true
}

func unquote(raw []byte) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return string(raw)
	}
	return s
}

// Member is one name of an object with its value as it was written.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Object is the members of an object, in order. Its values share memory with
// what was split.
type Object []Member

// Split takes an object apart that Check has passed. It reports false for
// anything else.
func Split(raw []byte) (Object, bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) < 2 || raw[0] != '{' {
		return nil, false
	}
	var out Object
	for i := 1; i < len(raw); i++ {
		if raw[i] != '"' {
			continue // space, commas and the end
		}
		end, escaped := stringEnd(raw, i)
		m := Member{Name: string(raw[i+1 : end])}
		if escaped {
			m.Name = unquote(raw[i : end+1])
		}
		from := end + 1
		for raw[from] != ':' {
			from++
		}
		from++
		to := valueEnd(raw, from)
		m.Value = bytes.TrimSpace(raw[from:to])
		out = append(out, m)
		i = to
	}
	return out, true
}

// valueEnd is where the value of a member that begins at i ends.
func valueEnd(raw []byte, i int) int {
	for depth := 0; ; i++ {
		switch raw[i] {
		case '"':
			i, _ = stringEnd(raw, i)
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
}

// Get returns the value of a name, nil when it is not there.
func (o Object) Get(name string) json.RawMessage {
	for i := range o {
		if o[i].Name == name {
			return o[i].Value
		}
	}
	return nil
}

// Text returns a text. It is "" and true when the name is not there, and
// false when its value is none.
func (o Object) Text(name string) (string, bool) {
	raw := o.Get(name)
	if raw == nil {
		return "", true
	}
	return Text(raw)
}

// Object returns an object; it is nil and true when the name is not there,
// and false when its value is none.
func (o Object) Object(name string) (Object, bool) {
	raw := o.Get(name)
	if raw == nil {
		return nil, true
	}
	return Split(raw)
}

// Text reads a value that is a text.
func Text(raw json.RawMessage) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), true
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err == nil
}
