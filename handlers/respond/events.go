package respond

import (
	"context"
	"errors"
	"net/http"
	"time"

	"agentsite/internal/chat"
)

// writeTimeout is how long the write of one event may take.
const writeTimeout = 10 * time.Second

// stillHere is a comment, which readers skip. It shows proxies that the stream is alive.
var stillHere = []byte(": still here\n\n")

// Events writes server-sent events. One goroutine uses it.
type Events struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

// OpenEvents answers with a stream of events.
func OpenEvents(w http.ResponseWriter) (*Events, error) {
	e := &Events{w, http.NewResponseController(w)}
	// The server's deadlines are for requests that end. Each write of the stream has its own.
	e.rc.SetReadDeadline(time.Time{})
	e.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	return e, e.rc.Flush()
}

// Write writes one or more whole events and flushes them.
func (e *Events) Write(b []byte) error {
	e.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := e.w.Write(b); err != nil {
		return err
	}
	return e.rc.Flush()
}

// KeepAlive writes a comment that keeps the stream alive.
func (e *Events) KeepAlive() error { return e.Write(stillHere) }

// Run writes the results of next until the client or next ends. The context of next ends when the stream may not be
// silent any longer.
func (e *Events) Run(ctx context.Context, next func(context.Context) ([]byte, error)) {
	for {
		nctx, cancel := context.WithTimeout(ctx, chat.IdleAfter)
		b, err := next(nctx)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, context.DeadlineExceeded):
			b = stillHere
		case err != nil:
			return
		}
		if e.Write(b) != nil {
			return
		}
	}
}

// LiftDeadlines removes the server's deadlines from a request whose single answer may take minutes. Call
// SetWriteDeadline before the answer is written.
func LiftDeadlines(w http.ResponseWriter) {
	rc := http.NewResponseController(w)
	rc.SetReadDeadline(time.Time{}) // else it would end the request's context
	rc.SetWriteDeadline(time.Time{})
}

// SetWriteDeadline sets a deadline for writing an answer.
func SetWriteDeadline(w http.ResponseWriter) {
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
}

// IgnoreGone returns err unless the answer has begun. After that the client has gone, or sees the end of the
// stream.
func IgnoreGone(e *Events, err error) error {
	if e != nil {
		return nil
	}
	return err
}
