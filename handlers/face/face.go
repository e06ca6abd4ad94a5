// Package face is what the doors for programs share: who is calling, what
// becomes of an error, how a body is read, how events are written, and how an
// answer is followed while it grows. It knows no protocol; each protocol has a
// sibling package.
package face

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"agentsite/internal/fault"
	"agentsite/internal/strictjson"
)

// ClientAddr is the address that limits count, from the router's middleware,
// which knows the trusted proxies. An IPv6 client is its /64.
func ClientAddr(r *http.Request) string {
	ip := net.ParseIP(middleware.GetClientIP(r.Context()))
	switch {
	case ip == nil:
		return "unknown"
	case ip.To4() != nil:
		return ip.String()
	}
	return ip.Mask(net.CIDRMask(64, 128)).String() + "/64"
}

// ClientIP is the whole address of a client, as ClientAddr knows it, for rules
// about networks of any size.
func ClientIP(r *http.Request) string {
	if ip := net.ParseIP(middleware.GetClientIP(r.Context())); ip != nil {
		return ip.String()
	}
	return "unknown"
}

// Status maps an error kind to HTTP; the one place that does.
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

// Tell logs what only the operator may read, and sets the headers an error
// has on every door. It returns the error to show and its status.
func Tell(w http.ResponseWriter, r *http.Request, log *slog.Logger, err error) (*fault.Error, int) {
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		err = fault.New(fault.Unavailable, "The request was given up.")
	}
	f := fault.As(err)
	code := Status(f.Kind)
	if big, ok := errors.AsType[*http.MaxBytesError](err); ok {
		f = fault.New(fault.Invalid, "The request is larger than %d bytes. Send less at once.", big.Limit)
		code = http.StatusRequestEntityTooLarge
	}
	if f.Kind == fault.Internal {
		log.Error("request failed", "method", r.Method, "path", r.URL.Path, "request_id", middleware.GetReqID(r.Context()), "error", err)
	}
	h := w.Header()
	if f.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int((f.RetryAfter+time.Second-1)/time.Second)))
	}
	h.Set("Cache-Control", "no-store")
	return f, code
}

// Challenge sets what a program that lacks a credential is told, if that is
// what is wrong.
func Challenge(w http.ResponseWriter, f *fault.Error) {
	if f.Kind == fault.Unauthenticated {
		w.Header().Set("WWW-Authenticate", `Bearer realm="agentsite"`)
	}
}

// PathParam is a part of the path, decoded once. The router hands it on as it
// was written only where that says more than the decoded path.
func PathParam(r *http.Request, key string) string {
	raw := chi.URLParam(r, key)
	if r.URL.RawPath == "" {
		return raw
	}
	if decoded, err := url.PathUnescape(raw); err == nil {
		return decoded
	}
	return raw
}

// Decode reads a JSON body of at most max bytes into v and says in words what
// is wrong with it. With known, a field that v does not have is an error.
func Decode(w http.ResponseWriter, r *http.Request, max int64, v any, known bool) error {
	return decode(w, r, max, v, known, true)
}

// DecodeFields is Decode for a service that looks at the text of each field
// and names the one that is wrong, which strictjson cannot.
func DecodeFields(w http.ResponseWriter, r *http.Request, max int64, v any, known bool) error {
	return decode(w, r, max, v, known, false)
}

func decode(w http.ResponseWriter, r *http.Request, max int64, v any, known, text bool) error {
	// curl -d says it sends a form; what counts is that the body is JSON.
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil && t != "application/json" && t != "application/x-www-form-urlencoded" && !strings.HasSuffix(t, "+json") {
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
	ofField := errors.Is(err, strictjson.ErrNUL) || errors.Is(err, strictjson.ErrSurrogate) || errors.Is(err, strictjson.ErrDepth)
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
	if f, ok := errors.AsType[*fault.Error](err); ok { // of an UnmarshalJSON
		return f
	}
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		field := t.Field
		if field == "" {
			field = "body"
		}
		return &fault.Error{Kind: fault.Invalid, Safe: field + ": has the wrong type, " + t.Value, Fields: map[string]string{field: "has the wrong type, " + t.Value}}
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		name = strings.Trim(name, `"`)
		return &fault.Error{Kind: fault.Invalid, Safe: fmt.Sprintf("%.80q is no field here; is it misspelt?", name), Fields: map[string]string{fmt.Sprintf("%.80s", name): "is no field here; is it misspelt?"}}
	}
	return fault.Wrap(fault.Invalid, err, "The body could not be read as JSON: it is malformed.")
}

// WriteJSON answers with v.
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
