package a2a

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"agentsite/handlers/respond"
	"agentsite/internal/a2a"
)

type envelope struct {
	Version string `json:"jsonrpc"`
	ID      any    `json:"id"`
	Result  any    `json:"result,omitempty"`
	Error   any    `json:"error,omitempty"`
}

// serveRPC serves the JSON-RPC binding (§9) in both versions. An error has status 200, as in
// JSON-RPC over HTTP, unless clients act on the HTTP status: missing credentials, limits and
// unknown addresses.
func (d *Handler) serveRPC(w http.ResponseWriter, r *http.Request) {
	c := a2a.Call{ID: []byte("null")}
	result, err := func() (any, error) {
		actor, err := d.cfg.Callers.Authenticate(r)
		if err != nil {
			return nil, err
		}
		respond.SetReader(w, actor)
		if err := isJSON(r); err != nil {
			return nil, err
		}
		b, err := readBody(w, r, actor)
		if err != nil {
			return nil, err
		}
		var f *a2a.Failure
		if c, f = a2a.ReadCall(b); f != nil {
			return nil, f
		}
		version, f := spokenVersion(r, c.Method)
		if f != nil {
			return nil, f
		}
		method := a2a.RPCMethod(c.Method, version)
		if method == a2a.NoMethod {
			return nil, a2a.Fail(a2a.CodeMethodNotFound, "A2A "+version+" has no method "+a2a.Line(c.Method, 60)+".")
		}
		tenant, f := a2a.ReadTenant(c.Params)
		if f != nil {
			return nil, f
		}
		q := methodCall{w: w, r: r, handler: d, proven: actor, method: method, write: a2a.Writer{Version: version},
			params: c.Params, binding: rpcBinding{c.ID}}
		return q.answerCall(tenant)
	}()
	if errors.Is(err, errStreamed) {
		return
	}
	out, code := envelope{Version: "2.0", ID: c.ID, Result: result}, http.StatusOK
	if err != nil {
		f := d.failureOf(r, err)
		setErrorHeaders(w.Header(), f)
		out.Result, out.Error = nil, f.RPC()
		if f.Status != 0 || f.Code == a2a.CodeUnauthenticated || f.Code == a2a.CodeForbidden ||
			f.Code == a2a.CodeServer || f.Code == a2a.CodeInternal {
			code = f.HTTP()
		}
		if code == http.StatusOK && onlyEvents(r) {
			if e, err := respond.OpenEvents(w); err == nil {
				e.Write(encodeFrame(out))
			}
			return
		}
	}
	sendJSON(w, code, "application/json", out)
}

// onlyEvents reports whether a client accepts nothing but server-sent events. Other clients also read an
// error in plain JSON, but the Go SDK 2.4.0, recognized by the User-Agent of Go's client, takes such an
// error for a stream that ends without an event.
func onlyEvents(r *http.Request) bool {
	if !strings.HasPrefix(r.UserAgent(), "Go-http-client/") {
		return false
	}
	accept := strings.Join(r.Header.Values("Accept"), ",")
	for kind := range strings.SplitSeq(accept, ",") {
		kind, _, _ = strings.Cut(kind, ";")
		if !strings.EqualFold(strings.TrimSpace(kind), "text/event-stream") {
			return false
		}
	}
	return true
}

// spokenVersion returns the version of the protocol that the caller uses (§3.6). A missing header means
// 0.3 by the specification. Methods have other names in 1.0, so without the header the method's name
// decides, for requests by hand.
func spokenVersion(r *http.Request, method string) (string, *a2a.Failure) {
	v := strings.TrimSpace(r.Header.Get("A2A-Version"))
	if v == "" {
		v = r.URL.Query().Get("A2A-Version")
	}
	switch {
	case v == a2a.Version10 || strings.HasPrefix(v, "1.0."):
		return a2a.Version10, nil
	case v == "" && (method == "" || a2a.RPCMethod(method, a2a.Version10) != a2a.NoMethod):
		return a2a.Version10, nil
	case method != "" && (v == "" || v == a2a.Version03 || strings.HasPrefix(v, "0.3.")):
		return a2a.Version03, nil
	case method == "":
		return "", a2a.Fail(a2a.CodeVersionNotSupported,
			"This binding serves A2A 1.0. Send the header A2A-Version: 1.0.")
	}
	return "", a2a.Fail(a2a.CodeVersionNotSupported, "This portal serves A2A 1.0 and 0.3, and not "+a2a.Line(v, 20)+".")
}

// rpcBinding sends events as JSON-RPC responses with the id of the call.
type rpcBinding struct{ id json.RawMessage }

func (b rpcBinding) wrapEvent(v any) any { return envelope{Version: "2.0", ID: b.id, Result: v} }

func (b rpcBinding) wrapFailure(f *a2a.Failure) any {
	return envelope{Version: "2.0", ID: b.id, Error: f.RPC()}
}
