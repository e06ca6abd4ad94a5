package peer

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/go-chi/chi/v5/middleware"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/strictjson"
)

// JSON is an answer that is encoded already, from stored records for example.
type JSON []byte

// MarshalJSON implements json.Marshaler with the bytes themselves.
func (j JSON) MarshalJSON() ([]byte, error) { return j, nil }

// Plain is an encoded answer that is sent without compression, because a person waits for it and
// compression would take longer than the rest of the request.
type Plain []byte

// MarshalJSON implements json.Marshaler with the bytes themselves.
func (p Plain) MarshalJSON() ([]byte, error) { return p, nil }

// Lines is an answer that consists of one JSON value per line.
type Lines struct {
	List [][]byte
	// More is true if a further request gets more lines.
	More bool
}

// MoreField is the response header that carries Lines.More.
const MoreField = "Agentsite-More"

// minZipped is the size in bytes from which an answer is compressed. A smaller one fits into a few
// packets, and compression would take longer than the rest of the request.
const minZipped = 4 << 10

// zippers reuses gzip writers, because each allocates a megabyte.
type zippers struct{ pool sync.Pool }

func (p *zippers) compress(b []byte) []byte {
	var out bytes.Buffer
	out.Grow(len(b) / 2)
	zw, ok := p.pool.Get().(*gzip.Writer)
	if !ok {
		zw, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed) // cannot fail, because the level is valid
	}
	zw.Reset(&out)
	_, _ = zw.Write(b) // cannot fail, because the destination is memory
	_ = zw.Close()
	p.pool.Put(zw)
	return out.Bytes()
}

// writeAnswer sends the result of a Handler: as JSON, or in the form of Plain, Lines or Binary.
func (d *Door) writeAnswer(w http.ResponseWriter, r *http.Request, v any) error {
	h := w.Header()
	if b, ok := v.(Plain); ok {
		h.Set("Content-Type", "application/json")
		d.sendBody(w, r, b, false)
		return nil
	}
	if b, ok := v.(Binary); ok {
		h.Set("Content-Type", "application/octet-stream")
		d.sendBody(w, r, b, false)
		return nil
	}
	l, ok := v.(Lines)
	if !ok {
		b, ok := v.(JSON)
		if !ok {
			var err error
			if b, err = encodeJSON(v); err != nil {
				return err
			}
		}
		h.Set("Content-Type", "application/json")
		d.sendBody(w, r, b, true)
		return nil
	}
	var b bytes.Buffer
	for _, line := range l.List {
		b.Write(line)
		b.WriteByte('\n')
	}
	if l.More {
		h.Set(MoreField, "true")
	}
	h.Set("Content-Type", "application/x-ndjson")
	d.sendBody(w, r, b.Bytes(), true)
	return nil
}

// sendBody sends a complete body. With zip it is compressed if the caller accepts gzip.
func (d *Door) sendBody(w http.ResponseWriter, r *http.Request, b []byte, zip bool) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Add("Vary", "Accept-Encoding")
	if zip && len(b) >= minZipped && acceptsGzip(r) {
		b = d.zippers.compress(b)
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Length", strconv.Itoa(len(b)))
	if r.Method != http.MethodHead {
		w.Write(b) // an error means that the caller has disconnected
	}
}

// acceptsGzip reports whether the Accept-Encoding header allows gzip.
func acceptsGzip(r *http.Request) bool {
	for _, e := range strings.Split(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, q, _ := strings.Cut(strings.TrimSpace(e), ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") && strings.Trim(q, " 0.") != "q=" {
			return true
		}
	}
	return false
}

func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // signed records must keep their bytes
	err := e.Encode(v)
	return b.Bytes(), err
}

// Decode decodes a JSON body into v. It is strict about syntax, but ignores unknown members, because
// newer portals may send more.
func Decode(body []byte, v any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return federation.Refuse(federation.ReasonMalformed, "The body is empty; send JSON.")
	}
	err := strictjson.Check(body)
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return federation.Refuse(federation.ReasonMalformed, "The body is not JSON: %s.", err)
	}
	if err != nil {
		return federation.Refuse(federation.ReasonMalformed, "The JSON has %s.", err)
	}
	if err := json.Unmarshal(body, v); err != nil {
		if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return federation.Refuse(federation.ReasonMalformed, "%s: a value of another type was expected.", t.Field)
		}
		return federation.Refuse(federation.ReasonMalformed, "The body does not fit this route: %.200s.", err)
	}
	return nil
}

// errorJSON is a refusal as portals send it, docs/design/peering.md.
type errorJSON struct {
	Error struct {
		Kind    fault.Kind        `json:"kind"`
		Reason  federation.Reason `json:"reason"`
		Message string            `json:"message"`
	} `json:"error"`
}

// Fail answers with a refusal. Details that only the operator may read go to the log.
func (d *Door) Fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		err = federation.Refuse(federation.ReasonBusy, "The request was canceled.")
	}
	refused := federation.RefusalOf(err)
	d.cfg.Guard.Strike(request.ClientIP(r), refused.Reason)
	f := fault.As(refused)
	if f.Kind == fault.Internal {
		d.cfg.Log.Error("request failed", "method", r.Method, "path", r.URL.Path, "request_id",
			middleware.GetReqID(r.Context()), "error", err)
	}
	h := w.Header()
	respond.RetryAfter(h, f.RetryAfter)
	if refused.Status() == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Signature")
	}
	var e errorJSON
	e.Error.Kind, e.Error.Reason, e.Error.Message = f.Kind, refused.Reason, f.Safe
	b, err := encodeJSON(e)
	if err != nil {
		http.Error(w, "", http.StatusInternalServerError)
		return
	}
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(refused.Status())
	if r.Method != http.MethodHead {
		w.Write(b)
	}
}
