package request

import (
	"context"
	"net/http"

	"agentsite/internal/ident"
)

// Portals verifies requests that other portals make on behalf of people.
type Portals interface {
	// Asks reports whether a request claims to be signed by a portal; Asking verifies the claim.
	Asks(r *http.Request) bool
	// Asking verifies such a request and returns the person on whose behalf it is made: an actor of kind Portal. It
	// reads the body and restores it. It succeeds only once for a request, because a signature is not accepted
	// twice.
	Asking(w http.ResponseWriter, r *http.Request) (ident.Actor, error)
	// May returns an error unless the portal with a network id may send requests now.
	May(ctx context.Context, portal string) error
	// Refuse answers a request that Asking refused, in the error format that portals understand.
	Refuse(w http.ResponseWriter, r *http.Request, err error)
}

// portalKey is the context key for the verified actor of another portal's request.
type portalKey struct{}

// FromPortals is a middleware that verifies signed requests of other portals, so that Authenticate
// returns the person on whose behalf the request is made. A bad signature is refused. A request without a
// signature passes unchanged.
func (c *Callers) FromPortals(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.portals == nil || !c.portals.Asks(r) {
			next.ServeHTTP(w, r)
			return
		}
		actor, err := c.portals.Asking(w, r)
		if err != nil {
			c.portals.Refuse(w, r, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), portalKey{}, actor)))
	})
}
