package record

import (
	"slices"
	"time"
)

// MaxKeys bounds the operational keys of a card.
const MaxKeys = 4

const (
	maxKeyLife     = 90 * day
	maxPrevOrigins = 8
	maxPortalName  = 80
	maxOperator    = 200
	maxLimits      = 16
)

// Tiers say how much a portal keeps of the others.
const (
	TierReplica = "replica" // everything it may
	TierSummary = "summary" // heads and summaries, and some records
	TierIndex   = "index"   // everything it can, and answers for others
	TierLeaf    = "leaf"    // nobody can call it; others serve its records
)

// Roles lists what a card may offer to others, in the order of a card.
func Roles() []string { return []string{"dht", "gossip", "index", "search", "sync"} }

// Policies are who is let in, as a card says it.
func Policies() []string { return []string{"allowlist", "closed", "open", "vouched"} }

// Card is who a portal is, where it is, and which keys speak for it. It is
// signed by the root key that it carries and that its portal's id is made of,
// so it needs nobody else; every other record needs it.
type Card struct {
	Header
	RootPub Public `json:"root_pub"`
	// Keys are the operational keys, sorted by id, at most MaxKeys. A key
	// that a newer card leaves out speaks for the portal no more, at once and
	// for what it signed before too. Without any, nothing of it counts.
	Keys   []Key  `json:"keys,omitempty"`
	Origin string `json:"origin"`
	// PrevOrigins is where the portal was before, newest first.
	PrevOrigins []string `json:"prev_origins,omitempty"`
	Name        string   `json:"name"`
	Operator    string   `json:"operator,omitempty"`
	Contact     string   `json:"contact,omitempty"`
	Tier        string   `json:"tier"`
	Roles       []string `json:"roles,omitempty"`  // sorted, of Roles
	Policy      string   `json:"policy,omitempty"` // of Policies
	// Limits are numbers that callers had better know, by name.
	Limits map[string]int64 `json:"limits,omitempty"`
}

// Key is an operational key: it signs everything except cards.
type Key struct {
	ID  KeyID  `json:"id"`
	Pub Public `json:"pub"`
	// From and Until are milliseconds since 1970; a record lives wholly
	// within them.
	From  int64 `json:"from"`
	Until int64 `json:"until"`
}

func (c *Card) kind() Type    { return TypeCard }
func (c *Card) about() string { return "" }

func (c *Card) check(f *fields) {
	f.Field(PortalOf(c.RootPub) == c.Portal, "root_pub", "the portal's id is not made of it")
	f.Field(sound(c.RootPub), "root_pub", "is no key that can be used")
	f.Field(len(c.Keys) <= MaxKeys, "keys", "at most %d", MaxKeys)
	for i, k := range c.Keys[:min(len(c.Keys), MaxKeys)] {
		f.Field(i == 0 || c.Keys[i-1].ID < k.ID, "keys", "sort them by id, each once")
		f.Field(k.ID == KeyIDOf(k.Pub), "keys", "the id is not made of the key")
		f.Field(k.Pub != c.RootPub, "keys", "the root key is not an operational one")
		f.Field(sound(k.Pub), "keys", "is no key that can be used")
		f.Field(k.From > 0 && k.Until > k.From && k.Until <= maxInt && k.Until-k.From <= maxKeyLife, "keys", "a key lives at most 90 days")
	}
	f.Field(ValidOrigin(c.Origin), "origin", "use https://host, with a port if it is not 443")
	f.Field(all(c.PrevOrigins, maxPrevOrigins, ValidOrigin), "prev_origins", "at most %d origins", maxPrevOrigins)
	f.Field(!slices.Contains(c.PrevOrigins, c.Origin), "prev_origins", "without the present one")
	f.Field(said(c.Name, maxPortalName), "name", "one line of 1 to %d bytes", maxPortalName)
	f.Field(line(c.Operator, maxOperator), "operator", "one line of at most %d bytes", maxOperator)
	f.Field(line(c.Contact, maxOperator), "contact", "one line of at most %d bytes", maxOperator)
	f.Field(slices.Contains([]string{TierReplica, TierSummary, TierIndex, TierLeaf}, c.Tier), "tier", "replica, summary, index or leaf")
	f.Field(sorted(c.Roles) && all(c.Roles, 5, func(s string) bool { return slices.Contains(Roles(), s) }), "roles", "of dht, gossip, index, search, sync, in this order")
	f.Field(c.Policy == "" || slices.Contains(Policies(), c.Policy), "policy", "open, vouched, allowlist or closed")
	f.Field(len(c.Limits) <= maxLimits, "limits", "at most %d", maxLimits)
	for _, n := range c.Limits {
		f.Field(n >= 0, "limits", "no negative numbers")
	}
}

// OpenCard reads a card and checks all that needs no memory: form, time and
// signature. It is for whoever decides before a Gate admits it, whether it is
// not an old one.
func OpenCard(network string, wire []byte, now time.Time) (*Card, error) {
	r, err := Open(network, wire)
	if err != nil {
		return nil, err
	}
	c, ok := r.Body.(*Card)
	if !ok {
		return nil, refuse(BadField, "it is a record of type %s, not the card of a portal", r.Type)
	}
	if err := r.timely(now.UnixMilli()); err != nil {
		return nil, err
	}
	if r.Key != KeyIDOf(c.RootPub) {
		return nil, refuse(NoKey, "a card is signed by its root key")
	}
	if !r.holds(c.RootPub) {
		return nil, refuse(BadSignature, "the signature does not hold")
	}
	return c, nil
}
