// Package record defines the signed statements of portals: typed, versioned, expiring records
// (portal cards, contacts, agents, heads, summaries, providers, attestations, fork proofs, liveness
// reports), their byte-exact form, the Merkle tree that a head commits to, and Gate, the only entry
// for all of them. It has no network, database or policy: it gets the time as an argument, asks a
// Memory for earlier records, and admits or refuses with a reason.
//
// docs/design/records.md describes the format for other implementations; testdata/vectors.json has
// examples, valid and invalid.
//
// To sign, fill a Body and call Sign (or Contact.Sign). To admit a record, call Gate.Admit with the
// received bytes, from whatever source.
package record

import "agentsite/internal/record/canonical"

// Type names a kind of record and its major version. A type that this package does not know is
// refused as Unknown, which never counts against its sender.
type Type string

// The known types with their major versions.
const (
	TypeCard     Type = "portal/1"
	TypeContact  Type = "node/1" // binary form, see Contact
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
	// maxSkew is the tolerance for a signer's clock that is ahead.
	maxSkew = 5 * minute
	// grace is the time by which a tombstone outlives every record that it deletes: a replica that
	// was offline for less still gets the deletion.
	grace = 7 * day

	maxInt = canonical.MaxInt
	// MaxWire is the largest envelope of any type, in bytes.
	MaxWire = 48 << 10
	// MaxAgent is the largest payload of an agent record, in bytes.
	MaxAgent = 8 << 10
)

// rule holds the limits for records of one type.
type rule struct {
	// max is the largest payload, in bytes; for TypeContact the largest record.
	max int
	// life is the longest validity (exp - iss), in milliseconds.
	life int64
}

// ruleOf returns the limits for a type; false for an unknown type.
func ruleOf(t Type) (rule, bool) {
	switch t {
	case TypeCard:
		return rule{4 << 10, 90 * day}, true
	case TypeContact:
		return rule{350, 48 * hour}, true
	case TypeAgent:
		return rule{MaxAgent, 30 * day}, true
	case TypeHead:
		return rule{512, 48 * hour}, true
	case TypeSummary:
		return rule{32 << 10, 48 * hour}, true
	case TypeProvider:
		return rule{400, 36 * hour}, true
	case TypeAttest:
		return rule{1 << 10, 180 * day}, true
	case TypeLive:
		return rule{9 << 10, 48 * hour}, true
	case TypeFork:
		return rule{2 << 10, 365 * day}, true
	}
	return rule{}, false
}

// newBody returns a pointer to an empty body for a type with a JSON payload; false for other types.
func newBody(t Type) (Body, bool) {
	switch t {
	case TypeCard:
		return new(Card), true
	case TypeAgent:
		return new(Agent), true
	case TypeHead:
		return new(Head), true
	case TypeSummary:
		return new(Summary), true
	case TypeProvider:
		return new(Provider), true
	case TypeAttest:
		return new(Attest), true
	case TypeLive:
		return new(Live), true
	case TypeFork:
		return new(Fork), true
	}
	return nil, false
}

// Record is one signed statement, decoded from its bytes. It owns its slices; callers must not
// change them.
type Record struct {
	Type Type
	Header
	Key  KeyID // id of the key that signed it
	Hash Hash  // hash of the signed bytes, which identifies the record
	// Wire is the encoded record. It includes unknown fields, so it is the form to store and pass
	// on.
	Wire []byte
	// Body is a *Card, *Contact, *Agent, *Head, *Summary, *Provider, *Attest,
	// *Fork or *Live.
	Body Body

	signed  []byte // the PAE (see func PAE), which ends with payload
	payload []byte // the tail of signed
	sig     [64]byte
}

// Header holds the common fields of all records.
type Header struct {
	Portal PortalID `json:"portal"` // signing portal
	// Epoch is the start of the counter Seq, in milliseconds since 1970: a portal that lost its
	// disk starts a new epoch. Both together are the record's version.
	Epoch int64 `json:"epoch"`
	Seq   int64 `json:"seq"`
	// Issued and Expires are milliseconds since 1970.
	Issued  int64 `json:"iss"`
	Expires int64 `json:"exp"`
}

func (h *Header) asHeader() *Header { return h }

// Version returns epoch and seq of the record.
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

// Body is the content of a record, implemented by one struct for each type.
type Body interface {
	asHeader() *Header
	recordType() Type
	// slotKey identifies the subject of the record, if a portal may have several records of the
	// type at once.
	slotKey() string
	// checkFields adds an error for each invalid field. It must not depend on the time.
	checkFields(*fields)
}

// Slot identifies a record that newer versions replace: at most one record of a slot is stored.
type Slot struct {
	Type   Type
	Portal PortalID
	// About is the agent's id, the subject of an attestation or fork, subject and shard of liveness
	// reports, or the kind and key of a provider; empty for the others.
	About string
}

// Slot returns the slot that the record competes for.
func (r *Record) Slot() Slot { return Slot{r.Type, r.Portal, r.Body.slotKey()} }

// Tombstone reports whether the record deletes an agent.
func (r *Record) Tombstone() bool {
	a, ok := r.Body.(*Agent)
	return ok && a.Deleted
}
