// Package strictjson checks JSON from outside before it is used: one value in
// valid UTF-8, nested at most MaxDepth deep, without an object that has a name
// twice, a NUL or half a surrogate pair. Programs read such input differently,
// so a check of one would not hold for the next. It also splits objects by exact
// names, where encoding/json takes a name in any case. It knows no meaning of
// the values, and reads with jsontext.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth is how deep a value may nest.
const MaxDepth = 64

// The errors of Check, beside a *json.SyntaxError and a *TwiceError.
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

// Check returns the first problem of b, nil if there is none. Its errors read
// well after "The JSON has". Its time grows with the length of b.
func Check(b []byte) error {
	_, err := Locate(b, MaxDepth)
	return err
}

// Locate is Check for another depth, and returns the place of the problem too.
func Locate(b []byte, depth int) (jsontext.Pointer, error) {
	if !utf8.Valid(b) {
		return "", ErrUTF8
	}
	if !json.Valid(b) {
		var v json.RawMessage
		return "", json.Unmarshal(b, &v) // which says where
	}
	mayHaveNUL := bytes.Contains(b, []byte(`\u0000`))
	dec := jsontext.NewDecoder(bytes.NewBuffer(b))
	for {
		t, err := dec.ReadToken()
		switch {
		case err == io.EOF:
			return "", nil
		case err != nil:
			at := dec.StackPointer()
			if s, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
				at = s.JSONPointer
			}
			if errors.Is(err, jsontext.ErrDuplicateName) {
				return at, &TwiceError{at.LastToken()}
			}
			return at, ErrSurrogate // the only other thing that encoding/json takes
		case dec.StackDepth() > depth:
			return dec.StackPointer(), ErrDepth
		case mayHaveNUL && t.Kind() == '"' && strings.IndexByte(t.String(), 0) >= 0:
			return dec.StackPointer(), ErrNUL
		}
	}
}

// Member is one name of an object with its value as it was written.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Object is the members of an object, in order. Its values share memory with
// the text that was split.
type Object []Member

// Split takes an object apart that Check has passed. It reports false for
// anything else.
func Split(raw []byte) (Object, bool) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if dec.PeekKind() != '{' {
		return nil, false
	}
	_, err := dec.ReadToken()
	var out Object
	for err == nil && dec.PeekKind() != '}' {
		var name jsontext.Token
		var value jsontext.Value
		if name, err = dec.ReadToken(); err != nil {
			break
		}
		m := Member{Name: name.String()}
		if value, err = dec.ReadValue(); err == nil {
			end := dec.InputOffset()
			m.Value = raw[end-int64(len(value)) : end : end]
			out = append(out, m)
		}
	}
	return out, err == nil
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
	b, err := jsontext.AppendUnquote(nil, raw)
	return string(b), err == nil
}
