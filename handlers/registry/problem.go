package registry

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"

	"agentsite/handlers/respond"
	"agentsite/internal/fault"
)

// problemJSON is an error of the registry: RFC 9457 with a list of errors and their places.
type problemJSON struct {
	Title  string        `json:"title"`
	Status int           `json:"status"`
	Detail string        `json:"detail"`
	Errors []problemPart `json:"errors,omitempty"`
}

type problemPart struct {
	Message  string `json:"message"`
	Location string `json:"location,omitempty"`
}

// refusal is an error with the status and the first sentence that the official registry uses, followed by
// the reasons in parts.
type refusal struct {
	status int
	detail string
	parts  []problemPart
	cause  error
}

func (e *refusal) Error() string { return e.detail + ": " + e.cause.Error() }
func (e *refusal) Unwrap() error { return e.cause }

// refuse wraps an error about the input in a refusal with the given status and first sentence. Other
// errors stay unchanged.
func refuse(status int, detail string, err error) error {
	f := fault.As(err)
	switch f.Kind {
	case fault.Invalid, fault.Conflict, fault.Unauthenticated:
		return &refusal{status, detail, partsOf(f, ""), err}
	}
	return err
}

// partsOf returns one part for each field of an error, sorted by field so that answers are reproducible.
// at is a prefix of the field names.
func partsOf(f *fault.Error, at string) []problemPart {
	if len(f.Fields) == 0 {
		return []problemPart{{Message: f.Safe}}
	}
	var out []problemPart
	for _, name := range slices.Sorted(maps.Keys(f.Fields)) {
		out = append(out, problemPart{f.Fields[name], at + name})
	}
	return out
}

// sendError answers with an error as a problem document. Details that only the operator may read go to
// the log.
func (d *Handler) sendError(w http.ResponseWriter, r *http.Request, err error) {
	f, status := respond.PrepareError(w, r, d.Log, err)
	p := problemJSON{Detail: f.Safe}
	if e, ok := errors.AsType[*refusal](err); ok {
		status, p.Detail, p.Errors = e.status, e.detail, e.parts
	} else if f.Kind == fault.Invalid && len(f.Fields) > 0 {
		at := "query."
		if r.Method != http.MethodGet {
			at = "body."
		}
		status, p.Detail, p.Errors = http.StatusUnprocessableEntity, "validation failed", partsOf(f, at)
	}
	respond.SetChallenge(w, f)
	p.Status, p.Title = status, http.StatusText(status)
	b, err := json.Marshal(p)
	if err != nil {
		d.Log.Error("encode an error", "error", err)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	w.Write(append(b, '\n'))
}
