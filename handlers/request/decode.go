package request

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"agentsite/internal/fault"
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
	err = strictjson.Check(b)
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fault.New(fault.Invalid, "The body is not JSON: %s (at byte %d).", s, s.Offset)
	}
	ofField := errors.Is(err, strictjson.ErrNUL) || errors.Is(err, strictjson.ErrSurrogate) ||
		errors.Is(err, strictjson.ErrDepth)
	if err != nil && (text || !ofField) {
		return fault.New(fault.Invalid, "The JSON has %s.", err)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	if known {
		dec.DisallowUnknownFields()
	}
	if err = dec.Decode(v); err == nil {
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
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		name = strings.Trim(name, `"`)
		return &fault.Error{Kind: fault.Invalid, Safe: fmt.Sprintf("%.80q is no field here; is it misspelt?", name),
			Fields: map[string]string{fmt.Sprintf("%.80s", name): "is no field here; is it misspelt?"}}
	}
	return fault.Wrap(fault.Invalid, err, "The body could not be read as JSON: it is malformed.")
}

// MaxJSON bounds the body of an API request in bytes.
const MaxJSON = 1 << 20

// DecodeBody decodes a JSON body of at most MaxJSON bytes into v. An unknown field is an error, because a
// misspelt field would be lost silently.
func DecodeBody(w http.ResponseWriter, r *http.Request, v any) error {
	return DecodeFields(w, r, MaxJSON, v, true)
}
