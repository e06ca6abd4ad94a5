// Package respond writes answers: the status and headers of errors, JSON,
// server-sent events, and the answer of a task while it grows. It knows no
// protocol; each protocol has a package beside it.
package respond

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5/middleware"

	"agentsite/internal/fault"
)

// Status returns the HTTP status for a kind of error. Every protocol endpoint uses it, so that the
// mapping exists once.
func Status(k fault.Kind) int {
	switch k {
	case fault.Invalid:
		return http.StatusBadRequest
	case fault.Unauthenticated:
		return http.StatusUnauthorized
	case fault.Forbidden:
		return http.StatusForbidden
	case fault.NotFound:
		return http.StatusNotFound
	case fault.Conflict:
		return http.StatusConflict
	case fault.RateLimited:
		return http.StatusTooManyRequests
	case fault.Unavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// StatusOf returns the HTTP status of an error: that of its kind, and 507 if the portal's disk is full.
func StatusOf(f *fault.Error) int {
	if f.Full {
		return http.StatusInsufficientStorage
	}
	return Status(f.Kind)
}

// PrepareError logs the part of an error that only the operator may read, and sets the headers that errors of every
// protocol endpoint have. It returns the error to show and its status.
func PrepareError(w http.ResponseWriter, r *http.Request, log *slog.Logger, err error) (*fault.Error, int) {
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		err = fault.New(fault.Unavailable, "The request was given up.")
	}
	f := fault.As(err)
	code := StatusOf(f)
	if big, ok := errors.AsType[*http.MaxBytesError](err); ok {
		f = fault.New(fault.Invalid, "The request is larger than %d bytes. Send less at once.", big.Limit)
		code = http.StatusRequestEntityTooLarge
	}
	if f.Kind == fault.Internal {
		log.Error("request failed", "method", r.Method, "path", r.URL.Path, "request_id",
			middleware.GetReqID(r.Context()), "error", err)
	}
	h := w.Header()
	RetryAfter(h, f.RetryAfter)
	h.Set("Cache-Control", "no-store")
	return f, code
}

// RetryAfter sets the Retry-After header in seconds, rounded up so that no caller retries too early. Zero sets
// none.
func RetryAfter(h http.Header, wait time.Duration) {
	if wait > 0 {
		h.Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
	}
}

// SetChallenge sets the WWW-Authenticate header if the error is a missing or invalid credential; HTTP
// requires it with status 401.
func SetChallenge(w http.ResponseWriter, f *fault.Error) {
	if f.Kind == fault.Unauthenticated {
		w.Header().Set("WWW-Authenticate", `Bearer realm="agentsite"`)
	}
}

// WriteJSON answers with v as JSON. If v cannot be encoded, it writes nothing and returns the error.
func WriteJSON(w http.ResponseWriter, code int, v any) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	h.Set("Content-Length", strconv.Itoa(buf.Len()))
	w.WriteHeader(code)
	w.Write(buf.Bytes())
	return nil
}
