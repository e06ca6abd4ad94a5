package federation

import (
	"context"
	"strings"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/record"
)

// DHTStore keeps this portal's knowledge of the DHT over a restart: its nodes, and the records it
// stores for others. It can be lost, as all of the Replica. It is safe for concurrent use.
type DHTStore interface {
	// DHTNodes returns the nodes that were kept, in their order; KeepDHTNodes
	// replaces them.
	DHTNodes(ctx context.Context) ([]DHTNode, error)
	KeepDHTNodes(ctx context.Context, all []DHTNode) error
	// DHTRecords calls yield with the stored records that have not expired, until it returns
	// false; yield may be slow. KeepDHTRecords adds some, each replacing the one with its key and
	// publisher, and deletes expired ones.
	DHTRecords(ctx context.Context, yield func(key record.Hash, value []byte) bool) error
	KeepDHTRecords(ctx context.Context, more []DHTRecord) error
	// ForgetDHT deletes all records of a publisher, and its node.
	ForgetDHT(ctx context.Context, publisher record.Hash) error
}

// DHTNode is a node of the DHT and its signed address record, which is empty if it never signed
// one.
type DHTNode struct {
	ID   record.Hash
	Node []byte
}

// DHTRecord is a value that is kept for others.
type DHTRecord struct {
	Key, Publisher record.Hash
	Expires        int64 // Unix ms
	Value          []byte
}

// DHT is this portal's place in the DHT of its network. It is safe for
// concurrent use.
type DHT interface {
	Standing() DHTStanding
	// Ask looks up a portal by its id (p1…) or address (https://…), the portals that list an agent
	// by the agent's network id (p1…/…, a1…) or handle, or else the portals with a capability. It
	// takes a few seconds at most. If no portal is named, the answer has no Portals.
	Ask(ctx context.Context, what string) (DHTAnswer, error)
}

// DHTStanding is how a portal stands in the DHT.
type DHTStanding struct {
	// Nodes are those in its table, by how many bits their ids share with its
	// own in Buckets; Size is how many there are, a guess.
	Nodes   int   `json:"nodes"`
	Buckets []int `json:"buckets"`
	Size    int   `json:"size"`
	// Keys counts the keys that this node republishes every RoundS seconds; Held counts the
	// records it keeps for others.
	Keys   int     `json:"keys"`
	RoundS float64 `json:"round_s"`
	Held   int     `json:"held"`
	Bytes  int64   `json:"held_bytes"`
	// Found and Missed are lookups since the start by whether they found
	// something, Second those of them that took a second path. RPCs and Hops
	// are means.
	Found  int64   `json:"found"`
	Missed int64   `json:"missed"`
	Second int64   `json:"second_path"`
	RPCs   float64 `json:"rpcs"`
	Hops   float64 `json:"hops"`
	// Sent counts requests to others, Failed those without an answer in time, Late those that took
	// so long that another node was asked too.
	Sent   int64 `json:"sent"`
	Failed int64 `json:"failed"`
	Late   int64 `json:"late"`
	// Refused counts, by reason, the records that were not stored here and the address claims of
	// others that did not hold.
	Refused map[string]int64 `json:"refused"`
}

// DHTAnswer is the result of a lookup.
type DHTAnswer struct {
	What    string      `json:"what"` // portal, host, agent or capability
	Name    string      `json:"name"`
	Portals []DHTPortal `json:"portals"`
	// RPCs, Hops and Paths are the cost of the lookup, TookMS its duration in milliseconds.
	RPCs   int     `json:"rpcs"`
	Hops   int     `json:"hops"`
	Paths  int     `json:"paths"`
	TookMS float64 `json:"took_ms"`
	// Holders is how many other portals gave it, of three at most that were needed.
	// Own is true where this portal sees to the key itself.
	Holders int  `json:"holders"`
	Own     bool `json:"own"`
	// Nearest are the portals nearest to the key that answered.
	Nearest []record.PortalID `json:"nearest"`
}

// DHTPortal is a portal that a lookup names, by a record that the portal signed.
type DHTPortal struct {
	ID     record.PortalID `json:"id"`
	URL    string          `json:"url"`
	Name   string          `json:"name"`
	Agents int64           `json:"agents"` // that it has under the key
	Said   string          `json:"said_at"`
}

func noDHT() error {
	return fault.New(fault.Unavailable, "The DHT can be asked while the portal runs, and is in a network.")
}

// DHTStanding returns how this portal stands in the DHT, for its operator.
func (p *Peers) DHTStanding(_ context.Context, actor ident.Actor) (DHTStanding, error) {
	if err := checkOperator(actor); err != nil {
		return DHTStanding{}, err
	}
	if p.cfg.DHT == nil {
		return DHTStanding{}, noDHT()
	}
	d := p.cfg.DHT()
	if d == nil {
		return DHTStanding{}, noDHT()
	}
	return d.Standing(), nil
}

// AskDHT looks for something in the DHT, for the operator.
func (p *Peers) AskDHT(ctx context.Context, actor ident.Actor, what string) (DHTAnswer, error) {
	if err := checkOperator(actor); err != nil {
		return DHTAnswer{}, err
	}
	if p.cfg.DHT == nil || p.cfg.DHT() == nil {
		return DHTAnswer{}, noDHT()
	}
	if what = strings.TrimSpace(what); what == "" || len(what) > maxLookedFor {
		return DHTAnswer{}, fault.Field("q", "name a portal by its id or address, an agent by its id or handle, or a capability")
	}
	return p.cfg.DHT().Ask(ctx, what)
}

// maxLookedFor bounds the query, in bytes.
const maxLookedFor = 200
