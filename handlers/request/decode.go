package request

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"agentsite/internal/fault"
	"agentsite/internal/lenientjson"
	"agentsite/internal/strictjson"
)

// DecodeJSON decodes a JSON body of at most max bytes into v. Its errors describe the mistake in plain
// words. With known, a field that v does not have is an error.
func DecodeJSON(w http.ResponseWriter, r *http.Request, max int64, v any, known bool) error {
	return decodeBody(w, r, max, v, known, true)
}

// DecodeFields is DecodeJSON for services that check the text of each field themselves and name the wrong
// one.
func DecodeFields(w http.ResponseWriter, r *http.Request, max int64, v any, known bool) error {
	return decodeBody(w, r, max, v, known, false)
}

func decodeBody(w http.ResponseWriter, r *http.Request, max int64, v any, known, text bool) error {
	// curl declares a form by default, so only the body decides whether it is JSON.
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil && t != "application/json" &&
		t != "application/x-www-form-urlencoded" && !strings.HasSuffix(t, "+json") {
		return fault.New(fault.Invalid, "Send JSON, with Content-Type: application/json.")
	}
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, max))
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return err
		}
		return fault.Wrap(fault.Invalid, err, "The body could not be read: it ended early.")
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return fault.New(fault.Invalid, "The body is empty; send JSON.")
	}
	return decodeText(b, v, known, text)
}

// DecodeLine decodes a JSON text that is a part of a body, with the rules of DecodeBody.
func DecodeLine(b []byte, v any) error { return decodeText(b, v, true, false) }

func decodeText(b []byte, v any, known, text bool) error {
	b = lenientjson.TrimMark(b)
	err := strictjson.Check(b)
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fault.New(fault.Invalid, "The body is not JSON: %s (at byte %d).", s, s.Offset)
	}
	ofField := errors.Is(err, strictjson.ErrNUL) || errors.Is(err, strictjson.ErrSurrogate) ||
		errors.Is(err, strictjson.ErrDepth)
	if err != nil && (text || !ofField) {
		return fault.New(fault.Invalid, "The JSON has %s.", err)
	}
	if known {
		return decodeKnown(b, v)
	}
	if err = json.Unmarshal(b, v); err == nil {
		return nil
	}
	if f, ok := errors.AsType[*fault.Error](err); ok { // an error of an UnmarshalJSON method
		return f
	}
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		field := t.Field
		if field == "" {
			field = "body"
		}
		return fault.Field(field, "has the wrong type, "+t.Value)
	}
	return errMalformed(err)
}

func errMalformed(err error) error {
	return fault.Wrap(fault.Invalid, err, "The body could not be read as JSON: it is malformed.")
}

// decodeKnown decodes a JSON text that passed strictjson.Check. A field that v does not have is an error
// with its name and the nearest field.
func decodeKnown(b []byte, v any) error {
	err := strictjson.Decode(b, v)
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*fault.Error](err); ok { // an error of an UnmarshalJSON method
		return f
	}
	if u, ok := errors.AsType[*strictjson.UnknownError](err); ok {
		return fault.Field(u.Place, u.Advice())
	}
	if t, ok := errors.AsType[*strictjson.TypeError](err); ok {
		return fault.Field(cmp.Or(t.Place, "body"), "has the wrong type, "+t.Kind)
	}
	return errMalformed(err)
}

// MaxJSON bounds the body of an API request in bytes.
const MaxJSON = 1 << 20

// DecodeBody decodes a JSON body of at most MaxJSON bytes into v. An unknown field is an error, because a
// misspelt field would be lost silently.
func DecodeBody(w http.ResponseWriter, r *http.Request, v any) error {
	return DecodeFields(w, r, MaxJSON, v, true)
}
