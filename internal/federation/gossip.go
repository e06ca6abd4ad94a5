package federation

import (
	"context"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/record"
)

// Gossip is this portal's membership in a pool of portals that report each other's presence. It is
// safe for concurrent use.
type Gossip interface {
	Standing() GossipStanding
	// Alive reports whether a portal is a member that no other member reports missing.
	Alive(portal record.PortalID) bool
}

// GossipStanding is how a portal stands in its pool; counts are since the start.
type GossipStanding struct {
	// Running: it takes part now. By is https, or where it uses UDP and TCP.
	// Failures counts how often it ended and began again.
	Running  bool   `json:"running"`
	Failures int64  `json:"failures"`
	By       string `json:"by"`
	// Zone is the first bits of the ids of portals in its zone, "" for the whole
	// network.
	Zone string `json:"zone"`
	// Members are those of the zone that are there, this portal not counted;
	// Gone those that are not and may come back.
	Members int `json:"members"`
	Gone    int `json:"gone"`
	// The first two count hints of new heads, sent and received; Lost counts members that left.
	Told  int64 `json:"told"`
	Heard int64 `json:"heard"`
	Lost  int64 `json:"lost"`
	// Sent counts requests to others, Failed those without an answer, Asked requests of others, In
	// and Out the bytes of all their bodies.
	Sent   int64 `json:"sent"`
	Failed int64 `json:"failed"`
	Asked  int64 `json:"asked"`
	In     int64 `json:"bytes_in"`
	Out    int64 `json:"bytes_out"`
	// Dropped are messages for which there was no room, Refused those that no
	// honest member sends; Queued are those that wait to be handed on.
	Dropped int64 `json:"dropped"`
	Refused int64 `json:"refused"`
	Queued  int   `json:"queued"`
}

// GossipStanding returns how this portal stands in its pool, for its operator.
func (p *Peers) GossipStanding(_ context.Context, actor ident.Actor) (GossipStanding, error) {
	if err := checkOperator(actor); err != nil {
		return GossipStanding{}, err
	}
	if p.cfg.Gossip != nil {
		if g := p.cfg.Gossip(); g != nil {
			return g.Standing(), nil
		}
	}
	return GossipStanding{}, fault.New(fault.Unavailable,
		"Gossip can be asked while the portal runs, is in a network and not started with --gossip off.")
}
