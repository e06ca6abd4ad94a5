package handlers

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/go-chi/chi/v5"

	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

const (
	// liveReadLimit bounds a frame from a browser; it has little to say.
	liveReadLimit = 64 << 10
	// liveWriteTimeout is how long one frame may take before the reader is
	// let go; it resumes by seq.
	liveWriteTimeout = 10 * time.Second
	livePing         = 30 * time.Second
	// liveCloseTime bounds the closing handshake: a hostile reader may have
	// announced a frame that never ends.
	liveCloseTime = 2 * time.Second
)

// live streams a conversation from ?after=SEQ on, over a WebSocket, or as
// server-sent events when the request accepts those. It ends when the reader's
// right does.
func (d *Door) live(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	after, err := number(r, "after", -1)
	if err != nil {
		return err
	}
	sse := strings.Contains(r.Header.Get("Accept"), "text/event-stream")
	if after < 0 {
		after = 0
		if id := r.Header.Get("Last-Event-ID"); sse && id != "" {
			if after, err = strconv.ParseInt(id, 10, 64); err != nil || after < 0 {
				return &fault.Error{Kind: fault.Invalid, Safe: "Last-Event-ID: is not an id of this stream", Fields: map[string]string{"Last-Event-ID": "is not an id of this stream"}}
			}
		}
	}
	if !sse && !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return fault.New(fault.Invalid, "Open a WebSocket here, or ask for server-sent events with Accept: text/event-stream.")
	}
	ctx, stop := d.accounts.Guard(r.Context(), actor)
	defer stop()
	// Proved again now that the guard watches: a right that ended in between
	// is noticed.
	if again, err := d.caller(r); err != nil || again.ID != actor.ID || again.Credential != actor.Credential {
		return fault.New(fault.Unauthenticated, "Your session has ended. Sign in again.")
	}
	sub, err := d.chat.Subscribe(ctx, actor, chi.URLParam(r, "id"), after)
	if err != nil {
		return err
	}
	defer sub.Close()
	html := r.URL.Query().Get("html") == "1"
	if sse {
		return d.liveSSE(ctx, w, sub, html)
	}
	return d.liveSocket(ctx, w, r, sub, html)
}

func (d *Door) liveSocket(ctx context.Context, w http.ResponseWriter, r *http.Request, sub *chat.Subscription, html bool) error {
	raw := &hijacked{ResponseWriter: w}
	conn, err := websocket.Accept(raw, r, nil)
	if err != nil {
		return nil // Accept has answered
	}
	end := func(code websocket.StatusCode, reason string) {
		raw.conn.SetDeadline(time.Now().Add(liveCloseTime))
		conn.Close(code, reason)
	}
	conn.SetReadLimit(liveReadLimit)
	// Frames from the reader are read so that pings and closes are handled;
	// there is nothing for it to say yet. The library's CloseRead would wait
	// without limit for the rest of a frame that was only announced.
	ctx, gone := context.WithCancel(ctx)
	readEnded := make(chan struct{})
	go func() {
		defer close(readEnded)
		defer gone()
		if _, _, err := conn.Reader(ctx); err == nil {
			end(websocket.StatusPolicyViolation, "nothing is read here")
		}
	}()
	defer func() { gone(); raw.conn.Close(); conn.CloseNow(); <-readEnded }()
	pings := time.NewTicker(livePing)
	defer pings.Stop()
	pingFailed := make(chan struct{})
	go func() {
		defer close(pingFailed)
		for {
			select {
			case <-pings.C:
				pctx, cancel := context.WithTimeout(ctx, liveWriteTimeout)
				err := conn.Ping(pctx)
				cancel()
				if err != nil {
					raw.conn.Close()
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	defer func() { gone(); raw.conn.Close(); <-pingFailed }()
	for {
		u, err := sub.Next(ctx)
		if err != nil {
			end(closeCode(r, err))
			return nil
		}
		b, err := d.frameJSON(u, html)
		if err != nil {
			d.cfg.Log.Error("encode live update", "error", err)
			end(websocket.StatusInternalError, "try again")
			return nil
		}
		wctx, cancel := context.WithTimeout(ctx, liveWriteTimeout)
		err = conn.Write(wctx, websocket.MessageText, b)
		cancel()
		if err != nil {
			return nil
		}
	}
}

// hijacked keeps the connection that a WebSocket takes over, so that it can be
// closed whatever its reader does.
type hijacked struct {
	http.ResponseWriter
	conn net.Conn
}

// Hijack implements http.Hijacker.
func (h *hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	h.conn = c
	return c, rw, err
}

// closeCode says in the socket's own terms why a stream ends.
func closeCode(r *http.Request, err error) (websocket.StatusCode, string) {
	switch {
	case fault.Is(err, fault.NotFound):
		return websocket.StatusPolicyViolation, "not a member any more"
	case errors.Is(err, context.Canceled) && r.Context().Err() == nil:
		return websocket.StatusPolicyViolation, "the session has ended"
	case errors.Is(err, context.Canceled):
		return websocket.StatusServiceRestart, "come back and resume"
	}
	return websocket.StatusTryAgainLater, "come back and resume"
}

func (d *Door) liveSSE(ctx context.Context, w http.ResponseWriter, sub *chat.Subscription, html bool) error {
	rc := http.NewResponseController(w)
	// The server's deadlines are for requests that end; writes get their own.
	rc.SetReadDeadline(time.Time{})
	rc.SetWriteDeadline(time.Now().Add(liveWriteTimeout))
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	if rc.Flush() != nil {
		return nil
	}
	write := func(b []byte) error {
		rc.SetWriteDeadline(time.Now().Add(liveWriteTimeout))
		if _, err := w.Write(b); err != nil {
			return err
		}
		return rc.Flush()
	}
	for {
		nctx, cancel := context.WithTimeout(ctx, chat.IdleAfter)
		u, err := sub.Next(nctx)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, context.DeadlineExceeded):
			if write([]byte(": still here\n\n")) != nil {
				return nil
			}
			continue
		case err != nil:
			return nil
		}
		b, err := d.frameJSON(u, html)
		if err != nil {
			d.cfg.Log.Error("encode live update", "error", err)
			return nil
		}
		var buf bytes.Buffer
		switch {
		case u.Message != nil:
			fmt.Fprintf(&buf, "id: %d\nevent: message\n", u.Message.Seq)
		case u.Delta != nil:
			buf.WriteString("event: delta\n")
		default:
			buf.WriteString("event: task\n")
		}
		buf.WriteString("data: ")
		buf.Write(b)
		buf.WriteString("\n\n")
		if write(buf.Bytes()) != nil {
			return nil
		}
	}
}

// frameJSON encodes one update as an event of the API.
func (d *Door) frameJSON(u chat.Update, html bool) ([]byte, error) {
	switch {
	case u.Message != nil:
		f := struct {
			Type string `json:"type"`
			messageJSON
			HTML string `json:"html,omitempty"`
		}{Type: "message", messageJSON: newMessageJSON(*u.Message)}
		if html {
			f.HTML = d.messageHTML(*u.Message)
		}
		return json.Marshal(f)
	case u.Delta != nil:
		return json.Marshal(struct {
			Type   string `json:"type"`
			TaskID string `json:"task_id"`
			Offset int    `json:"offset"`
			Text   string `json:"text"`
		}{"delta", u.Delta.TaskID, u.Delta.Offset, u.Delta.Text})
	default:
		type t struct {
			ID     string `json:"id"`
			Agent  string `json:"agent"`
			State  string `json:"state"`
			Status string `json:"status,omitempty"`
			Reason string `json:"reason,omitempty"`
		}
		return json.Marshal(struct {
			Type string `json:"type"`
			Task t      `json:"task"`
		}{"task", t{u.Task.ID, u.Task.Agent, string(u.Task.State), u.Task.Status, u.Task.Reason}})
	}
}
