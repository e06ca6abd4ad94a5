package egress

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// call is one request, from its slot in the gate to the end of its body. It ends exactly once, by the
// first of these: an error, the end of the body, Close, or the total timeout if the body is never
// closed.
type call struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	total  *time.Timer
	ticket *ticket
	once   sync.Once

	mu    sync.Mutex // guards idle and ended
	idle  func()     // called when the call ends, so that the connection counts as idle; nil if there is none
	ended bool
}

// setConnection records that the call uses a connection, which replaces an earlier one. idle is called
// when the call no longer uses the connection, at once if the call has ended.
func (c *call) setConnection(idle func()) {
	c.mu.Lock()
	was := c.idle
	if c.idle = idle; c.ended {
		was, c.idle = idle, nil
	}
	c.mu.Unlock()
	if was != nil {
		was()
	}
}

// releaseConnection ends the use of the connection. Later connections are released at once.
func (c *call) releaseConnection() {
	c.mu.Lock()
	was := c.idle
	c.idle, c.ended = nil, true
	c.mu.Unlock()
	if was != nil {
		was()
	}
}

func newCall(parent context.Context, t *ticket, total time.Duration) *call {
	c := &call{ticket: t}
	c.ctx, c.cancel = context.WithCancelCause(parent)
	// The function must not use c.total: the timer may fire before c.total is assigned.
	c.total = time.AfterFunc(total, func() { c.endOnce(timedOut("", total, "in all")) })
	return c
}

// startTimer returns a running timer that cancels the call when it fires; doing completes the sentence
// of the timeout error.
func (c *call) startTimer(d time.Duration, doing string) *time.Timer {
	return time.AfterFunc(d, func() { c.cancel(timedOut("", d, doing)) })
}

// finishCall ends the call and frees its slot, timers and connection. It may be called more than once.
func (c *call) finishCall(err error) {
	c.total.Stop()
	c.endOnce(err)
}

func (c *call) endOnce(err error) {
	c.once.Do(func() {
		c.cancel(err)
		if e, ok := errors.AsType[*Error](err); ok && e.connecting {
			c.ticket.markFailed(e.Text)
		}
		c.ticket.freeSlot()
		c.releaseConnection()
	})
}

// explainError returns the reason why the call was canceled, if it was, instead of the error that the
// transport made of it.
func (c *call) explainError(err error, host string) error {
	if c.ctx.Err() != nil {
		if cause, ok := errors.AsType[*Error](context.Cause(c.ctx)); ok {
			e := *cause
			e.Host = host
			return &e
		}
	}
	return classifyError(err, host)
}

// wrapBody returns the body with a maximum size and a maximum pause between reads. The end of the body
// finishes the call.
func (c *call) wrapBody(rc io.ReadCloser, limit int64, idle time.Duration) io.ReadCloser {
	b := &body{rc: rc, call: c, limit: limit, left: limit, idle: idle}
	b.timer = c.startTimer(idle, "of silence")
	b.timer.Stop()
	return b
}

type body struct {
	rc          io.ReadCloser
	call        *call
	limit, left int64
	idle        time.Duration
	timer       *time.Timer
	err         error
}

// Read implements io.Reader. Only one goroutine may read at a time; Close may be called from another.
func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	// Read up to one byte more than allowed, to detect a body that is too large.
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	b.timer.Reset(b.idle)
	n, err := b.rc.Read(p)
	b.timer.Stop()
	if int64(n) > b.left {
		n = int(b.left)
		err = tooLarge("", b.limit)
	}
	b.left -= int64(n)
	if err != nil {
		if err != io.EOF {
			err = b.call.explainError(err, "")
		}
		b.err = err
		b.rc.Close()
		b.call.finishCall(nil)
	}
	return n, err
}

// Close implements io.Closer. It may be called more than once.
func (b *body) Close() error {
	b.timer.Stop()
	b.call.cancel(context.Canceled) // cancel, so that Close does not read the rest of the body
	err := b.rc.Close()
	b.call.finishCall(nil)
	return err
}
