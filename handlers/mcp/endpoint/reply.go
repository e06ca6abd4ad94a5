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

// stillAfter is how long an answer may be silent. Until then, or until there
// is something to tell, it has not begun: what is done by then is plain JSON
// with the status of its error.
const stillAfter = 15 * time.Second

// reply is the answer to one request: one JSON object, or a stream of events
// that ends with it.
type reply struct {
	w            http.ResponseWriter
	json, events bool // what the client takes

	mu    sync.Mutex // guards the rest
	open  *respond.Events
	over  bool
	timer *time.Timer
	// hurry puts a deadline on the writing of the answer again; nil where the
	// server's own still holds.
	hurry func()
}

// newReply reads what the client takes. Nothing said is JSON; ok is false for
// a client that takes neither.
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

// wait is for a request that may take minutes: the server's deadlines end,
// and a stream gets signs of life.
func (p *reply) wait() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hurry = respond.LiftDeadlines(p.w)
	if !p.events {
		return
	}
	p.timer = time.AfterFunc(stillAfter, p.stillHere)
}

func (p *reply) stillHere() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over || p.begin() != nil || p.open.KeepAlive() != nil {
		return
	}
	p.timer.Reset(stillAfter)
}

// begin opens the stream; the caller holds mu.
func (p *reply) begin() (err error) {
	if p.open == nil {
		p.open, err = respond.OpenEvents(p.w)
	}
	return err
}

// event sends a message before the answer. It reports whether it could: not
// to a client that takes no stream.
func (p *reply) event(b []byte) bool {
	if !p.events {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over || p.begin() != nil {
		return false
	}
	return p.open.Write(frame(b)) == nil
}

// frame is one server-sent event.
func frame(b []byte) []byte {
	out := make([]byte, 0, len(b)+24)
	return append(append(append(out, "event: message\ndata: "...), b...), "\n\n"...)
}

// end sends the answer.
func (p *reply) end(status int, b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stop()
	if p.open != nil || !p.json && status < 300 {
		if p.begin() == nil {
			p.open.Write(frame(b))
		}
		return
	}
	sendJSON(p.w, status, b)
}

// stop ends the signs of life, and the patience with who reads; the caller
// holds mu.
func (p *reply) stop() {
	p.over = true
	if p.timer != nil {
		p.timer.Stop()
	}
	if p.hurry != nil {
		p.hurry()
	}
}

// silent ends the reply of a call that gets no answer here. After that nothing
// is written, whatever else may happen.
func (p *reply) silent() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stop()
}

func sendJSON(w http.ResponseWriter, status int, b json.RawMessage) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	w.Write(b)
}

// started reports whether a stream is open.
func (p *reply) started() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open != nil
}
