package task

import (
	"context"
	"time"
)

// Traced is one thing sent to or received from an agent while it worked, for
// its owner to look at. Secrets are taken out before it gets here.
type Traced struct {
	At time.Time
	// Out is true for what the portal sent.
	Out bool
	// Head is the request or status line with headers, or the name of a
	// message; Body what followed, both cut to MaxTraced bytes.
	Head string
	Body string
	// Size is how long Body was before it was cut, in bytes.
	Size int64
}

// MaxTraced bounds a Head and a Body, MaxTraces the entries of one call.
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

// Trace returns what takes the traces of the call, or nil when nobody asked
// for them: then a driver needs to prepare nothing.
func Trace(ctx context.Context) func(Traced) {
	fn, _ := ctx.Value(traceKey{}).(func(Traced))
	return fn
}
