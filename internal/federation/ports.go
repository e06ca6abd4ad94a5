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

// Replica keeps the signed records of portals, those of this portal included, in their wire form.
// It is a database of its own, so that a first sync does not delay other writes. Its loss costs a
// sync and a new epoch: a portal begins one when it holds no head of its own. It is the memory of
// a record.Gate. Its methods are safe for concurrent use; yield may keep the values that it gets.
type Replica interface {
	record.Memory
	record.Bulk
	// Card and Head return the current one of a portal as it travels, nil when
	// none is held.
	Card(ctx context.Context, portal record.PortalID) ([]byte, error)
	Head(ctx context.Context, portal record.PortalID) ([]byte, error)
	// Heads returns the version of each newest head that is held, with its
	// times, the portal's own included, in order of portal.
	Heads(ctx context.Context) ([]HeadRow, error)
	// Log returns agents' records of a portal, tombstones included, in order of
	// seq, those after a seq of the epoch of its newest head: at most limit,
	// and no more than maxBytes unless it is one. Records that came before the
	// head that covers them are among them.
	Log(ctx context.Context, portal record.PortalID, after int64, limit, maxBytes int) ([][]byte, error)
	// Leaves calls yield with key and hash of each agent of a portal that is
	// held and not deleted, in order of key, until yield returns false. It sees
	// one moment of the database; yield must not ask the Replica anything and
	// should not take long.
	Leaves(ctx context.Context, portal record.PortalID, yield func(key, hash record.Hash) bool) error
	// Agent returns the record of an agent by its key, nil when none is held;
	// it may be a tombstone.
	Agent(ctx context.Context, portal record.PortalID, key record.Hash) ([]byte, error)
	// Agents calls yield with the records of all agents of a portal that are not deleted, of all
	// portals for "", until yield returns false. Records that are stored during the call may be
	// included or not; yield may be slow.
	Agents(ctx context.Context, portal record.PortalID, yield func(wire []byte) bool) error
	// Complete notes, in one write, that all that is held of a portal's agents
	// adds up to its head of a version and hash, and where its sync stands: from
	// now on these records are covered. It returns the turn that ends with it,
	// see Covered. Not ok, it changes nothing: the Position is not was, so some of
	// it was let go meanwhile, or that head is not one that is held.
	Complete(ctx context.Context, portal record.PortalID, was, at record.Version,
		head Whole) (turn int64, ok bool, err error)
	// Whole returns the newest head passed to Complete, zero when some of the records it covers
	// were dropped since, and the turn that has not ended.
	Whole(ctx context.Context, portal record.PortalID) (head Whole, turn int64, err error)
	// Covered calls yield with the agents' records of a portal that a head
	// covers and that were kept in a turn or later, until yield returns false:
	// with all that are not deleted from turn 0, with tombstones too from a later
	// one. Those that wait for a head are not among them; those that they will
	// replace are until then, tombstones not. One that is replaced meanwhile may
	// come twice. yield may take its time.
	Covered(ctx context.Context, portal record.PortalID, turn int64, yield func(wire []byte) bool) error
	// CoveredAgent is Agent limited to records that a head covers.
	CoveredAgent(ctx context.Context, portal record.PortalID, key record.Hash) ([]byte, error)
	// Holding returns the number of held agents of a portal, without tombstones, and the bytes of
	// all its records here, including tombstones and the versions that must be remembered, because
	// quotas of bytes bound these too. For "" it counts all portals.
	Holding(ctx context.Context, portal record.PortalID) (agents int, bytes int64, err error)
	// Drop deletes the agents of a portal and all its other records except card and head. The
	// versions are remembered as before, and the same records are taken in again when they come.
	// Its Position is zero then.
	Drop(ctx context.Context, portal record.PortalID) error
	// LetGo deletes some agents of a portal as Drop does, at most a given number, tombstones among
	// them, and none of its other records. Done means that none is left.
	LetGo(ctx context.Context, portal record.PortalID, most int) (done bool, err error)
	// Omit deletes agents of a portal that its head does not cover, as Drop does.
	Omit(ctx context.Context, portal record.PortalID, keys []record.Hash) error
	// Position is the progress of a portal's sync: the seq up to which the log of an epoch was
	// taken in. It survives restarts, and is zero again when records before it had to be dropped.
	Position(ctx context.Context, portal record.PortalID) (record.Version, error)
	SetPosition(ctx context.Context, portal record.PortalID, at record.Version) error
	// Others returns records that are no card, head or agent (attestations,
	// fork proofs, summaries), newest received last, those received after a
	// number; each with its number, which grows for ever.
	Others(ctx context.Context, types []record.Type, after int64, limit int) ([]Numbered, error)
	// Quarantined returns the conflict a portal is quarantined for, or nil.
	// Convicted returns all that are, in any order.
	// Release ends its quarantine, which only an operator may; from then on
	// that conflict counts no more, another one does.
	Quarantined(ctx context.Context, portal record.PortalID) (*record.Conflict, error)
	Convicted(ctx context.Context) ([]record.PortalID, error)
	Release(ctx context.Context, portal record.PortalID) error
	// Sweep deletes expired data as of now.
	Sweep(ctx context.Context, now time.Time) error
}

// Keeping is the argument of record.Memory.Keep.
type Keeping = record.Keeping

// HeadRow is a head as a vector of heads has it.
type HeadRow struct {
	Portal record.PortalID
	record.Version
	Issued, Expires int64
	Count           int64
}

// Numbered is a record as it travels, with the number of its arrival.
type Numbered struct {
	Number int64
	Wire   []byte
}

// Whole is a head up to which a portal's log is held.
type Whole struct {
	record.Version
	Hash record.Hash
}

// Signer speaks for this portal: see Self.
type Signer interface {
	ID() record.PortalID
	// Network is the name in everything signed.
	Network() string
	// Origin is where the portal is.
	Origin() string
	// Card returns the portal's current card as it travels.
	Card() []byte
	// Key returns the operational key to sign with now.
	Key(now time.Time) (id record.KeyID, key ed25519.PrivateKey, until time.Time, err error)
}

// Caller asks other portals. Every request is signed; see docs/design/peering.md.
type Caller interface {
	// Do sends a request to the portal at an origin: method, path with query below the origin, and
	// body, nil for none. It returns the answer of any status with at most limit bytes of body; an
	// error means there was none. A portal id that is not empty must match: if the card at that
	// origin is of another portal, nothing is sent.
	Do(ctx context.Context, origin string, portal record.PortalID, method, path string, body []byte,
		limit int64) (*Answer, error)
}

// Answer is the response of a portal.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte // decompressed
	Took   time.Duration
}

// maxRetryAfter bounds the wait that another portal may ask for.
const maxRetryAfter = 10 * time.Minute

// RetryAfter returns the wait that the portal asks for, 0 if it names none.
func (a *Answer) RetryAfter() time.Duration {
	n, err := strconv.Atoi(a.Header.Get("Retry-After"))
	if err != nil || n <= 0 {
		return 0
	}
	return min(time.Duration(n)*time.Second, maxRetryAfter)
}

// Gatekeeper decides which portals are admitted. All paths across the border ask it: requests,
// records, display, forwarding, calls. Its answers are cheap and never block, so callers do not
// cache them. Peers implements it.
type Gatekeeper interface {
	// Decide returns the decision for a portal at present. An unknown portal is decided by the
	// origin, which may be empty too.
	Decide(ctx context.Context, portal record.PortalID, origin string) Decision
	// DecideAddr decides on a network address: of a requester, before anything is verified, and of
	// the target of an origin's name. Reason is empty when it is allowed.
	DecideAddr(addr netip.Addr) (reason string)
	// DecideKey says the same of a key that signed a request or a record.
	DecideKey(key record.KeyID) (reason string)
}

// Decision is the result of an operator's rules and the policy for a portal.
type Decision struct {
	// In: its requests are answered. Show: its held records are found, shown and forwarded. Take:
	// new records of it are taken in. Call: its callers may use agents here. Out: people here may
	// use agents there.
	In, Show, Take, Call, Out bool
	// Keep: it is denied only for a time, so its held records stay.
	Keep bool
	// Follow: an operator allowed or pinned it, so all its agents are kept where
	// of others only summaries are.
	Follow bool
	// Unproved: it was not seen at its origin of late. Limits are a tenth.
	Unproved bool
	// State is Active, or the state that keeps it out: Pending, Denied or Quarantined. The reason
	// on the wire for a refusal is its name.
	State State
	// Reason explains a refusal in a sentence, for people.
	Reason string
	// Quotas: agents and bytes held here, and the average rate of its requests that are answered,
	// per second.
	MaxAgents int
	MaxBytes  int64
	PerSecond int
}

// Filter selects the agents that cross the border. It changes only which records are published and
// shown, never which are kept: a portal's head covers all of its agents.
type Filter interface {
	// Exports says whether an agent of this portal is published.
	Exports(tags, languages []string) bool
	// Imports says whether an agent of another portal is shown here.
	Imports(a *record.Agent) bool
}

// Registry keeps the states of portals. Its reports are cheap, never fail and never block; unknown
// portals are ignored.
type Registry interface {
	Gatekeeper
	// Heard reports an address where a portal may be, and its source ("" for the operator). It is
	// asked when it is due, if at all.
	Heard(origin string, from record.PortalID)
	// Learned reports a card that was admitted, and whether its domain was seen to serve it.
	Learned(card *record.Card, proved bool)
	// Seen reports that a portal answered, or sent a request with a valid signature (took 0).
	Seen(portal record.PortalID, took time.Duration)
	// Barred reports that a portal refuses all requests of this one, with the reason and its text;
	// without a reason, that it does not refuse.
	Barred(portal record.PortalID, why Reason, words string)
	// Failed reports that a portal did not answer, with the error.
	Failed(portal record.PortalID, err error)
	// Fault reports that a record or answer of a portal had to be refused; the reason is one of
	// record.Reason or of docs/design/peering.md.
	Fault(portal record.PortalID, reason string)
	// Synced reports the state of a portal's log here: how many of its agents are held, of how
	// many, and since when a newer head waits (zero: none does).
	Synced(portal record.PortalID, head HeadRow, held int, truncated bool, waits time.Time)
	// Portals returns all that are known, by host.
	Portals(ctx context.Context) []Peer
}
