package handlers

import (
	"context"
	"errors"
	"net/http"
	"time"

	"agentsite/internal/chat"
)

// eventStream writes server-sent events.
type eventStream struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

func openEvents(w http.ResponseWriter) (*eventStream, error) {
	e := &eventStream{w, http.NewResponseController(w)}
	// The server's deadlines are for requests that end; writes get their own.
	e.rc.SetReadDeadline(time.Time{})
	e.rc.SetWriteDeadline(time.Now().Add(liveWriteTimeout))
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	return e, e.rc.Flush()
}

func (e *eventStream) write(b []byte) error {
	e.rc.SetWriteDeadline(time.Now().Add(liveWriteTimeout))
	if _, err := e.w.Write(b); err != nil {
		return err
	}
	return e.rc.Flush()
}

// run writes what next returns until either ends; next gets as long as a
// stream may be silent.
func (e *eventStream) run(ctx context.Context, next func(context.Context) ([]byte, error)) {
	for {
		nctx, cancel := context.WithTimeout(ctx, chat.IdleAfter)
		b, err := next(nctx)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, context.DeadlineExceeded):
			b = []byte(": still here\n\n")
		case err != nil:
			return
		}
		if e.write(b) != nil {
			return
		}
	}
}

func (d *Door) liveSSE(ctx context.Context, w http.ResponseWriter, sub *chat.Subscription, html bool) error {
	form := plainEvent
	if html {
		form = htmlEvent
	}
	e, err := openEvents(w)
	if err != nil {
		return nil
	}
	e.run(ctx, func(ctx context.Context) ([]byte, error) {
		u, err := sub.Next(ctx)
		if err != nil {
			return nil, err
		}
		return d.encoded(form, []chat.Update{u}), nil
	})
	return nil
}
