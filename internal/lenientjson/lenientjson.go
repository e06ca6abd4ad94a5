// Package lenientjson decodes JSON of servers in other languages, which write it otherwise: an empty list
// for an empty object, null for nothing, numbers as text, one value in place of a list, a byte order
// mark. A value of a form that its field does not have costs only itself. It decodes; it does not check:
// input from callers that must be refused when it is malformed goes through strictjson instead.
package lenientjson

import (
	"bytes"
	"encoding"
	"errors"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// TextSetter is a struct that may also arrive as a text.
type TextSetter interface{ SetText(text string) }

// Decode decodes the one JSON value in b into v. It returns an error only if b is no JSON or a method of
// v refuses it. NaN and Infinity are null.
func Decode(b []byte, v any) error {
	b = TrimMark(b)
	err := json.Unmarshal(b, v, options)
	if _, bad := errors.AsType[*jsontext.SyntacticError](err); !bad {
		return err
	}
	mended, readErr := io.ReadAll(&NumberReader{R: bytes.NewReader(b)})
	if readErr != nil {
		return err
	}
	return json.Unmarshal(mended, v, options)
}

// IsObject reports whether b is a JSON object, a list without elements, which some languages write for
// an object without members, or null.
func IsObject(b []byte) bool {
	v := jsontext.Value(bytes.TrimSpace(b))
	return v.Kind() == '{' || isEmptyList(v) || v.Kind() == 'n'
}

func isEmptyList(v jsontext.Value) bool {
	return len(v) > 1 && v.Kind() == '[' && v[len(v)-1] == ']' && len(bytes.TrimSpace(v[1:len(v)-1])) == 0
}

// OrObject returns raw, but {} for nothing: no bytes, null or a list without elements.
func OrObject(raw []byte) []byte {
	v := jsontext.Value(bytes.TrimSpace(raw))
	if len(v) == 0 || v.Kind() == 'n' || isEmptyList(v) {
		return []byte("{}")
	}
	return raw
}

// TrimMark returns text without its byte order mark; text in UTF-16 with a mark becomes UTF-8.
func TrimMark(b []byte) []byte {
	if rest, ok := bytes.CutPrefix(b, []byte("\xef\xbb\xbf")); ok {
		return rest
	}
	if bytes.HasPrefix(b, []byte("\xff\xfe")) || bytes.HasPrefix(b, []byte("\xfe\xff")) {
		d := unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM).NewDecoder()
		if out, _, err := transform.Bytes(d, b); err == nil {
			return out
		}
	}
	return b
}

var legacy = json.JoinOptions(jsonv1.DefaultOptionsV1(), jsonv1.ReportErrorsWithLegacySemantics(false))

// options is made once, because the package json keeps with it which types decodeAny is asked about.
var options = json.JoinOptions(legacy, json.WithUnmarshalers(json.UnmarshalFromFunc(decodeAny)))

// decodeAny decodes the next value into the pointer v if it has another form than the type of v, and
// leaves all other values to the package json.
func decodeAny(dec *jsontext.Decoder, v any) error {
	switch v.(type) {
	case jsonv1.Unmarshaler, json.UnmarshalerFrom, encoding.TextUnmarshaler:
		return json.SkipFunc
	}
	to := reflect.ValueOf(v).Elem()
	kind := dec.PeekKind()
	switch to.Kind() {
	case reflect.Bool:
		if kind == 't' || kind == 'f' {
			return json.SkipFunc
		}
	case reflect.String:
		if kind == '"' {
			return json.SkipFunc
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8,
		reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
	case reflect.Struct, reflect.Map:
		if kind == '{' {
			return json.SkipFunc
		}
	case reflect.Slice:
		if to.Type().Elem().Kind() == reflect.Uint8 && kind == '"' {
			return json.SkipFunc
		}
	default:
		return json.SkipFunc
	}
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	setValue(to, raw, dec.Options())
	return nil
}

// setValue sets to as well as raw allows, else to its zero value.
func setValue(to reflect.Value, raw jsontext.Value, options json.Options) {
	to.SetZero()
	switch to.Kind() {
	case reflect.Bool:
		b, err := strconv.ParseBool(strings.ToLower(strings.TrimSpace(TextOf(raw))))
		to.SetBool(err == nil && b)
	case reflect.String:
		to.SetString(TextOf(raw))
	case reflect.Float32, reflect.Float64:
		f, _ := numberOf(raw)
		to.SetFloat(f)
	case reflect.Struct:
		if s, ok := to.Addr().Interface().(TextSetter); ok && raw.Kind() == '"' {
			s.SetText(TextOf(raw))
		}
	case reflect.Slice:
		setList(to, raw, options)
	case reflect.Map:
	default:
		setInteger(to, raw)
	}
}

func setInteger(to reflect.Value, raw jsontext.Value) {
	f, ok := numberOf(raw)
	switch {
	case !ok || math.IsNaN(f):
	case to.CanInt():
		n := int64(max(min(f, 1<<62), -1<<62))
		if to.OverflowInt(n) {
			return
		}
		to.SetInt(n)
	default:
		n := uint64(max(min(f, 1<<62), 0))
		if to.OverflowUint(n) {
			return
		}
		to.SetUint(n)
	}
}

// setList sets a slice from a list, without the elements that cannot be decoded; from an object
// with the indexes as names, as PHP writes a list with gaps; or from a single value.
func setList(to reflect.Value, raw jsontext.Value, options json.Options) {
	var parts []jsontext.Value
	switch raw.Kind() {
	case 'n':
		return
	case '[':
		if json.Unmarshal(raw, &parts, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)) != nil {
			return
		}
	case '{':
		if parts = indexedValues(raw); parts == nil {
			parts = []jsontext.Value{raw}
		}
	default:
		parts = []jsontext.Value{raw}
	}
	to.Set(reflect.MakeSlice(to.Type(), 0, len(parts)))
	for _, p := range parts {
		one := reflect.New(to.Type().Elem())
		if !fitsType(one.Elem().Type(), p.Kind()) || json.Unmarshal(p, one.Interface(), options) != nil {
			continue
		}
		to.Set(reflect.Append(to, one.Elem()))
	}
}

// fitsType reports whether an element of a list may be a value of kind: nothing, and a plain value in place
// of an object, are left out.
func fitsType(t reflect.Type, kind jsontext.Kind) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct && t.Kind() != reflect.Map {
		return kind != 'n' || t.Kind() == reflect.Slice || t.Kind() == reflect.Interface
	}
	p := reflect.PointerTo(t)
	for _, i := range []reflect.Type{reflect.TypeFor[jsonv1.Unmarshaler](), reflect.TypeFor[TextSetter]()} {
		if p.Implements(i) {
			return kind != 'n'
		}
	}
	return kind == '{'
}

// indexedValues returns the values of an object with only numbers as names, nil for other objects.
func indexedValues(raw jsontext.Value) []jsontext.Value {
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowInvalidUTF8(true),
		jsontext.AllowDuplicateNames(true))
	if _, err := dec.ReadToken(); err != nil {
		return nil
	}
	out := []jsontext.Value{}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil
		}
		if _, err := strconv.ParseUint(name.String(), 10, 32); err != nil {
			return nil
		}
		v, err := dec.ReadValue()
		if err != nil {
			return nil
		}
		out = append(out, v.Clone())
	}
	return out
}

// TextOf returns a JSON value as a text: a number or boolean as it is written, the texts of a list one a
// line, "" for null and objects.
func TextOf(raw []byte) string {
	v := jsontext.Value(bytes.TrimSpace(raw))
	switch v.Kind() {
	case '"':
		var s string
		_ = json.Unmarshal(v, &s, jsontext.AllowInvalidUTF8(true)) // of a text that was scanned: cannot fail
		return s
	case '0', 't', 'f':
		return string(v)
	case '[':
		var parts []jsontext.Value
		if json.Unmarshal(v, &parts, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)) != nil {
			return ""
		}
		var lines []string
		for _, p := range parts {
			if p.Kind() == '[' {
				continue
			}
			if s := TextOf(p); s != "" {
				lines = append(lines, s)
			}
		}
		return strings.Join(lines, "\n")
	}
	return ""
}

func numberOf(raw jsontext.Value) (float64, bool) {
	s := strings.TrimSpace(TextOf(raw))
	f, err := strconv.ParseFloat(s, 64)
	if errors.Is(err, strconv.ErrRange) {
		return f, true // as large as there is
	}
	if b, wrong := strconv.ParseBool(s); err != nil && wrong == nil && b {
		return 1, true
	}
	return f, err == nil
}
