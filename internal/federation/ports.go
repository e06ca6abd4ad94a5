package federation

import (
	"context"
	"crypto/ed25519"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"agentsite/internal/record"
)

// Replica stores the signed records of all portals, including this one, in wire form. It is a database of its own, so
// that a first sync does not delay other writes. If it is lost, the records are pulled again and this portal starts a
// new epoch, because a portal without a stored head of its own does so. It implements record.Memory for a Gate. It is
// safe for concurrent use; yield functions may keep the values they get.
type Replica interface {
	record.Memory
	record.Bulk
	// Card and Head return the current card and head of a portal in wire form, nil if there is none.
	Card(ctx context.Context, portal record.PortalID) ([]byte, error)
	Head(ctx context.Context, portal record.PortalID) ([]byte, error)
	// Heads returns a row for the newest stored head of each portal, including this one, ordered by portal.
	Heads(ctx context.Context) ([]HeadRow, error)
	// Log returns agent records of a portal, including tombstones, ordered by seq: those with a greater
	// seq than after in the epoch of the portal's newest head, at most limit records and maxBytes bytes,
	// but at least one. Records that no head covers yet are included.
	Log(ctx context.Context, portal record.PortalID, after int64, limit, maxBytes int) ([][]byte, error)
	// Leaves calls yield with key and hash of each stored agent of a portal that is not deleted, ordered
	// by key, until yield returns false. It reads one snapshot of the database; yield must not call the
	// Replica and should be fast.
	Leaves(ctx context.Context, portal record.PortalID, yield func(key, hash record.Hash) bool) error
	// Agent returns the record of an agent by its key, possibly a tombstone; nil if there is none.
	Agent(ctx context.Context, portal record.PortalID, key record.Hash) ([]byte, error)
	// Agents calls yield with the records of all agents of a portal ("" for all portals) that are not deleted, until
	// yield returns false. Records stored during the call may be missing; yield may be slow.
	Agents(ctx context.Context, portal record.PortalID, yield func(wire []byte) bool) error
	// Complete records, in one transaction, that the stored agents of a portal add up to what head covers,
	// and moves the sync position from was to at. From then on Covered includes them. It returns the turn
	// that ends with this call. If ok is false, nothing was changed: the position is not was (records were
	// dropped meanwhile), the portal is quarantined, or head is not stored.
	Complete(ctx context.Context, portal record.PortalID, was, at record.Version,
		head Whole) (turn int64, ok bool, err error)
	// Whole returns the newest head passed to Complete, zero if records that it covers were dropped
	// since, and the number of the current turn.
	Whole(ctx context.Context, portal record.PortalID) (head Whole, turn int64, err error)
	// Covered calls yield with the covered agent records of a portal that were stored in the given turn
	// or later, until yield returns false. A turn is the time between two calls of Complete for the
	// portal. Turn 0 gives all agents that are not deleted; a later turn includes tombstones. A record
	// that waits for its head is left out, and the one it will replace is given instead, unless that is
	// a tombstone. A record that is replaced during the call may be given twice. yield may be slow.
	Covered(ctx context.Context, portal record.PortalID, turn int64, yield func(wire []byte) bool) error
	// CoveredAgent is Agent for records that a head covers; others are treated as missing.
	CoveredAgent(ctx context.Context, portal record.PortalID, key record.Hash) ([]byte, error)
	// Holding returns the number of stored agents of a portal ("" for all portals) without tombstones, and the bytes
	// of all its records, including tombstones and remembered versions, because the quota of bytes limits these too.
	Holding(ctx context.Context, portal record.PortalID) (agents int, bytes int64, err error)
	// Drop deletes the agents and all other records of a portal except card and head. Their versions
	// stay remembered, and the same records can be stored again. The sync position becomes zero.
	Drop(ctx context.Context, portal record.PortalID) error
	// LetGo deletes agents of a portal as Drop does, including tombstones, but not more than most in one call;
	// other records stay. done is true if no agent is left.
	LetGo(ctx context.Context, portal record.PortalID, most int) (done bool, err error)
	// Omit deletes the given agents of a portal, which its head does not cover, as Drop does.
	Omit(ctx context.Context, portal record.PortalID, keys []record.Hash) error
	// Position returns the progress of a portal's sync: the epoch and the seq up to which its log is
	// stored. It survives restarts, and is zero after earlier records were dropped.
	Position(ctx context.Context, portal record.PortalID) (record.Version, error)
	SetPosition(ctx context.Context, portal record.PortalID, at record.Version) error
	// Others returns records that are neither card, head nor agent (attestations, fork proofs,
	// summaries) with an arrival number greater than after, in that order. Arrival numbers never repeat.
	Others(ctx context.Context, types []record.Type, after int64, limit int) ([]Numbered, error)
	// Quarantined returns the conflict for which a portal is quarantined, or nil; Convicted returns all
	// quarantined portals in any order. Release ends a quarantine on behalf of an operator; the same
	// conflict has no effect afterwards, but another one has.
	Quarantined(ctx context.Context, portal record.PortalID) (*record.Conflict, error)
	Convicted(ctx context.Context) ([]record.PortalID, error)
	Release(ctx context.Context, portal record.PortalID) error
	// Sweep deletes data that has expired at now.
	Sweep(ctx context.Context, now time.Time) error
}

// Keeping is the argument of record.Memory.Keep.
type Keeping = record.Keeping

// HeadRow is the stored head of one portal as a vector of heads needs it.
type HeadRow struct {
	Portal record.PortalID
	record.Version
	Issued, Expires int64
	Count           int64
}

// Numbered is a record in wire form with its arrival number.
type Numbered struct {
	Number int64
	Wire   []byte
}

// Whole is the head up to which a portal's log is completely stored.
type Whole struct {
	record.Version
	Hash record.Hash
}

// Signer signs for this portal; Self implements it.
type Signer interface {
	ID() record.PortalID
	// Network is the name of the network, which every signature covers.
	Network() string
	// Origin is this portal's address.
	Origin() string
	// Card returns the portal's current card in wire form; nil if there is none.
	Card() []byte
	// Key returns the operational key to sign with at now, and the end of its validity.
	Key(now time.Time) (id record.KeyID, key ed25519.PrivateKey, until time.Time, err error)
}

// Caller sends signed requests to other portals; see docs/design/peering.md.
type Caller interface {
	// Do sends a request to the portal at an origin. path is relative to the origin and includes the query; body may
	// be nil. It returns the answer of any status, with at most limit bytes of body; an error means that there was no
	// answer. If portal is not empty and the card at the origin belongs to another portal, nothing is sent.
	Do(ctx context.Context, origin string, portal record.PortalID, method, path string, body []byte,
		limit int64) (*Answer, error)
}

// Answer is the response of a portal to Caller.Do.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte // body after decompression
	Took   time.Duration
}

// maxRetryAfter is the longest wait that another portal can ask for.
const maxRetryAfter = 10 * time.Minute

// RetryAfter returns the wait that the answer asks for, at most maxRetryAfter; 0 if it names none.
func (a *Answer) RetryAfter() time.Duration {
	n, err := strconv.Atoi(a.Header.Get("Retry-After"))
	if err != nil || n <= 0 {
		return 0
	}
	return min(time.Duration(n)*time.Second, maxRetryAfter)
}

// Gatekeeper decides which portals are admitted. All traffic between portals depends on it: requests,
// records, display, forwarding and calls. It answers from memory and never blocks, so callers do not
// cache the result. Peers implements it.
type Gatekeeper interface {
	// Decide returns the current decision for a portal. An unknown portal is judged by its origin, which
	// may be empty.
	Decide(ctx context.Context, portal record.PortalID, origin string) Decision
	// DecideAddr decides on a network address: that of a requester, before anything is verified, or the
	// target of an origin's host. reason is empty if the address is allowed.
	DecideAddr(addr netip.Addr) (reason string)
	// DecideKey decides on a key that signed a request or a record. reason is empty if the key is allowed.
	DecideKey(key record.KeyID) (reason string)
}

// Decision is the result of the operator's rules and the policy for one portal.
type Decision struct {
	// In: its requests are answered. Show: its stored records are searched, shown and forwarded. Take: its new
	// records are stored. Call: its people may call agents here. Out: people here may call its agents.
	In, Show, Take, Call, Out bool
	// Keep: it is denied only temporarily, so its stored records are kept.
	Keep bool
	// Follow: an operator allowed or pinned it, so all its agents are stored even if only summaries of others are.
	Follow bool
	// Unproved: its domain was not recently seen to serve its card. Its limits are a tenth of the usual ones.
	Unproved bool
	// State is Active, or the state that excludes the portal: Pending, Denied or Quarantined. The name
	// of the state is the reason code of refusals.
	State State
	// Reason explains a refusal to people in a sentence.
	Reason string
	// The quotas: its agents and bytes stored here, and the average number of its requests answered in a second.
	MaxAgents int
	MaxBytes  int64
	PerSecond int
}

// Filter selects the agents that are exchanged with other portals. It affects only which records are
// published and shown, never which are stored: a portal's head covers all of its agents.
type Filter interface {
	// Exports reports whether an agent of this portal with these tags and languages is published.
	Exports(tags, languages []string) bool
	// Imports reports whether an agent of another portal is shown here.
	Imports(a *record.Agent) bool
}

// Registry keeps the states of portals. Its methods are cheap, never fail and never block; reports about
// unknown portals are ignored.
type Registry interface {
	Gatekeeper
	// Heard reports an address at which a portal may be, and the portal that named it ("" for an
	// operator). The address is asked later, if the limits allow.
	Heard(origin string, from record.PortalID)
	// Learned reports an admitted card; proved is true if the portal's domain was seen to serve it.
	Learned(card *record.Card, proved bool)
	// Seen reports that a portal answered a request, which took the given time, or sent a validly signed
	// request (took 0).
	Seen(portal record.PortalID, took time.Duration)
	// Barred reports that a portal refuses all requests of this one, with its reason and explanation; an
	// empty reason reports that it does not refuse.
	Barred(portal record.PortalID, why Reason, words string)
	// Failed reports that a request to a portal got no answer, with the error.
	Failed(portal record.PortalID, err error)
	// Fault reports that a record or answer of a portal was refused; reason is a record.Reason or one of
	// docs/design/peering.md.
	Fault(portal record.PortalID, reason string)
	// Synced reports the state of a portal's log here: its newest head, how many agents are stored, whether the
	// portal is over its quota (truncated), and since when a newer head waits for its records (zero: none).
	Synced(portal record.PortalID, head HeadRow, held int, truncated bool, waits time.Time)
	// Portals returns all known portals, ordered by host.
	Portals(ctx context.Context) []Peer
}
