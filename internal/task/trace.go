package task

import (
	"context"
	"time"
)

// Traced is one message sent to or received from an agent during a task, shown to the agent's owner for
// debugging. Secrets are removed before it is created.
type Traced struct {
	At time.Time
	// Out is true for messages that the portal sent.
	Out bool
	// Head is the request or status line with headers, or the name of a message. Body is the rest. Both
	// are cut to MaxTraced bytes.
	Head string
	Body string
	// Size is the length of Body in bytes before it was cut.
	Size int64
}

// MaxTraced bounds a Head and a Body in bytes, MaxTraces the entries of one call.
const (
	MaxTraced = 8 << 10
	MaxTraces = 40
)

type traceKey struct{}

// WithTrace returns a context whose call is traced: drivers report to fn what
// they send and receive. fn must not block and is called concurrently.
func WithTrace(ctx context.Context, fn func(Traced)) context.Context {
	return context.WithValue(ctx, traceKey{}, fn)
}

// Trace returns the function that takes the traces of the call, or nil when the call is not traced:
// then a driver need not prepare anything.
func Trace(ctx context.Context) func(Traced) {
	fn, _ := ctx.Value(traceKey{}).(func(Traced))
	return fn
}
