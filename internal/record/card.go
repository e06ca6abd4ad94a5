package record

import (
	"slices"
	"time"
)

// MaxKeys is the number of operational keys in a card.
const MaxKeys = 4

const (
	maxKeyLife     = 90 * day
	maxPrevOrigins = 8
	maxPortalName  = 80
	maxOperator    = 200
	maxLimits      = 16
)

// The tiers of a portal: how much it stores of other portals.
const (
	TierReplica = "replica" // stores all records that its quotas allow
	TierSummary = "summary" // stores heads and summaries, and the records of some portals
	TierIndex   = "index"   // as replica, and also answers searches for other portals
	TierLeaf    = "leaf"    // accepts no requests; other portals serve its records
)

// Roles returns the services that a card may offer to other portals, in the order of a card.
func Roles() []string { return []string{"dht", "gossip", "index", "search", "sync"} }

// Policies returns the admission policies that a card may name.
func Policies() []string { return []string{"allowlist", "closed", "open", "vouched"} }

// Card is the identity of a portal: its address and its keys. It is signed by the root key that it
// contains and that the portal's id is derived from, so it needs no other record; every other
// record needs it.
type Card struct {
	Header
	RootPub Public `json:"root_pub"`
	// Keys are the operational keys, sorted by id, at most MaxKeys. A key that a newer card leaves
	// out is invalid at once, including its older signatures. A card without keys makes all records
	// of the portal invalid.
	Keys   []Key  `json:"keys,omitempty"`
	Origin string `json:"origin"`
	// PrevOrigins are the earlier origins of the portal, newest first.
	PrevOrigins []string `json:"prev_origins,omitempty"`
	Name        string   `json:"name"`
	Operator    string   `json:"operator,omitempty"`
	Contact     string   `json:"contact,omitempty"`
	Tier        string   `json:"tier"`
	Roles       []string `json:"roles,omitempty"`  // sorted; values of Roles
	Policy      string   `json:"policy,omitempty"` // one of Policies
	// Limits are limits that callers should respect, by name.
	Limits map[string]int64 `json:"limits,omitempty"`
}

// Key is an operational key: it signs everything except cards.
type Key struct {
	ID  KeyID  `json:"id"`
	Pub Public `json:"pub"`
	// From and Until are milliseconds since 1970; the life of each signed record lies within them.
	From  int64 `json:"from"`
	Until int64 `json:"until"`
}

func (c *Card) recordType() Type { return TypeCard }
func (c *Card) slotKey() string  { return "" }

func (c *Card) checkFields(f *fields) {
	f.Field(PortalOf(c.RootPub) == c.Portal, "root_pub", "the portal's id is not made of it")
	f.Field(isSound(c.RootPub), "root_pub", "is not a secure key")
	f.Field(len(c.Keys) <= MaxKeys, "keys", "at most %d", MaxKeys)
	for i, k := range c.Keys[:min(len(c.Keys), MaxKeys)] {
		f.Field(i == 0 || c.Keys[i-1].ID < k.ID, "keys", "sort them by id, each once")
		f.Field(k.ID == KeyIDOf(k.Pub), "keys", "the id is not made of the key")
		f.Field(k.Pub != c.RootPub, "keys", "the root key is not an operational one")
		f.Field(isSound(k.Pub), "keys", "is not a secure key")
		f.Field(k.From > 0 && k.Until > k.From && k.Until <= maxInt && k.Until-k.From <= maxKeyLife, "keys",
			"a key lives at most 90 days")
	}
	f.Field(ValidOrigin(c.Origin), "origin", "use https://host, with a port if it is not 443")
	f.Field(allOf(c.PrevOrigins, maxPrevOrigins, ValidOrigin), "prev_origins", "at most %d origins", maxPrevOrigins)
	f.Field(!slices.Contains(c.PrevOrigins, c.Origin), "prev_origins", "without the present one")
	f.Field(isFilledLine(c.Name, maxPortalName), "name", "one line of 1 to %d bytes", maxPortalName)
	f.Field(isLine(c.Operator, maxOperator), "operator", "one line of at most %d bytes", maxOperator)
	f.Field(isLine(c.Contact, maxOperator), "contact", "one line of at most %d bytes", maxOperator)
	f.Field(slices.Contains([]string{TierReplica, TierSummary, TierIndex, TierLeaf}, c.Tier), "tier",
		"replica, summary, index or leaf")
	f.Field(isSorted(c.Roles) && allOf(c.Roles, 5, func(s string) bool { return slices.Contains(Roles(), s) }), "roles",
		"of dht, gossip, index, search, sync, in this order")
	f.Field(c.Policy == "" || slices.Contains(Policies(), c.Policy), "policy", "open, vouched, allowlist or closed")
	f.Field(len(c.Limits) <= maxLimits, "limits", "at most %d", maxLimits)
	for _, n := range c.Limits {
		f.Field(n >= 0, "limits", "no negative numbers")
	}
}

// OpenCard decodes a card and checks everything that needs no memory: form, time and signature. It
// is for decisions before a Gate admits the card; only the Gate knows whether the card is an old
// one.
func OpenCard(network string, wire []byte, now time.Time) (*Card, error) {
	r, err := Open(network, wire)
	if err != nil {
		return nil, err
	}
	c, ok := r.Body.(*Card)
	if !ok {
		return nil, refuse(BadField, "it is a record of type %s, not the card of a portal", r.Type)
	}
	if err := r.checkTimes(now.UnixMilli()); err != nil {
		return nil, err
	}
	if r.Key != KeyIDOf(c.RootPub) {
		return nil, refuse(NoKey, "a card is signed by its root key")
	}
	if !r.signedBy(c.RootPub) {
		return nil, refuse(BadSignature, "the signature does not hold")
	}
	return c, nil
}
