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

// exchange is one HTTP request with its messages.
type exchange struct {
	endpoint *Endpoint
	w        http.ResponseWriter
	r        *http.Request
	actor    ident.Actor
	find     Find
}

// isModern reports whether a message is of a version without handshake: by its _meta, its header,
// or a method that only this version has.
func (x *exchange) isModern(m *message) bool {
	meta, _ := m.readMeta()
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

// serveOne serves the only message of a body.
func (x *exchange) serveOne(m *message) {
	switch {
	case m.isAnswer():
		x.takeAnswer(m)
	case !m.isRequest():
		x.takeNotice(m)
	default:
		x.serveRequest(m)
	}
}

// sendAccepted answers a message that has no result.
func (x *exchange) sendAccepted() { x.w.WriteHeader(http.StatusAccepted) }

// takeAnswer handles the answer to a question that was sent on a stream.
func (x *exchange) takeAnswer(m *message) {
	if !x.endpoint.pending.deliverAnswer(callerKey(x.actor), *m) {
		x.endpoint.sendError(x.w, x.r, nil, invalidRequest("No question waits for this answer, or it came too late."))
		return
	}
	x.sendAccepted()
}

// takeNotice handles a notification. Only the cancellation of a call has an effect here.
func (x *exchange) takeNotice(m *message) {
	if m.method == "notifications/cancelled" && !x.isModern(m) {
		if key := x.callKey(m.params.Get("requestId")); key != "" {
			x.endpoint.pending.cancelCall(key)
		}
	}
	x.sendAccepted()
}

// callKey returns the key of a call, "" for a call without a unique one: visitors at one address
// may use the same ids.
func (x *exchange) callKey(id json.RawMessage) string {
	session := x.r.Header.Get(sessionHeader)
	if _, ok := x.endpoint.readSession(session); !ok {
		session = ""
	}
	if !validID(id) || session == "" && x.actor.ID == "" {
		return ""
	}
	return callKey(callerKey(x.actor), session, id)
}

// serveRequest serves one request.
func (x *exchange) serveRequest(m *message) {
	out, ok := newReply(x.w, x.r)
	if !ok {
		x.endpoint.sendError(x.w, x.r, m.id, &Problem{Code: CodeInvalidRequest, Status: http.StatusNotAcceptable,
			Message: "Accept: take application/json, text/event-stream or, best, both."})
		return
	}
	defer out.closeSilently() // also if a function of the server panics
	body, err := x.callServer(m, out)
	out.closeSilently() // otherwise a keep-alive could write headers while an error is written
	if errors.Is(err, errSilent) {
		return
	}
	if err != nil {
		p := x.endpoint.problemOf(x.r, err)
		x.endpoint.setErrorHeaders(x.w, x.r, p)
		status := p.Status
		if status == 0 || out.hasStarted() {
			status = http.StatusOK
		}
		out.sendAnswer(status, wrapAnswer(m.id, "error", p.encodeError()))
		return
	}
	out.sendAnswer(http.StatusOK, wrapAnswer(m.id, "result", body))
}

// errSilent is returned for a cancelled request, which gets no answer.
var errSilent = errors.New("cancelled, so not answered")

// callServer runs a request.
func (x *exchange) callServer(m *message, out *reply) (json.RawMessage, error) {
	c := &Call{HTTP: x.r, Actor: x.actor, Method: m.method, Params: m.params, endpoint: x.endpoint, reply: out}
	var err error
	if x.isModern(m) {
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
	ctx, cancel := x.callContext(c)
	defer cancel(nil)
	return s.callMethod(ctx, cancel, m, c, x)
}

// cancelGrace is the time after the end of its connection in which a call can be cancelled: clients
// close the connection first and then send the cancellation.
const cancelGrace = 2 * time.Second

// callContext returns the context of a call. It ends with the connection; before 2026-07-28, where
// the end of the connection does not cancel a call, a little later.
func (x *exchange) callContext(c *Call) (context.Context, context.CancelCauseFunc) {
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

// openModern checks the requirements of 2026-07-28 for every request: the client's data in _meta,
// and headers equal to the body.
func (x *exchange) openModern(m *message, c *Call) error {
	bad := func(text string) *Problem {
		return &Problem{Code: CodeInvalidParams, Message: text, Status: http.StatusBadRequest}
	}
	v, there, ok := headerValue(x.r.Header, versionHeader)
	meta, isObject := m.readMeta()
	version, isText := meta.Text(metaVersion)
	if there && ok && v != Modern && !isHandshake(v) && version == "" {
		return unsupportedVersion(v) // a future version may have another _meta
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
	if p := checkRepeated(h, versionHeader, version); p != nil {
		return p
	}
	if version != Modern {
		return unsupportedVersion(version)
	}
	if p := checkRepeated(h, methodHeader, m.method); p != nil {
		return p
	}
	c.Version, c.Client = Modern, readClient(caps)
	if level, ok := meta.Text(metaLogLevel); ok {
		c.logLevel = level
	}
	c.token = progressToken(meta)
	return nil
}

func unsupportedVersion(version string) *Problem {
	return &Problem{Code: CodeVersion, Status: http.StatusBadRequest,
		Message: "This server speaks other versions of the protocol.",
		Data:    map[string]any{"supported": versions, "requested": cutText(version, 60)}}
}

func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return string(bytes.ToValidUTF8([]byte(s[:n]), nil)) + "…"
}

// openHandshake reads the data of the versions with a handshake: the session, if the client keeps
// one, and the version.
func (x *exchange) openHandshake(m *message, c *Call) error {
	if m.method == "initialize" {
		return nil
	}
	s := session{version: v2025Mar} // the version of clients that name none
	if id := x.r.Header.Get(sessionHeader); id != "" {
		var ok bool
		if s, ok = x.endpoint.readSession(id); !ok {
			return &Problem{Code: CodeRefused, Status: http.StatusNotFound,
				Message: "There is no such session. Start a new one with initialize."}
		}
	}
	if v := x.r.Header.Get(versionHeader); v != "" {
		s.version = v
	}
	c.Version, c.Client = s.version, s.client
	if !c.reply.events {
		c.Client = Client{} // without a stream the client cannot be asked
	}
	meta, ok := m.readMeta()
	if !ok {
		return Wrong("params._meta: use an object.")
	}
	c.token = progressToken(meta)
	return nil
}

// progressToken returns the token for progress notices, nil for none.
func progressToken(meta strictjson.Object) json.RawMessage {
	if t := meta.Get("progressToken"); validID(t) {
		return t
	}
	return nil
}

// serveBatch serves a list of messages, as the first versions allow, in order. Its answer is not a
// stream, so that questions and progress notices are impossible.
func (x *exchange) serveBatch(list []message) {
	version := x.r.Header.Get(versionHeader)
	if s, ok := x.endpoint.readSession(x.r.Header.Get(sessionHeader)); ok && version == "" {
		version = s.version
	}
	if version == "" {
		version = v2025Mar
	}
	if !hasBatches(version) {
		x.endpoint.sendError(x.w, x.r, nil, invalidRequest("This version of the protocol has no batches. Send one message at a time."))
		return
	}
	var out []json.RawMessage
	quiet := &reply{w: x.w, json: true}
	defer quiet.closeSilently()
	for i := range list {
		m := &list[i]
		switch {
		case m.isAnswer():
			x.endpoint.pending.deliverAnswer(callerKey(x.actor), *m)
			continue
		case !m.isRequest():
			continue
		}
		var body json.RawMessage
		var err error = invalidRequest("initialize: is not part of a batch.")
		if m.method != "initialize" && !x.isModern(m) {
			body, err = x.callServer(m, quiet)
		}
		switch {
		case errors.Is(err, errSilent):
		case err != nil:
			out = append(out, wrapAnswer(m.id, "error", x.endpoint.problemOf(x.r, err).encodeError()))
		default:
			out = append(out, wrapAnswer(m.id, "result", body))
		}
	}
	if out == nil {
		x.sendAccepted()
		return
	}
	quiet.closeSilently()
	sendJSON(x.w, http.StatusOK, encodeJSON(out))
}
