package peer

import (
	"context"
	"net/http"
	"time"

	"agentsite/internal/federation/guard"
)

// dhtLimits are the limits of each portal on each route of the DHT.
var dhtLimits = Limits{Every: time.Second / 50, Burst: 200, AtOnce: 64}

// Binary is an answer that is sent unchanged, because messages of the DHT and of gossip are not
// text.
type Binary []byte

// DHT answers the messages of other portals' DHT nodes. name is the last part of the route, which selects
// the kind of message.
type DHT interface {
	Serve(ctx context.Context, asker guard.Asker, route string, body []byte) ([]byte, error)
}

// DHT adds a route for each kind of DHT message. peering/kademlia/DESIGN.md describes the bodies.
func (d *Door) DHT(nodes DHT, routes []string) {
	for _, name := range routes {
		d.Handle(http.MethodPost, "/dht/"+name,
			func(ctx context.Context, asker guard.Asker, _ *http.Request, body []byte) (any, error) {
				out, err := nodes.Serve(ctx, asker, name, body)
				return Binary(out), err
			}, dhtLimits)
	}
}
