package request

import (
	"context"
	"net/http"

	"agentsite/internal/ident"
)

// Portals recognises other portals that ask for their people.
type Portals interface {
	// Asks reports whether a request says that a portal signed it.
	Asks(r *http.Request) bool
	// Asking verifies such a request and returns for whom it asks: an actor of
	// kind Portal. It reads the body, which stays to be read. It may hold for one
	// look only: signatures are not seen twice.
	Asking(w http.ResponseWriter, r *http.Request) (ident.Actor, error)
	// May says whether a portal may ask now, by its id in the network.
	May(ctx context.Context, portal string) error
	// Refuse answers a request that Asking refused, in the words that portals
	// have for it.
	Refuse(w http.ResponseWriter, r *http.Request, err error)
}

// portalKey is where a request's context holds for whom another portal asks.
type portalKey struct{}

// FromPortals lets other portals ask at the routes below: for Authenticate they are
// whom they ask for. A request that is signed badly gets no further; one that
// no portal signed is anybody's.
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
