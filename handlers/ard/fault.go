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

// errorJSON is the body of an error, Appendix B.
type errorJSON struct {
	Code    string `json:"errorCode"`
	Message string `json:"message"`
}

// codeOf returns the HTTP status and ARD code for an error. PERMISSION_DENIED (a token without the
// scope) and UNAVAILABLE are additions, because Appendix B has no code for them.
func codeOf(f *fault.Error) (int, string) {
	switch f.Kind {
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
		return respond.StatusOf(f), "UNAVAILABLE"
	}
	return http.StatusInternalServerError, "INTERNAL_ERROR"
}

// fieldNames maps field names in the services' errors to the names in ARD requests.
var fieldNames = map[string]string{
	"q": "query.text", "limit": "pageSize", "cursor": "pageToken", "sort": "orderBy", "live": "metadata.liveness",
	"proof": "metadata.proof",
}

// errorText returns the text of an error, with the field names of ARD.
func errorText(f *fault.Error) string {
	if len(f.Fields) == 0 {
		return f.Safe
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(f.Fields)) {
		field := name
		if s, ok := fieldNames[name]; ok {
			field = s
		}
		out = append(out, field+": "+f.Fields[name])
	}
	return strings.Join(out, "; ")
}

// sendError answers with an error in ARD's form. Details that only the operator may read go to the log.
func (d *Handler) sendError(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		err = fault.New(fault.Unavailable, "The request was canceled.")
	}
	f := fault.As(err)
	status, name := codeOf(f)
	body := errorJSON{name, errorText(f)}
	if big, ok := errors.AsType[*http.MaxBytesError](err); ok {
		status, body = http.StatusRequestEntityTooLarge,
			errorJSON{"INVALID_ARGUMENT", "The body is larger than " + strconv.FormatInt(big.Limit,
				10) + " bytes. Send less at once."}
	} else if status == http.StatusInternalServerError {
		d.cfg.Log.Error("request failed", "method", r.Method, "path", r.URL.Path, "request_id",
			middleware.GetReqID(r.Context()), "error", err)
	}
	h := w.Header()
	respond.RetryAfter(h, f.RetryAfter)
	if status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="agentsite"`)
	}
	h.Del("ETag")
	doc, err := encodeJSON(body)
	if err != nil {
		http.Error(w, "", http.StatusInternalServerError)
		return
	}
	h.Set("Cache-Control", "no-store") // not cached, because the agent may be registered later, §5.3.4
	sendBody(w, status, jsonType, doc)
}

// wrong returns an Invalid error about one field of the request.
func wrong(field, format string, args ...any) error {
	e := fault.New(fault.Invalid, format, args...)
	e.Safe = field + ": " + e.Safe
	return e
}
