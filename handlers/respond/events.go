package respond

import (
	"context"
	"errors"
	"net/http"
	"time"

	"agentsite/internal/chat"
)

// writeTimeout bounds the write of one answer or event; a client that reads more slowly is disconnected.
const writeTimeout = 10 * time.Second

// stillHere is a comment line, which clients ignore. It shows proxies that the stream is alive.
var stillHere = []byte(": still here\n\n")

// Events writes server-sent events. One goroutine uses it.
type Events struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

// OpenEvents starts an answer that is a stream of server-sent events. After it the status can no longer
// change.
func OpenEvents(w http.ResponseWriter) (*Events, error) {
	e := &Events{w, http.NewResponseController(w)}
	beginStream(w, writeTimeout)
	// The HTTP server's deadlines are for requests that end. Each write of a stream has its own deadline.
	e.rc.SetReadDeadline(time.Time{})
	e.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	return e, e.rc.Flush()
}

// Write writes one or more whole events and flushes them to the client.
func (e *Events) Write(b []byte) error {
	e.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := e.w.Write(b); err != nil {
		return err
	}
	return e.rc.Flush()
}

// KeepAlive writes a comment, so that proxies do not close a silent stream.
func (e *Events) KeepAlive() error { return e.Write(stillHere) }

// Run writes the results of next until the client disconnects or next returns an error. The context of
// next ends when a keep-alive is due; next is then called again.
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

// LiftDeadlines removes the HTTP server's deadlines from a request with an answer that may take minutes. Call
// SetWriteDeadline before writing the answer.
func LiftDeadlines(w http.ResponseWriter) {
	rc := http.NewResponseController(w)
	rc.SetReadDeadline(time.Time{}) // a read deadline would end the request's context
	rc.SetWriteDeadline(time.Time{})
}

// SetWriteDeadline gives the client writeTimeout from now on to receive the answer.
func SetWriteDeadline(w http.ResponseWriter) {
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
}

// IgnoreGone returns err if no event was written yet, and nil otherwise: the answer has begun, so the
// client can only see the stream end.
func IgnoreGone(e *Events, err error) error {
	if e != nil {
		return nil
	}
	return err
}
