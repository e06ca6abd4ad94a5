package federation

import (
	"context"
	"strings"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/record"
)

// DHTStore keeps the DHT routing table and the records stored for others across restarts. Its content
// can be lost like the rest of the Replica's database. It is safe for concurrent use.
type DHTStore interface {
	// DHTNodes returns the stored nodes in the order of KeepDHTNodes, which replaces them all.
	DHTNodes(ctx context.Context) ([]DHTNode, error)
	KeepDHTNodes(ctx context.Context, all []DHTNode) error
	// DHTRecords calls yield with the unexpired records until it returns false; yield may be slow. KeepDHTRecords
	// adds records, each replacing the one with the same key and publisher, and deletes expired ones.
	DHTRecords(ctx context.Context, yield func(key record.Hash, value []byte) bool) error
	KeepDHTRecords(ctx context.Context, more []DHTRecord) error
	// ForgetDHT deletes all records of a publisher and its node, when an operator denies the portal.
	ForgetDHT(ctx context.Context, publisher record.Hash) error
}

// DHTNode is a node of the routing table with its signed address record; the record is empty if the node
// never sent one.
type DHTNode struct {
	ID   record.Hash
	Node []byte
}

// DHTRecord is a record that this node stores for others.
type DHTRecord struct {
	Key, Publisher record.Hash
	Expires        int64 // milliseconds since 1970
	Value          []byte
}

// DHT is this portal's node in the DHT of its network. It is safe for concurrent use.
type DHT interface {
	Standing() DHTStanding
	// Ask looks up one of: a portal by its id (p1…) or address (https://…); the portals that list an
	// agent, by its network id (p1…/…, a1…) or handle; the portals with a capability. It takes a few
	// seconds at most. The answer has no Portals if nothing was found.
	Ask(ctx context.Context, what string) (DHTAnswer, error)
}

// DHTStanding is the state of this portal's DHT node; counts are since the start.
type DHTStanding struct {
	// Nodes is the number of nodes in the routing table; Buckets counts them by the number of id bits
	// they share with this node. Size is an estimate of the number of nodes in the network.
	Nodes   int   `json:"nodes"`
	Buckets []int `json:"buckets"`
	Size    int   `json:"size"`
	// Keys counts the keys that this node republishes every RoundS seconds; Held and Bytes measure the
	// records it stores for others.
	Keys   int     `json:"keys"`
	RoundS float64 `json:"round_s"`
	Held   int     `json:"held"`
	Bytes  int64   `json:"held_bytes"`
	// Found and Missed count lookups by result, Second those that needed a second path. RPCs and Hops
	// are means of a lookup.
	Found  int64   `json:"found"`
	Missed int64   `json:"missed"`
	Second int64   `json:"second_path"`
	RPCs   float64 `json:"rpcs"`
	Hops   float64 `json:"hops"`
	// Sent counts requests, Failed those without an answer in time, Late those so slow that another node
	// was asked as well.
	Sent   int64 `json:"sent"`
	Failed int64 `json:"failed"`
	Late   int64 `json:"late"`
	// Refused counts, by reason, records that were not stored and address records that were invalid.
	Refused map[string]int64 `json:"refused"`
}

// DHTAnswer is the result of DHT.Ask, in the JSON form of the API.
type DHTAnswer struct {
	What    string      `json:"what"` // portal, host, agent or capability
	Name    string      `json:"name"`
	Portals []DHTPortal `json:"portals"`
	// RPCs, Hops and Paths are the cost of the lookup; TookMS is its duration in milliseconds.
	RPCs   int     `json:"rpcs"`
	Hops   int     `json:"hops"`
	Paths  int     `json:"paths"`
	TookMS float64 `json:"took_ms"`
	// Holders is how many other nodes returned the result; a lookup ends after three. Own is true if
	// this node stores the key itself.
	Holders int  `json:"holders"`
	Own     bool `json:"own"`
	// Nearest are the answering nodes nearest to the key.
	Nearest []record.PortalID `json:"nearest"`
}

// DHTPortal is a portal in the result of a lookup, from a record that the portal signed.
type DHTPortal struct {
	ID     record.PortalID `json:"id"`
	URL    string          `json:"url"`
	Name   string          `json:"name"`
	Agents int64           `json:"agents"` // number of the portal's agents under the key
	Said   string          `json:"said_at"`
}

func noDHT() error {
	return fault.New(fault.Unavailable, "The DHT can be asked while the portal runs, and is in a network.")
}

// DHTStanding returns the state of this portal's DHT node; for operators.
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

// AskDHT runs DHT.Ask for an operator; an Unavailable fault if the DHT is off.
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

// maxLookedFor is the longest query of AskDHT, in bytes.
const maxLookedFor = 200
