package endpoint

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"agentsite/handlers/respond"
)

// stillAfter bounds the silence of an answer. Until then, or until the first event, the answer has
// not started: a fast answer is plain JSON with the status of its error.
const stillAfter = 15 * time.Second

// reply is the answer to one request: one JSON object, or a stream of events that ends with it.
type reply struct {
	w            http.ResponseWriter
	json, events bool // forms that the client accepts

	mu    sync.Mutex // guards the rest
	open  *respond.Events
	over  bool
	timer *time.Timer
	// lifted is set if the server's deadlines were lifted, so that the answer needs one of its own.
	lifted bool
}

// newReply reads the accepted forms. Without the header it is JSON; ok is false for a client that
// accepts neither form.
func newReply(w http.ResponseWriter, r *http.Request) (p *reply, ok bool) {
	p = &reply{w: w}
	list := r.Header.Values("Accept")
	if len(list) == 0 {
		p.json = true
		return p, true
	}
	for _, line := range list {
		for kind := range strings.SplitSeq(line, ",") {
			kind, _, _ = strings.Cut(kind, ";")
			switch strings.ToLower(strings.TrimSpace(kind)) {
			case "*/*", "application/*", "application/json":
				p.json = true
			case "text/event-stream", "text/*":
				p.events = true
			}
		}
	}
	return p, p.json || p.events
}

// keepAlive prepares for a request that may take minutes: it lifts the server's deadlines and sends
// keep-alives on a stream.
func (p *reply) keepAlive() {
	p.mu.Lock()
	defer p.mu.Unlock()
	respond.LiftDeadlines(p.w)
	p.lifted = true
	if !p.events {
		return
	}
	p.timer = time.AfterFunc(stillAfter, p.stillHere)
}

func (p *reply) stillHere() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over || p.openStream() != nil || p.open.KeepAlive() != nil {
		return
	}
	p.timer.Reset(stillAfter)
}

// openStream opens the stream. The caller holds mu.
func (p *reply) openStream() (err error) {
	if p.open == nil {
		p.open, err = respond.OpenEvents(p.w)
	}
	return err
}

// sendEvent sends a message before the answer. It returns false if the client accepts no stream or
// the stream has ended.
func (p *reply) sendEvent(b []byte) bool {
	if !p.events {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over || p.openStream() != nil {
		return false
	}
	return p.open.Write(encodeEvent(b)) == nil
}

// encodeEvent encodes one server-sent event.
func encodeEvent(b []byte) []byte {
	out := make([]byte, 0, len(b)+24)
	return append(append(append(out, "event: message\ndata: "...), b...), "\n\n"...)
}

// sendAnswer sends the answer.
func (p *reply) sendAnswer(status int, b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopTimers()
	if p.open != nil || !p.json && status < 300 {
		if p.openStream() == nil {
			p.open.Write(encodeEvent(b))
		}
		return
	}
	sendJSON(p.w, status, b)
}

// stopTimers ends the keep-alives and restores the write deadline. The caller holds mu.
func (p *reply) stopTimers() {
	p.over = true
	if p.timer != nil {
		p.timer.Stop()
	}
	if p.lifted {
		respond.SetWriteDeadline(p.w)
	}
}

// closeSilently ends the reply of a call without an answer. After it nothing more is written.
func (p *reply) closeSilently() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopTimers()
}

func sendJSON(w http.ResponseWriter, status int, b json.RawMessage) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	w.Write(b)
}

// hasStarted reports whether a stream is open.
func (p *reply) hasStarted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open != nil
}
