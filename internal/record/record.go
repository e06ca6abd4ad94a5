// Package record is what portals say to each other and sign: typed, versioned,
// expiring statements (portal cards, contacts, agents, heads, summaries,
// providers, attestations, fork proofs, words about liveness), their one
// byte-exact form, the Merkle tree that a head commits to, and the one way in
// for all of them, Gate. It knows no network, no database and no policy: it is
// told the time, asks a Memory for what was seen before, and says admitted or
// refused, and why.
//
// The format is written down for other implementations in
// docs/design/records.md; testdata/vectors.json holds examples, good and bad.
//
// To sign, fill a Body and call Sign (or Contact.Sign). To take something in,
// call Gate.Admit with the bytes as they came, whatever way they came.
package record

// Type names a kind of record and its major version. A type that this package
// does not know is refused as Unknown: ignored by all, held against nobody.
type Type string

// The types there are.
const (
	TypeCard     Type = "portal/1"
	TypeContact  Type = "node/1" // binary, see Contact
	TypeAgent    Type = "agent/1"
	TypeHead     Type = "head/1"
	TypeSummary  Type = "summary/1"
	TypeProvider Type = "provider/1"
	TypeAttest   Type = "attest/1"
	TypeFork     Type = "fork/1"
	TypeLive     Type = "live/1"
)

// Times are milliseconds since 1970, as everywhere in the portal.
const (
	minute = 60_000
	hour   = 60 * minute
	day    = 24 * hour
)

const (
	// maxSkew is how far the clock of who signs may be ahead of ours.
	maxSkew = 5 * minute
	// grace is how much longer than anything it deletes a tombstone lives: a
	// replica that was away for less hears of the deletion.
	grace = 7 * day
	// maxInt is the largest integer that every JSON implementation reads
	// exactly.
	maxInt = 1<<53 - 1
	// MaxWire bounds an envelope of any type, in bytes: readers may stop there.
	MaxWire = 48 << 10
	// MaxAgent bounds the payload of an agent's record, in bytes.
	MaxAgent = 8 << 10
)

// rule is what holds for all records of a type.
type rule struct {
	// max bounds the payload, in bytes; for TypeContact the whole record.
	max int
	// life bounds exp - iss, in milliseconds.
	life int64
	new  func() Body
}

// ruleOf returns the rule of a type, and whether the type is known.
func ruleOf(t Type) (rule, bool) {
	switch t {
	case TypeCard:
		return rule{4 << 10, 90 * day, func() Body { return new(Card) }}, true
	case TypeContact:
		return rule{350, 48 * hour, nil}, true
	case TypeAgent:
		return rule{MaxAgent, 30 * day, func() Body { return new(Agent) }}, true
	case TypeHead:
		return rule{512, 48 * hour, func() Body { return new(Head) }}, true
	case TypeSummary:
		return rule{32 << 10, 48 * hour, func() Body { return new(Summary) }}, true
	case TypeProvider:
		return rule{400, 36 * hour, func() Body { return new(Provider) }}, true
	case TypeAttest:
		return rule{1 << 10, 180 * day, func() Body { return new(Attest) }}, true
	case TypeLive:
		return rule{9 << 10, 48 * hour, func() Body { return new(Live) }}, true
	case TypeFork:
		return rule{2 << 10, 365 * day, func() Body { return new(Fork) }}, true
	}
	return rule{}, false
}

// Record is one signed statement, read from its bytes. It owns its slices;
// nobody changes them.
type Record struct {
	Type Type
	Header
	Key  KeyID // of the key that signed it
	Hash Hash  // of what was signed: the record's identity
	// Wire is the record as it travels. Unknown fields are in it, so it is
	// what is stored and passed on.
	Wire []byte
	// Body is a *Card, *Contact, *Agent, *Head, *Summary, *Provider, *Attest,
	// *Fork or *Live.
	Body Body

	signed  []byte // the PAE
	payload []byte // its end
	sig     [64]byte
}

// Header is what all records begin with.
type Header struct {
	Portal PortalID `json:"portal"` // who says it
	// Epoch is when the counter Seq began, in milliseconds since 1970: a
	// portal that lost its disk begins a new one. Together they are the
	// record's version.
	Epoch int64 `json:"epoch"`
	Seq   int64 `json:"seq"`
	// Issued and Expires are milliseconds since 1970.
	Issued  int64 `json:"iss"`
	Expires int64 `json:"exp"`
}

func (h *Header) header() *Header { return h }

// Version returns the record's version.
func (h *Header) Version() Version { return Version{h.Epoch, h.Seq} }

// Version orders the records of one slot: by epoch, then by seq.
type Version struct{ Epoch, Seq int64 }

// Compare returns -1, 0 or 1 as v is older than, equal to or newer than w.
func (v Version) Compare(w Version) int {
	switch {
	case v.Epoch < w.Epoch, v.Epoch == w.Epoch && v.Seq < w.Seq:
		return -1
	case v == w:
		return 0
	}
	return 1
}

// Body is the content of a record, one struct per type.
type Body interface {
	header() *Header
	kind() Type
	// about is what the record is about, when a portal may have several of
	// the type at once.
	about() string
	// check says what is wrong with the fields.
	check(*fields)
}

// Slot is a place for one record at a time: a newer version replaces it.
type Slot struct {
	Type   Type
	Portal PortalID
	// About is the agent's id, the subject of an attestation or fork, subject
	// and shard of words about liveness, or the kind and key of a provider;
	// empty for the others.
	About string
}

// Slot returns where the record belongs.
func (r *Record) Slot() Slot { return Slot{r.Type, r.Portal, r.Body.about()} }

// Tombstone reports whether the record says that an agent is no more.
func (r *Record) Tombstone() bool {
	a, ok := r.Body.(*Agent)
	return ok && a.Deleted
}
