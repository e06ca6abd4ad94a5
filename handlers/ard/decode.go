package ard

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"mime"
	"net/http"
	"strings"

	"agentsite/internal/fault"
	"agentsite/internal/strictjson"
)

// Bounds of one request.
const (
	maxBody       = 64 << 10
	maxTextBytes  = 500 // the limit of the hub for a query's text
	maxTokenBytes = 32 << 10
	defaultPage   = 10 // results on a page of a search, §5.3.2
	defaultList   = 20 // entries on a page of a list, §5.3.5
	maxPage       = 100
)

// readBody returns the body of a POST, or an error if its type is not JSON or it is too large.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || t != "application/json" && !strings.HasSuffix(t, "+json") {
		return nil, fault.New(fault.Invalid, "Send JSON, with Content-Type: application/json.")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, big := errors.AsType[*http.MaxBytesError](err); err != nil && !big {
		err = fault.Wrap(fault.Invalid, err, "The body ended early.")
	}
	return body, err
}

// object holds the members of a JSON object by name.
type object map[string]json.RawMessage

// parseObject decodes an object with members of any name; a repeated name is an error. Callers ignore
// members that they do not know, because later versions of the protocol may add some. path names the
// object in errors.
func parseObject(raw []byte, path string) (object, error) {
	where := path
	if where == "" {
		where = "The body"
	}
	err := strictjson.Check(raw)
	twice, isTwice := errors.AsType[*strictjson.TwiceError](err)
	list, ok := strictjson.Split(raw)
	switch {
	case errors.Is(err, strictjson.ErrUTF8):
		return nil, fault.New(fault.Invalid, "%s is not UTF-8.", where)
	case isTwice:
		return nil, fault.New(fault.Invalid, "%s names %q twice.", where, cutText(twice.Name, 80))
	case errors.Is(err, strictjson.ErrNUL):
		return nil, fault.New(fault.Invalid, "%s must not hold a zero character.", where)
	case !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")):
		return nil, fault.New(fault.Invalid, "%s must be a JSON object.", where)
	case err != nil && ok:
		return nil, fault.New(fault.Invalid, "%s holds more than one JSON value.", where)
	case err != nil || !ok:
		return nil, fault.New(fault.Invalid, "%s is not valid JSON.", where)
	}
	o := make(object, len(list))
	for _, m := range list {
		o[m.Name] = m.Value
	}
	return o, nil
}

// has reports whether the object has a member with a value; null counts as absent.
func (o object) has(member string) bool {
	raw, ok := o[member]
	return ok && string(raw) != "null"
}

func (o object) textMember(member, path string) (string, error) {
	if !o.has(member) {
		return "", nil
	}
	return textOf(o[member], path)
}

func textOf(raw json.RawMessage, path string) (string, error) {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", wrong(path, "must be text")
	}
	if strings.ContainsRune(s, 0) {
		return "", wrong(path, "must not hold a zero character")
	}
	return s, nil
}

func (o object) numberMember(member, path string, fallback, least, most int) (int, error) {
	if !o.has(member) {
		return fallback, nil
	}
	var f float64 // JSON allows an integer as 10.0
	if err := json.Unmarshal(o[member], &f); err != nil || f != math.Trunc(f) || f < float64(least) ||
		f > float64(most) {
		return 0, wrong(path, "use a whole number from %d to %d", least, most)
	}
	return int(f), nil
}

// listOf returns the elements of an array of at most so many elements; path names the array in errors.
func listOf(raw json.RawMessage, path string, most int) ([]json.RawMessage, error) {
	var out []json.RawMessage
	if err := json.Unmarshal(raw, &out); err != nil || out == nil {
		return nil, wrong(path, "must be an array")
	}
	if len(out) > most {
		return nil, wrong(path, "holds %d values; use at most %d", len(out), most)
	}
	return out, nil
}
