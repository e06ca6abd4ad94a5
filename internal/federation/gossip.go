package federation

import (
	"context"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/record"
)

// Gossip is this portal's membership in a pool of portals that check each other's presence. It is safe
// for concurrent use.
type Gossip interface {
	Standing() GossipStanding
	// Alive reports whether a portal is a member that no other member reports as missing.
	Alive(portal record.PortalID) bool
}

// GossipStanding is the state of this portal's membership; counts are since the start.
type GossipStanding struct {
	// Running: the portal takes part at present. By is its transport: https, or the address for UDP and
	// TCP. Failures counts how often the membership ended and was started again.
	Running  bool   `json:"running"`
	Failures int64  `json:"failures"`
	By       string `json:"by"`
	// Zone is the bit prefix of the ids in this portal's zone; "" is the whole network.
	Zone string `json:"zone"`
	// Members counts the present members of the zone without this portal; Gone counts absent ones that may return.
	Members int `json:"members"`
	Gone    int `json:"gone"`
	// Told and Heard count sent and received hints of new heads; Lost counts members that left.
	Told  int64 `json:"told"`
	Heard int64 `json:"heard"`
	Lost  int64 `json:"lost"`
	// Sent counts requests to others, Failed those without an answer, Asked requests by others; In and
	// Out are the bytes of all their bodies.
	Sent   int64 `json:"sent"`
	Failed int64 `json:"failed"`
	Asked  int64 `json:"asked"`
	In     int64 `json:"bytes_in"`
	Out    int64 `json:"bytes_out"`
	// Dropped counts messages dropped because a queue was full, Refused invalid messages; Queued is the
	// number of messages waiting to be sent.
	Dropped int64 `json:"dropped"`
	Refused int64 `json:"refused"`
	Queued  int   `json:"queued"`
}

// GossipStanding returns the state of this portal's membership; for operators.
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
