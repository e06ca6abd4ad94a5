package endpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"agentsite/internal/ident"
	"agentsite/internal/strictjson"
)

// exchange is one request of HTTP with its messages.
type exchange struct {
	endpoint *Endpoint
	w        http.ResponseWriter
	r        *http.Request
	actor    ident.Actor
	find     Find
}

// modern reports whether a message is of a version without handshake: it says
// so in its _meta or its header, or has a method that is only there.
func (x *exchange) modern(m *message) bool {
	meta, _ := m.meta()
	if meta.Get(metaVersion) != nil {
		return true
	}
	v := x.r.Header.Get(versionHeader)
	switch {
	case m.method == "initialize":
		return false
	case v != "":
		return !isHandshake(v)
	}
	return m.method == "server/discover" || m.method == "subscriptions/listen" || x.r.Header.Get(methodHeader) != ""
}

// single serves the one message of a body.
func (x *exchange) single(m *message) {
	switch {
	case m.isAnswer():
		x.answered(m)
	case !m.isRequest():
		x.notified(m)
	default:
		x.request(m)
	}
}

// accepted says that there is nothing to answer.
func (x *exchange) accepted() { x.w.WriteHeader(http.StatusAccepted) }

// answered takes the answer to a question that was asked on a stream.
func (x *exchange) answered(m *message) {
	if !x.endpoint.pending.answered(whose(x.actor), *m) {
		x.endpoint.fail(x.w, x.r, nil, invalid("Nobody asked for this answer, or it came too late."))
		return
	}
	x.accepted()
}

// notified takes a notification. The end of a call is the only one that means
// something here.
func (x *exchange) notified(m *message) {
	if m.method == "notifications/cancelled" && !x.modern(m) {
		if key := x.callKey(m.params.Get("requestId")); key != "" {
			x.endpoint.pending.cancel(key)
		}
	}
	x.accepted()
}

// callKey tells a call, "" for one that cannot be told from others: visitors
// of one address may number theirs alike.
func (x *exchange) callKey(id json.RawMessage) string {
	session := x.r.Header.Get(sessionHeader)
	if _, ok := x.endpoint.session(session); !ok {
		session = ""
	}
	if !validID(id) || session == "" && x.actor.ID == "" {
		return ""
	}
	return callKey(whose(x.actor), session, id)
}

// request serves one request.
func (x *exchange) request(m *message) {
	out, ok := newReply(x.w, x.r)
	if !ok {
		x.endpoint.fail(x.w, x.r, m.id, &Problem{Code: CodeInvalidRequest, Status: http.StatusNotAcceptable, Message: "Accept: take application/json, text/event-stream or, best, both."})
		return
	}
	defer out.silent() // also when a function of the server panics
	body, err := x.serve(m, out)
	out.silent() // else a sign of life might write headers while an error does
	if errors.Is(err, errSilent) {
		return
	}
	if err != nil {
		p := x.endpoint.problem(x.r, err)
		x.endpoint.refuse(x.w, x.r, p)
		status := p.Status
		if status == 0 || out.started() {
			status = http.StatusOK
		}
		out.end(status, envelope(m.id, "error", p.wire()))
		return
	}
	out.end(http.StatusOK, envelope(m.id, "result", body))
}

// errSilent is returned for a request that gets no answer: it was cancelled.
var errSilent = errors.New("cancelled, so not answered")

// serve does what a request asks for.
func (x *exchange) serve(m *message, out *reply) (json.RawMessage, error) {
	c := &Call{HTTP: x.r, Actor: x.actor, Method: m.method, Params: m.params, endpoint: x.endpoint, reply: out}
	var err error
	if x.modern(m) {
		err = x.openModern(m, c)
	} else {
		err = x.openHandshake(m, c)
	}
	if err != nil {
		return nil, err
	}
	s, err := x.find(x.r.Context(), x.r, x.actor)
	if err != nil {
		return nil, err
	}
	ctx, cancel := x.context(c)
	defer cancel(nil)
	return s.serve(ctx, cancel, m, c, x)
}

// cancelGrace is how long after the end of its connection a call waits to be
// cancelled: clients close the one and then send the other.
const cancelGrace = 2 * time.Second

// context is that of a call. It ends with the connection; before 2026-07-28,
// where that says nothing yet, a little later.
func (x *exchange) context(c *Call) (context.Context, context.CancelCauseFunc) {
	if c.Modern() {
		return context.WithCancelCause(x.r.Context())
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(x.r.Context()))
	stop := context.AfterFunc(x.r.Context(), func() {
		time.AfterFunc(cancelGrace, func() { cancel(context.Canceled) })
	})
	return ctx, func(cause error) {
		if cause == nil { // the call has ended
			stop()
		}
		cancel(cause)
	}
}

// openModern checks what 2026-07-28 demands of every request: who it is from
// in _meta, and headers that say the same as the body.
func (x *exchange) openModern(m *message, c *Call) error {
	bad := func(text string) *Problem {
		return &Problem{Code: CodeInvalidParams, Message: text, Status: http.StatusBadRequest}
	}
	v, there, ok := header(x.r.Header, versionHeader)
	meta, isObject := m.meta()
	version, isText := meta.Text(metaVersion)
	if there && ok && v != Modern && !isHandshake(v) && version == "" {
		return unsupported(v) // a version to come may have another _meta
	}
	caps, isCaps := strictjson.Split(meta.Get(metaCapabilities))
	switch {
	case !isObject || meta == nil:
		return bad("params._meta: every request has it, with " + metaVersion + " and " + metaCapabilities + ".")
	case !isText || version == "":
		return bad("params._meta: " + metaVersion + " is missing.")
	case !isCaps:
		return bad("params._meta: " + metaCapabilities + " is missing; {} is for a client that can do nothing special.")
	}
	h := x.r.Header
	if p := repeats(h, versionHeader, version); p != nil {
		return p
	}
	if version != Modern {
		return unsupported(version)
	}
	if p := repeats(h, methodHeader, m.method); p != nil {
		return p
	}
	c.Version, c.Client = Modern, readClient(caps)
	if level, ok := meta.Text(metaLogLevel); ok {
		c.logLevel = level
	}
	c.token = progressToken(meta)
	return nil
}

func unsupported(version string) *Problem {
	return &Problem{Code: CodeVersion, Status: http.StatusBadRequest, Message: "This server speaks other versions of the protocol.",
		Data: map[string]any{"supported": versions, "requested": cut(version, 60)}}
}

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return string(bytes.ToValidUTF8([]byte(s[:n]), nil)) + "…"
}

// openHandshake reads what the versions with a handshake send: the session,
// if the client keeps one, and the version.
func (x *exchange) openHandshake(m *message, c *Call) error {
	if m.method == "initialize" {
		return nil
	}
	s := session{version: v2025Mar} // who says nothing speaks this one
	if id := x.r.Header.Get(sessionHeader); id != "" {
		var ok bool
		if s, ok = x.endpoint.session(id); !ok {
			return &Problem{Code: CodeRefused, Status: http.StatusNotFound, Message: "There is no such session. Begin a new one with initialize."}
		}
	}
	if v := x.r.Header.Get(versionHeader); v != "" {
		s.version = v
	}
	c.Version, c.Client = s.version, s.client
	if !c.reply.events {
		c.Client = Client{} // there is no way to ask it
	}
	meta, ok := m.meta()
	if !ok {
		return Wrong("params._meta: use an object.")
	}
	c.token = progressToken(meta)
	return nil
}

// progressToken is what a client wants progress under, nil for nothing.
func progressToken(meta strictjson.Object) json.RawMessage {
	if t := meta.Get("progressToken"); validID(t) {
		return t
	}
	return nil
}

// batch serves a list of messages, as the first versions have them, in order.
// Its answer is no stream, so nothing can be asked or told in between.
func (x *exchange) batch(list []message) {
	version := x.r.Header.Get(versionHeader)
	if s, ok := x.endpoint.session(x.r.Header.Get(sessionHeader)); ok && version == "" {
		version = s.version
	}
	if version == "" {
		version = v2025Mar
	}
	if !batches(version) {
		x.endpoint.fail(x.w, x.r, nil, invalid("This version of the protocol has no batches. Send one message at a time."))
		return
	}
	var out []json.RawMessage
	quiet := &reply{w: x.w, json: true}
	defer quiet.silent()
	for i := range list {
		m := &list[i]
		switch {
		case m.isAnswer():
			x.endpoint.pending.answered(whose(x.actor), *m)
			continue
		case !m.isRequest():
			continue
		}
		var body json.RawMessage
		var err error = invalid("initialize: is not part of a batch.")
		if m.method != "initialize" && !x.modern(m) {
			body, err = x.serve(m, quiet)
		}
		switch {
		case errors.Is(err, errSilent):
		case err != nil:
			out = append(out, envelope(m.id, "error", x.endpoint.problem(x.r, err).wire()))
		default:
			out = append(out, envelope(m.id, "result", body))
		}
	}
	if out == nil {
		x.accepted()
		return
	}
	quiet.silent()
	sendJSON(x.w, http.StatusOK, encode(out))
}
