package egress

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// call is one request from its place in the gate to the end of its body. It
// ends exactly once, by whichever comes first: an error, the end of the body,
// Close, or the total timeout of a body nobody closed.
type call struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	total  *time.Timer
	ticket *ticket
	once   sync.Once

	mu    sync.Mutex // guards the rest
	idle  func()     // what the connection it is on is told when it ended
	ended bool
}

// on notes that the call is on a connection, another one perhaps than before;
// idle is called when it ended.
func (c *call) on(idle func()) {
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

// off is what on is given when the call ended.
func (c *call) off() {
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
	// The timer's own function must not touch c.total: it may fire before the
	// assignment.
	c.total = time.AfterFunc(total, func() { c.end(timedOut("", total, "in all")) })
	return c
}

// timer returns a running timer that ends the call when it fires.
func (c *call) timer(d time.Duration, doing string) *time.Timer {
	return time.AfterFunc(d, func() { c.cancel(timedOut("", d, doing)) })
}

// finish frees everything the call holds.
func (c *call) finish(err error) {
	c.total.Stop()
	c.end(err)
}

func (c *call) end(err error) {
	c.once.Do(func() {
		c.cancel(err)
		if e, ok := errors.AsType[*Error](err); ok && e.connecting {
			c.ticket.failed()
		}
		c.ticket.leave()
		c.off()
	})
}

// explain prefers the reason the call was ended for over what the transport
// made of it.
func (c *call) explain(err error, host string) error {
	if c.ctx.Err() != nil {
		if cause, ok := errors.AsType[*Error](context.Cause(c.ctx)); ok {
			e := *cause
			e.Host = host
			return &e
		}
	}
	return classify(err, host)
}

// wrap bounds the body in size and silence and lets its end finish the call.
func (c *call) wrap(rc io.ReadCloser, limit int64, idle time.Duration) io.ReadCloser {
	b := &body{rc: rc, call: c, limit: limit, left: limit, idle: idle}
	b.timer = c.timer(idle, "of silence")
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

// Read implements io.Reader. Only one goroutine may read, as with any response
// body; Close may come from another.
func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	// One byte more than allowed tells a full body from one that goes on.
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
			err = b.call.explain(err, "")
		}
		b.err = err
		b.rc.Close()
		b.call.finish(nil)
	}
	return n, err
}

// Close implements io.Closer; it is safe to call more than once.
func (b *body) Close() error {
	b.timer.Stop()
	b.call.cancel(context.Canceled) // do not wait for the rest of the body
	err := b.rc.Close()
	b.call.finish(nil)
	return err
}
