package ard

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5/middleware"

	"agentsite/handlers/respond"
	"agentsite/internal/fault"
)

// errorJSON is an error of the registry, Appendix B.
type errorJSON struct {
	Code    string `json:"errorCode"`
	Message string `json:"message"`
}

// code is the status and code of a kind of error. PERMISSION_DENIED (a token
// without the scope) and UNAVAILABLE are beyond the table of Appendix B, which
// has none that says so.
func code(k fault.Kind) (int, string) {
	switch k {
	case fault.Invalid, fault.Conflict:
		return http.StatusBadRequest, "INVALID_ARGUMENT"
	case fault.Unauthenticated:
		return http.StatusUnauthorized, "UNAUTHENTICATED"
	case fault.Forbidden:
		return http.StatusForbidden, "PERMISSION_DENIED"
	case fault.NotFound:
		return http.StatusNotFound, "NOT_FOUND"
	case fault.RateLimited:
		return http.StatusTooManyRequests, "RATE_LIMIT_EXCEEDED"
	case fault.Unavailable:
		return http.StatusServiceUnavailable, "UNAVAILABLE"
	}
	return http.StatusInternalServerError, "INTERNAL_ERROR"
}

// said is what ARD calls the fields that a service complains of.
var said = map[string]string{
	"q": "query.text", "limit": "pageSize", "cursor": "pageToken", "sort": "orderBy", "live": "metadata.liveness", "proof": "metadata.proof",
}

// message is what an error says, in the words of ARD.
func message(f *fault.Error) string {
	if len(f.Fields) == 0 {
		return f.Safe
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(f.Fields)) {
		field := name
		if s, ok := said[name]; ok {
			field = s
		}
		out = append(out, field+": "+f.Fields[name])
	}
	return strings.Join(out, "; ")
}

// fail answers with an error and logs what only the operator may read.
func (d *Door) fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		err = fault.New(fault.Unavailable, "The request was given up.")
	}
	f := fault.As(err)
	status, name := code(f.Kind)
	body := errorJSON{name, message(f)}
	if big, ok := errors.AsType[*http.MaxBytesError](err); ok {
		status, body = http.StatusRequestEntityTooLarge, errorJSON{"INVALID_ARGUMENT", "The body is larger than " + strconv.FormatInt(big.Limit, 10) + " bytes. Send less at once."}
	} else if status == http.StatusInternalServerError {
		d.cfg.Log.Error("request failed", "method", r.Method, "path", r.URL.Path, "request_id", middleware.GetReqID(r.Context()), "error", err)
	}
	h := w.Header()
	respond.RetryAfter(h, f.RetryAfter)
	if status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="agentsite"`)
	}
	h.Del("ETag")
	doc, err := encode(body)
	if err != nil {
		http.Error(w, "", http.StatusInternalServerError)
		return
	}
	h.Set("Cache-Control", "no-store") // a 404 of today may be an agent tomorrow, §5.3.4
	send(w, status, jsonType, doc)
}

// wrong is an error in one field of the input.
func wrong(field, format string, args ...any) error {
	e := fault.New(fault.Invalid, format, args...)
	e.Safe = field + ": " + e.Safe
	return e
}
