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

// stillAfter is how long an answer stays silent before it becomes a stream with keep-alives. An answer
// before that, and before the first event, is plain JSON with the status of its error.
const stillAfter = 15 * time.Second

// reply writes the answer to one request: one JSON object, or a stream of events that ends with that
// object.
type reply struct {
	w            http.ResponseWriter
	json, events bool // forms of an answer that the client accepts

	mu    sync.Mutex // guards the fields below
	open  *respond.Events
	over  bool
	timer *time.Timer
	// lifted is true if the HTTP server's deadlines were removed, so that the answer needs a deadline of
	// its own.
	lifted bool
}

// newReply reads the accepted forms from the Accept header; a missing header means JSON. ok is false if
// the client accepts neither form.
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

// keepAlive prepares for a call that may take minutes: it removes the HTTP server's deadlines, and sends
// keep-alives if the client accepts a stream.
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

// openStream starts the stream of events. The caller holds p.mu.
func (p *reply) openStream() (err error) {
	if p.open == nil {
		p.open, err = respond.OpenEvents(p.w)
	}
	return err
}

// sendEvent sends a message before the answer. It returns false if the client accepts no stream or has
// disconnected.
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

// encodeEvent encodes b as one server-sent event.
func encodeEvent(b []byte) []byte {
	out := make([]byte, 0, len(b)+24)
	return append(append(append(out, "event: message\ndata: "...), b...), "\n\n"...)
}

// sendAnswer sends the answer: as the last event if a stream is open, otherwise as JSON with the status.
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

// stopTimers stops the keep-alives and sets a deadline for the answer. The caller holds p.mu.
func (p *reply) stopTimers() {
	p.over = true
	if p.timer != nil {
		p.timer.Stop()
	}
	if p.lifted {
		respond.SetWriteDeadline(p.w)
	}
}

// closeSilently ends a reply without an answer. Nothing is written afterwards. It may be called more than
// once.
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

// hasStarted reports whether the stream is open, so that the HTTP status can no longer change.
func (p *reply) hasStarted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open != nil
}
