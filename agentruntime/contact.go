package agentruntime

import (
	"context"
	"net/http/httptrace"
	"sync/atomic"

	"agentsite/internal/task"
)

// contact is what a call of an agent elsewhere showed of whether anybody is
// there. A call that was refused or went wrong did reach its portal; one that
// was given up before anything was sent shows nothing.
type contact struct{ tried, answered atomic.Bool }

// watch has c follow what is sent under the context it returns.
func (c *contact) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:              func(string) { c.tried.Store(true) },
		GotFirstResponseByte: func() { c.answered.Store(true) },
	})
}

// seenElsewhere tells the directory what a call showed of an agent of another
// portal.
func (w *Worker) seenElsewhere(ctx context.Context, t task.Task, r task.Result, c *contact) {
	switch {
	case r.State == task.Canceled:
	case r.State != task.Failed:
		w.hub.CalledElsewhere(ctx, t.AgentID, true)
	case c.tried.Load() && !c.answered.Load():
		w.hub.CalledElsewhere(ctx, t.AgentID, false)
	}
}
