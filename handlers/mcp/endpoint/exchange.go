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

// exchange is one HTTP request with one message or a batch of messages.
type exchange struct {
	endpoint *Endpoint
	w        http.ResponseWriter
	r        *http.Request
	actor    ident.Actor
	find     Find
}

// isModern reports whether a message belongs to a version without handshake. Its _meta, the version
// header or a method that only these versions have shows it.
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

// serveOne handles a body with a single message: a request, a notification or an answer.
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

// sendAccepted answers a message that has no result with 202.
func (x *exchange) sendAccepted() { x.w.WriteHeader(http.StatusAccepted) }

// takeAnswer passes a client's answer to the call that asked for it on its stream. Without such a call it
// answers with an error.
func (x *exchange) takeAnswer(m *message) {
	if !x.endpoint.pending.deliverAnswer(callerKey(x.actor), *m) {
		x.endpoint.sendError(x.w, x.r, nil, invalidRequest("No question waits for this answer, or it came too late."))
		return
	}
	x.sendAccepted()
}

// takeNotice handles a notification. Only notifications/cancelled has an effect, and only in versions
// with a handshake; the others are accepted and ignored.
func (x *exchange) takeNotice(m *message) {
	if m.method == "notifications/cancelled" && !x.isModern(m) {
		if key := x.callKey(m.params.Get("requestId")); key != "" {
			x.endpoint.pending.cancelCall(key)
		}
	}
	x.sendAccepted()
}

// callKey returns the key by which a call can be canceled, "" if the id is not unique: guests at one
// address without a session may use the same ids.
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

// serveRequest runs one request and sends its answer.
func (x *exchange) serveRequest(m *message) {
	out, ok := newReply(x.w, x.r)
	if !ok {
		x.endpoint.sendError(x.w, x.r, m.id, &Problem{Code: CodeInvalidRequest, Status: http.StatusNotAcceptable,
			Message: "Accept: take application/json, text/event-stream or, best, both."})
		return
	}
	defer out.closeSilently() // needed if a function of the server panics
	body, err := x.callServer(m, out)
	out.closeSilently() // stops keep-alives, which would otherwise write headers while an error is written
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

// errSilent is returned for a call that its client canceled. Such a call gets no answer.
var errSilent = errors.New("cancelled, so not answered")

// callServer finds the server and runs the method of a request. It returns the result to send, or
// errSilent.
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

// cancelGrace is how long a call can still be canceled after its connection has ended, because clients
// close the connection first and then send the cancellation.
const cancelGrace = 2 * time.Second

// callContext returns the context of a call, and a function that cancels it. The context ends with the
// connection. In versions before 2026-07-28, where the end of the connection does not cancel a call, it
// ends cancelGrace later.
func (x *exchange) callContext(c *Call) (context.Context, context.CancelCauseFunc) {
	if c.Modern() {
		return context.WithCancelCause(x.r.Context())
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(x.r.Context()))
	stop := context.AfterFunc(x.r.Context(), func() {
		time.AfterFunc(cancelGrace, func() { cancel(context.Canceled) })
	})
	return ctx, func(cause error) {
		if cause == nil { // a nil cause means that the call has ended by itself
			stop()
		}
		cancel(cause)
	}
}

// openModern checks the requirements of MCP version 2026-07-28 (Modern) for every request: _meta with the
// version and the client's capabilities, and headers that repeat the version and the method. It writes
// them to c; errors for the client are Problems.
func (x *exchange) openModern(m *message, c *Call) error {
	bad := func(text string) *Problem {
		return &Problem{Code: CodeInvalidParams, Message: text, Status: http.StatusBadRequest}
	}
	v, there, ok := headerValue(x.r.Header, versionHeader)
	meta, isObject := m.readMeta()
	version, isText := meta.Text(metaVersion)
	if there && ok && v != Modern && !isHandshake(v) && version == "" {
		// another version may have another form of _meta, so only the version is reported
		return unsupportedVersion(v)
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

// openHandshake reads the version and the client's capabilities of a call with a handshake: from the
// session id if the client sends one.
func (x *exchange) openHandshake(m *message, c *Call) error {
	if m.method == "initialize" {
		return nil
	}
	s := session{version: v2025Mar} // the version of clients that send no version
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
		c.Client = Client{} // without a stream the portal cannot send requests to the client
	}
	meta, ok := m.readMeta()
	if !ok {
		return Wrong("params._meta: use an object.")
	}
	c.token = progressToken(meta)
	return nil
}

// progressToken returns the token for progress notifications, nil if the client wants none.
func progressToken(meta strictjson.Object) json.RawMessage {
	if t := meta.Get("progressToken"); validID(t) {
		return t
	}
	return nil
}

// serveBatch handles a list of messages in order, as the two oldest versions allow. The answer is one
// JSON array, so requests to the client and progress notifications are impossible.
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
