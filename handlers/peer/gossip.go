package peer

import (
	"context"
	"net/http"
	"time"

	"agentsite/internal/federation/guard"
	"agentsite/internal/record"
)

// gossipLimits are the limits of each portal on each route of the gossip pool.
var gossipLimits = Limits{Every: time.Second / 20, Burst: 60, AtOnce: 8, Body: 1 << 20}

// Gossip answers the messages of other members of the gossip pool. name is the last part of the route,
// which selects the kind of message.
type Gossip interface {
	Serve(ctx context.Context, from record.PortalID, route string, body []byte) ([]byte, error)
}

// Gossip adds a route for each kind of gossip message. docs/design/peering.md describes the bodies.
func (d *Door) Gossip(pool Gossip, routes []string) {
	for _, name := range routes {
		d.Handle(http.MethodPost, "/"+name, func(ctx context.Context, asker guard.Asker, _ *http.Request,
			body []byte) (any, error) {
			out, err := pool.Serve(ctx, asker.Portal, name, body)
			return Binary(out), err
		}, gossipLimits)
	}
}
