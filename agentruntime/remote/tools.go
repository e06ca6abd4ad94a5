package remote

import (
	"context"
	"net/http"

	"agentsite/internal/a2a"
	"agentsite/internal/task"
)

// openTools opens the portal's tools for the run, if the agent has any, and returns the context of its requests.
func (r *run) openTools(ctx context.Context) (context.Context, error) {
	if r.way.peer {
		return ctx, nil
	}
	ctx, err := r.keep.Open(ctx, r.d.cfg.Tools, r.call)
	if address, token, ok := r.keep.Access(); ok {
		r.access = &a2a.Tools{URL: address, Token: token}
	}
	return ctx, err
}

// replyParts returns the parts for the agent: those of the message, or the portal's text if the message answers a
// question of the portal.
func (r *run) replyParts(ctx context.Context) []task.Part {
	if text := r.keep.Reply(); text != "" {
		return []task.Part{task.TextPart(text)}
	}
	return requestParts(ctx, r.call, r.at.Task != "", r.way.inline)
}

// withExtension is a RoundTripper that asks for an extension of A2A.
type withExtension struct {
	next http.RoundTripper
	uri  string
}

// RoundTrip implements http.RoundTripper. It changes a copy of the request.
func (w withExtension) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(a2a.ExtensionsHeader, w.uri)
	return w.next.RoundTrip(r)
}
