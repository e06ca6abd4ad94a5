package agentruntime

import (
	"context"
	"net/http/httptrace"
	"sync/atomic"

	"agentsite/internal/task"
)

// contact records whether a call of an agent on another portal reached that portal. A call that was
// refused or failed did reach it. A call that was given up before a request was sent proves nothing.
type contact struct{ tried, answered atomic.Bool }

// traceRequests returns a context that records in c whether an HTTP request made with it was started and
// whether a response arrived.
func (c *contact) traceRequests(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:              func(string) { c.tried.Store(true) },
		GotFirstResponseByte: func() { c.answered.Store(true) },
	})
}

// seenElsewhere reports the result of a call to the directory, for an agent of another portal. It
// reports "not reached" only if a request was started and no byte of a response arrived.
func (w *Worker) seenElsewhere(ctx context.Context, t task.Task, r task.Result, c *contact) {
	switch {
	case r.State == task.Canceled:
	case r.State != task.Failed:
		w.hub.CalledElsewhere(ctx, t.AgentID, true)
	case c.tried.Load() && !c.answered.Load():
		w.hub.CalledElsewhere(ctx, t.AgentID, false)
	}
}
