// Package strictjson checks JSON from outside before it is used: one value in valid UTF-8, nested
// at most MaxDepth deep, without repeated names in an object, NUL characters or half surrogate
// pairs. Programs read such input differently, so a check in one program would not hold in the
// next. The package also splits objects by exact names, because encoding/json ignores case.
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

// MaxDepth bounds the nesting of a value in Check.
const MaxDepth = 64

// The errors of Check, in addition to *json.SyntaxError and *TwiceError.
var (
	ErrUTF8      = errors.New("text that is not UTF-8")
	ErrNUL       = errors.New("text with a NUL character")
	ErrSurrogate = errors.New(`half a surrogate pair, such as \ud800 alone`)
	ErrDepth     = errors.New("more than " + strconv.Itoa(MaxDepth) + " levels of nesting")
)

// TwiceError reports an object that has Name more than once.
type TwiceError struct{ Name string }

// Error implements error. It cuts the name, because the sender chose it.
func (e *TwiceError) Error() string {
	name := e.Name
	if len(name) > 60 {
		name = name[:60] + "…"
	}
	return "the name " + strconv.QuoteToGraphic(name) + " twice in one object"
}

// Check returns the first problem of b, nil if there is none. Its errors continue the sentence "The
// JSON has". The time is linear in the length of b.
func Check(b []byte) error {
	_, err := Locate(b, MaxDepth)
	return err
}

// Locate is Check with another bound of the depth. It also returns the place of the problem, "" for
// the whole text or an unknown one.
func Locate(b []byte, depth int) (jsontext.Pointer, error) {
	if !utf8.Valid(b) {
		return "", ErrUTF8
	}
	if !json.Valid(b) {
		var v json.RawMessage
		return "", json.Unmarshal(b, &v) // a *json.SyntaxError, which has the offset
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
			return at, ErrSurrogate // the only other input that encoding/json accepts and jsontext refuses
		case dec.StackDepth() > depth:
			return dec.StackPointer(), ErrDepth
		case mayHaveNUL && t.Kind() == '"' && strings.IndexByte(t.String(), 0) >= 0:
			return dec.StackPointer(), ErrNUL
		}
	}
}

// Member is one name of an object, with the JSON text of its value.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Object is the members of a JSON object in their order. The values share memory with the text
// given to Split.
type Object []Member

// Split returns the members of the object raw, which must have passed Check. It reports false if
// raw is no object.
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

// Get returns the JSON text of the member with exactly this name, nil if there is none.
func (o Object) Get(name string) json.RawMessage {
	for i := range o {
		if o[i].Name == name {
			return o[i].Value
		}
	}
	return nil
}

// Text returns the string value of a member. It returns "" and true if there is no such member, and
// false if its value is no string.
func (o Object) Text(name string) (string, bool) {
	raw := o.Get(name)
	if raw == nil {
		return "", true
	}
	return Text(raw)
}

// Object returns the object value of a member. It returns nil and true if there is no such member,
// and false if its value is no object.
func (o Object) Object(name string) (Object, bool) {
	raw := o.Get(name)
	if raw == nil {
		return nil, true
	}
	return Split(raw)
}

// Text returns the value of a JSON string; false if raw is no string.
func Text(raw json.RawMessage) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	b, err := jsontext.AppendUnquote(nil, raw)
	return string(b), err == nil
}
