package request

import (
	"context"
	"net/http"

	"agentsite/internal/ident"
)

// Bounds of the requests that wait for agents at the same time, at all protocol endpoints together: per
// account, per address without an account, and per portal.
const (
	mostAttending       = 200
	mostGuestAttending  = 20
	mostPortalAttending = 64 // per portal, for all people there together
)

// BeginWait begins to wait for an agent. Call it before the agent is asked, so that a refused caller has caused no
// work. It counts the request among the waiting ones of its caller, and returns a context that ends with the
// request and with the caller's credential. The credential is checked again, because it may have ended while the
// body was received. The caller must call leave.
func (c *Callers) BeginWait(r *http.Request, actor ident.Actor) (ctx context.Context, leave context.CancelFunc,
	err error) {
	release, err := c.connections.beginCall(actor)
	if err != nil {
		return nil, nil, err
	}
	ctx, unguard := c.accounts.Guard(r.Context(), actor)
	leave = func() {
		unguard()
		release()
	}
	// a guest has no credential that could be revoked
	if r.Header.Get("Authorization") == "" && actor.Kind != ident.Portal {
		return ctx, leave, nil
	}
	// The credential is checked again after the guard has started, so that a revocation in between is
	// noticed.
	if _, err := c.Authenticate(r); err != nil {
		leave()
		return nil, nil, err
	}
	return ctx, leave, nil
}
