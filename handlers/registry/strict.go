package registry

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"agentsite/internal/fault"
	"agentsite/internal/registry"
	"agentsite/internal/strictjson"
)

// maxDepth bounds the nesting of values in server.json, because decoding is recursive.
const maxDepth = 32

// readDocument returns the body of a request that contains a server.json, within the size limit.
func readDocument(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil && t != "application/json" &&
		t != "application/x-www-form-urlencoded" && !strings.HasSuffix(t, "+json") {
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
	place, err := strictjson.Locate(raw, maxDepth)
	switch _, twice := errors.AsType[*strictjson.TwiceError](err); {
	case errors.Is(err, strictjson.ErrDepth):
		return errorAt(cutText(path(place), 100), "nests more than %d deep", maxDepth)
	case twice, errors.Is(err, strictjson.ErrNUL):
		return errorAt(cutText(path(place), 200), "is named twice or holds a zero character")
	case errors.Is(err, strictjson.ErrUTF8), errors.Is(err, strictjson.ErrSurrogate):
		return fault.New(fault.Invalid, "The JSON has %s.", err)
	case err != nil:
		return fault.Wrap(fault.Invalid, err,
			"The body is not JSON: it ended early, is malformed, or holds more than one value.")
	}
	err = json.Unmarshal(raw, v, json.RejectUnknownMembers(true))
	if e, ok := errors.AsType[*json.SemanticError](err); ok {
		if errors.Is(e.Err, json.ErrUnknownName) {
			return errorAt(cutText(path(e.JSONPointer), 200), "unexpected property")
		}
		return errorAt(cutText(path(e.JSONPointer), 200), "has the wrong type, %s", kindName(e.JSONKind))
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

// path returns a place in a document in the registry's form, for example remotes[0].url.
func path(place jsontext.Pointer) string {
	var b strings.Builder
	for name := range place.Tokens() {
		if _, err := strconv.ParseUint(name, 10, 32); err == nil {
			fmt.Fprintf(&b, "[%s]", name)
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(cutText(name, 80))
	}
	return b.String()
}

func kindName(k jsontext.Kind) string {
	switch k {
	case '{':
		return "object"
	case '[':
		return "array"
	}
	return k.String()
}
