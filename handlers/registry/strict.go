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

// maxDepth bounds the nesting of server.json.
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

// decodeStrict decodes one JSON value into v. Every name must be one of v with the exact spelling,
// and an object must not repeat a name, so that other readers see the same value that this portal
// checks. Errors are Invalid faults with the place as their field.
func decodeStrict(raw []byte, v any) error {
	if !utf8.Valid(raw) {
		return fault.New(fault.Invalid, "The body is not UTF-8.")
	}
	s := strict{dec: json.NewDecoder(bytes.NewReader(raw))}
	s.dec.UseNumber()
	if err := s.checkValue(reflect.TypeOf(v), "", 0); err != nil {
		if f, ok := errors.AsType[*fault.Error](err); ok {
			return f
		}
		return fault.Wrap(fault.Invalid, err, "The body is not JSON: it ended early or is malformed.")
	}
	if _, err := s.dec.Token(); !errors.Is(err, io.EOF) {
		return fault.New(fault.Invalid, "The body holds more than one JSON value.")
	}
	// Decoders disagree on half of a surrogate pair.
	if err := strictjson.Check(raw); err != nil {
		return fault.New(fault.Invalid, "The JSON has %s.", err)
	}
	err := json.Unmarshal(raw, v)
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return errorAt(t.Field, "has the wrong type, %s", t.Value)
	}
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "The body does not fit the schema of the registry.")
	}
	return nil
}

func errorAt(path, format string, args ...any) error {
	if path == "" {
		path = "body"
	}
	text := fmt.Sprintf(format, args...)
	return fault.Field(path, text)
}

// strict walks a JSON text in parallel to the type that it is decoded into.
type strict struct{ dec *json.Decoder }

func (s strict) checkValue(t reflect.Type, path string, depth int) error {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if depth > maxDepth {
		return errorAt(cutText(path, 100), "nests more than %d deep", maxDepth)
	}
	tok, err := s.dec.Token()
	if err != nil {
		return err
	}
	switch tok := tok.(type) {
	case json.Delim:
		if tok == '{' {
			return s.checkObject(t, path, depth)
		}
		return s.checkArray(t, path, depth)
	case string:
		if strings.ContainsRune(tok, 0) {
			return errorAt(cutText(path, 200), "must not hold a zero character")
		}
	}
	return nil
}

func (s strict) checkObject(t reflect.Type, path string, depth int) error {
	seen := make(map[string]bool)
	for s.dec.More() {
		tok, err := s.dec.Token()
		if err != nil {
			return err
		}
		name, _ := tok.(string)
		here := strings.TrimPrefix(path+"."+cutText(name, 80), ".")
		if seen[name] || strings.ContainsRune(name, 0) {
			return errorAt(here, "is named twice or holds a zero character")
		}
		seen[name] = true
		var of reflect.Type
		switch {
		case t == nil:
		case t.Kind() == reflect.Map:
			of = t.Elem()
		case t.Kind() == reflect.Struct:
			f, ok := memberType(t, name)
			if !ok {
				return errorAt(here, "unexpected property")
			}
			of = f
		}
		if of != nil && of.Kind() == reflect.Interface {
			of = nil
		}
		if err := s.checkValue(of, here, depth+1); err != nil {
			return err
		}
	}
	_, err := s.dec.Token()
	return err
}

func (s strict) checkArray(t reflect.Type, path string, depth int) error {
	var of reflect.Type
	if t != nil && t.Kind() == reflect.Slice {
		of = t.Elem()
	}
	for i := 0; s.dec.More(); i++ {
		if err := s.checkValue(of, fmt.Sprintf("%s[%d]", path, i), depth+1); err != nil {
			return err
		}
	}
	_, err := s.dec.Token()
	return err
}

// memberType returns the type of the field for a name.
func memberType(t reflect.Type, name string) (reflect.Type, bool) {
	for f := range t.Fields() {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
			return f.Type, true
		}
	}
	return nil, false
}
