package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strings"
	"unicode/utf8"

	"agentsite/internal/fault"
	"agentsite/internal/registry"
	"agentsite/internal/strictjson"
)

// maxDepth bounds how deep server.json nests.
const maxDepth = 32

// readDocument returns the body of a request that sends server.json.
func readDocument(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil && t != "application/json" && t != "application/x-www-form-urlencoded" && !strings.HasSuffix(t, "+json") {
		return nil, fault.New(fault.Invalid, "Send JSON, with Content-Type: application/json.")
	}
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, registry.MaxDocument))
	if _, big := errors.AsType[*http.MaxBytesError](err); err != nil && !big {
		err = fault.Wrap(fault.Invalid, err, "The body ended early.")
	}
	return b, err
}

// decode reads one JSON value into v, in which every name is one that v has,
// spelt exactly so, and no object names anything twice: what this portal
// checks must be what every other reader sees. Errors are Invalid faults with
// the place as their field.
func decode(raw []byte, v any) error {
	if !utf8.Valid(raw) {
		return fault.New(fault.Invalid, "The body is not UTF-8.")
	}
	s := strict{dec: json.NewDecoder(bytes.NewReader(raw))}
	s.dec.UseNumber()
	if err := s.value(reflect.TypeOf(v), "", 0); err != nil {
		if f, ok := errors.AsType[*fault.Error](err); ok {
			return f
		}
		return fault.Wrap(fault.Invalid, err, "The body is not JSON: it ended early or is malformed.")
	}
	if _, err := s.dec.Token(); !errors.Is(err, io.EOF) {
		return fault.New(fault.Invalid, "The body holds more than one JSON value.")
	}
	// Half a surrogate pair is one character here and another one elsewhere.
	if err := strictjson.Check(raw); err != nil {
		return fault.New(fault.Invalid, "The JSON has %s.", err)
	}
	err := json.Unmarshal(raw, v)
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return at(t.Field, "has the wrong type, %s", t.Value)
	}
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "The body is not what the registry takes.")
	}
	return nil
}

func at(path, format string, args ...any) error {
	if path == "" {
		path = "body"
	}
	text := fmt.Sprintf(format, args...)
	return fault.Field(path, text)
}

// strict walks a JSON text beside the type it is read into.
type strict struct{ dec *json.Decoder }

func (s strict) value(t reflect.Type, path string, depth int) error {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if depth > maxDepth {
		return at(cut(path, 100), "nests more than %d deep", maxDepth)
	}
	tok, err := s.dec.Token()
	if err != nil {
		return err
	}
	switch tok := tok.(type) {
	case json.Delim:
		if tok == '{' {
			return s.object(t, path, depth)
		}
		return s.array(t, path, depth)
	case string:
		if strings.ContainsRune(tok, 0) {
			return at(cut(path, 200), "must not hold a zero character")
		}
	}
	return nil
}

func (s strict) object(t reflect.Type, path string, depth int) error {
	seen := make(map[string]bool)
	for s.dec.More() {
		tok, err := s.dec.Token()
		if err != nil {
			return err
		}
		name, _ := tok.(string)
		here := strings.TrimPrefix(path+"."+cut(name, 80), ".")
		if seen[name] || strings.ContainsRune(name, 0) {
			return at(here, "is named twice or holds a zero character")
		}
		seen[name] = true
		var of reflect.Type
		switch {
		case t == nil:
		case t.Kind() == reflect.Map:
			of = t.Elem()
		case t.Kind() == reflect.Struct:
			f, ok := member(t, name)
			if !ok {
				return at(here, "unexpected property")
			}
			of = f
		}
		if of != nil && of.Kind() == reflect.Interface {
			of = nil
		}
		if err := s.value(of, here, depth+1); err != nil {
			return err
		}
	}
	_, err := s.dec.Token()
	return err
}

func (s strict) array(t reflect.Type, path string, depth int) error {
	var of reflect.Type
	if t != nil && t.Kind() == reflect.Slice {
		of = t.Elem()
	}
	for i := 0; s.dec.More(); i++ {
		if err := s.value(of, fmt.Sprintf("%s[%d]", path, i), depth+1); err != nil {
			return err
		}
	}
	_, err := s.dec.Token()
	return err
}

// member is the type of the field that a name is read into.
func member(t reflect.Type, name string) (reflect.Type, bool) {
	for f := range t.Fields() {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
			return f.Type, true
		}
	}
	return nil, false
}
