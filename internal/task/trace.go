package task

import (
	"context"
	"time"
)

// Traced is one message that was sent to or received from an agent during a task. The agent's owner
// sees it for debugging. The creator must remove secrets.
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

// The heads of the reports of a hosted program: a line of its log, and the reason of its end if it failed.
const (
	TracedLog  = "log"
	TracedTrap = "trap"
)

// MaxTraced bounds a Head and a Body in bytes, MaxTraces bounds the entries that are kept of one
// call.
const (
	MaxTraced = 8 << 10
	MaxTraces = 40
)

type traceKey struct{}

// Tracer takes the messages of a traced call. It must not block and is safe for concurrent use.
type Tracer interface {
	AddTrace(t Traced)
}

// WithTrace returns a context whose call is traced: drivers report to t the messages that they send and receive. A nil
// t ends the tracing for the context.
func WithTrace(ctx context.Context, t Tracer) context.Context {
	return context.WithValue(ctx, traceKey{}, t)
}

// Trace returns the Tracer of the call, or nil if the call is not traced. Drivers skip the
// preparation of trace entries then.
func Trace(ctx context.Context) Tracer {
	t, _ := ctx.Value(traceKey{}).(Tracer)
	return t
}
