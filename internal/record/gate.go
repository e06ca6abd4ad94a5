package record

import (
	"context"
	"fmt"
	"time"

	"agentsite/internal/fault"
)

// Memory stores the state of a Gate. Its methods are called by several goroutines at once.
type Memory interface {
	// Standing returns the standing of a portal, the zero value for an unknown one.
	Standing(ctx context.Context, portal PortalID) (Standing, error)
	// Seen returns the newest record of a slot that was kept, or a zero Seen. The record itself may
	// have been dropped since, see Seen.Void.
	Seen(ctx context.Context, slot Slot) (Seen, error)
	// Held returns the encoded record of Seen, or nil if only its hash was kept.
	Held(ctx context.Context, slot Slot) ([]byte, error)
	// Keep puts r into its slot in place of was and reports whether it did. It must not if the slot
	// holds another record by now. It need not if r could no longer be admitted, because of a newer
	// card, head or quarantine: the Gate checks again then. The slot's Seen may be dropped only
	// after until, never if that is 0. A kept card is the one whose Ring Standing returns, and
	// makes the records of keys that it does not list void.
	Keep(ctx context.Context, r *Record, was Seen, until int64) (bool, error)
	// Quarantine stores a conflict as proof. From then on Standing returns the portal as
	// quarantined, until an operator decides otherwise.
	Quarantine(ctx context.Context, c Conflict) error
}

// Standing is the state of a portal that decides which of its records are admitted.
type Standing struct {
	Ring *Ring // ring of the current card; nil if no card is known
	// Head is the version of the newest head that was ever kept.
	Head        Version
	Quarantined bool
}

// Seen holds at least the version and hash of the newest record of a slot.
type Seen struct {
	Version
	Hash  Hash
	Until int64 // until, as given to Keep
	// Void is true if the record is no longer held, because its key was replaced, it expired, or
	// its portal was dropped. It is admitted again if it comes again and is valid.
	Void bool
}

// Bulk is an optional extension of a Memory for many records in one transaction.
type Bulk interface {
	// SeenAll is Seen for each of the slots, at most MaxBatch.
	SeenAll(ctx context.Context, slots []Slot) ([]Seen, error)
	// KeepAll is Keep for each, in order, in one transaction; at most MaxBatch.
	KeepAll(ctx context.Context, list []Keeping) (kept []bool, err error)
}

// Keeping holds the arguments of one Memory.Keep, for Bulk.KeepAll.
type Keeping struct {
	Record *Record
	Was    Seen
	Until  int64
}

// Gate is the only way for records into this portal, whatever their source: push, pull, DHT, gossip, a
// cache or a backup. It is safe for concurrent use.
type Gate struct {
	network string
	mem     Memory
	metrics metrics
	current current
}

// NewGate returns the gate for the records of a network, with their state in mem; an error if the name
// of the network is invalid.
func NewGate(network string, mem Memory) (*Gate, error) {
	if !ValidNetwork(network) {
		return nil, fmt.Errorf("%q is not the name of a network: use at most %d of a–z, 0–9 and -", network,
			maxNetwork)
	}
	return &Gate{network: network, mem: mem, metrics: newMetrics()}, nil
}

// maxTries is how often Admit is repeated after other calls changed the same slot.
const maxTries = 8

// Admit admits one encoded record. fresh is false if the same record was seen before. Refusals are
// Refused errors; other errors are those of the memory.
//
// Cheap checks come first: form and size before decoding; time, key and version before the
// signature, which costs 50 µs. For many records see AdmitAll.
func (g *Gate) Admit(ctx context.Context, wire []byte, now time.Time) (r *Record, fresh bool, err error) {
	defer func() { g.metrics.countResult(fresh, err) }()
	if r, err = Open(g.network, wire); err != nil {
		return nil, false, err
	}
	c := claim{Record: r}
	if err := g.lookUp(ctx, &c, now.UnixMilli()); err != nil {
		return nil, false, err
	}
	if !c.known {
		if err := g.verifyClaim(&c, now.UnixMilli()); err != nil {
			return nil, false, err
		}
	}
	return g.finishClaim(ctx, &c, now.UnixMilli())
}

// finishClaim lets a verified claim take its slot, and checks again each time another call changed
// the slot. The key cannot change meanwhile: its id is derived from it, and lookUp checks again
// whether the card lists it.
func (g *Gate) finishClaim(ctx context.Context, c *claim, now int64) (*Record, bool, error) {
	for range maxTries {
		if c.known {
			return c.Record, false, nil
		}
		done, err := g.takeSlot(ctx, c)
		if err != nil {
			return nil, false, err
		}
		if done {
			return c.Record, true, nil
		}
		if err := g.lookUp(ctx, c, now); err != nil {
			return nil, false, err
		}
	}
	return nil, false, fault.New(fault.Unavailable, "The same record arrives on too many ways at once. Try again.")
}

// claim is a record during its checks, not trusted yet.
type claim struct {
	*Record
	standing Standing
	accused  *Ring // ring of the subject of a Fork; nil for other types
	key      Public
	seen     Seen
	known    bool
	own      bool // signed by this process, so the signature need not be checked
	err      error
}

// lookUp does all checks that come before the signature, which is the expensive one.
func (g *Gate) lookUp(ctx context.Context, c *claim, now int64) (err error) {
	if err := g.checkStanding(ctx, c, now); err != nil {
		return err
	}
	if c.seen, err = g.mem.Seen(ctx, c.Slot()); err != nil {
		return fmt.Errorf("seen of %s: %w", c.Portal, err)
	}
	return g.compareSeen(ctx, c)
}

// checkStanding does the checks that depend on the time and on the standing of the portal.
func (g *Gate) checkStanding(ctx context.Context, c *claim, now int64) (err error) {
	if err := c.checkTimes(now); err != nil {
		return err
	}
	if c.standing, err = g.mem.Standing(ctx, c.Portal); err != nil {
		return fmt.Errorf("standing of %s: %w", c.Portal, err)
	}
	// A card is admitted even from a quarantined portal, because it may replace the key that signed the
	// conflict.
	if c.standing.Quarantined && c.Type != TypeCard {
		return refuse(Quarantined, "%s was seen to sign two records of one version", c.Portal)
	}
	if c.key, err = c.signerKey(now); err != nil {
		return err
	}
	if c.isLogged() && c.Epoch < c.standing.Head.Epoch {
		return refuse(Stale, "its portal has begun a new epoch")
	}
	return nil
}

// compareSeen does the checks that depend on the records seen in the slot.
func (g *Gate) compareSeen(ctx context.Context, c *claim) error {
	switch c.Version().Compare(c.seen.Version) {
	case -1:
		return refuse(Stale, "a newer version was seen")
	case 0:
		c.known = c.Hash == c.seen.Hash && !c.seen.Void
	}
	if f, ok := c.Body.(*Fork); ok && !c.known {
		s, err := g.mem.Standing(ctx, f.Subject)
		if err != nil {
			return fmt.Errorf("standing of %s: %w", f.Subject, err)
		}
		c.accused = s.Ring
	}
	return nil
}

// signerKey returns the key that must have signed: for a card the root key in it, which the
// portal's id is derived from, for other records a key that the card lists.
func (c *claim) signerKey(now int64) (Public, error) {
	card, ok := c.Body.(*Card)
	if !ok {
		return c.standing.Ring.Key(c.Record, now)
	}
	if c.Key != KeyIDOf(card.RootPub) {
		return Public{}, refuse(NoKey, "a card is signed by its root key")
	}
	return card.RootPub, nil
}

// isLogged reports whether the record belongs to the portal's log, so that its epoch must be that of the
// head.
func (c *claim) isLogged() bool {
	return c.Type == TypeAgent || c.Type == TypeHead || c.Type == TypeSummary
}

// verifyClaim checks the signatures of the record and, in a fork or an agent, those inside it. It does
// not use the memory, so claims can be verified in parallel.
func (g *Gate) verifyClaim(c *claim, now int64) error {
	if c.own {
		return nil
	}
	return g.checkSignatures(c, c.signedBy(c.key), now)
}

// checkSignatures is verifyClaim with a known result for the record's own signature.
func (g *Gate) checkSignatures(c *claim, holds bool, now int64) error {
	if !holds {
		return refuse(BadSignature, "the signature does not hold")
	}
	if !c.hasConsent(g.network) {
		return refuse(BadSignature, "agent_sig does not hold")
	}
	if f, ok := c.Body.(*Fork); ok {
		if _, _, err := f.verifyHeads(g.network, c.accused, now); err != nil {
			return err
		}
	}
	return nil
}

// takeSlot stores a verified claim in its slot. done is false if the slot has changed since lookUp, and
// the caller must repeat the checks.
func (g *Gate) takeSlot(ctx context.Context, c *claim) (done bool, err error) {
	if c.isConflict() {
		return true, g.handleConflict(ctx, c)
	}
	// Stored before the record, so that a crash in between cannot save the equivocator.
	if f, ok := c.Body.(*Fork); ok {
		if err := g.markEquivocator(ctx, f); err != nil {
			return false, err
		}
	}
	done, err = g.mem.Keep(ctx, c.Record, c.seen, c.rememberUntil())
	if err != nil {
		return false, fmt.Errorf("keep a record of %s: %w", c.Portal, err)
	}
	return done, nil
}

// isConflict reports whether another record of the same version was seen.
func (c *claim) isConflict() bool { return c.seen.Version == c.Version() && c.seen.Hash != c.Hash }

// handleConflict handles the second of two records of one version. The one with the lower hash
// stays, so that all portals that saw both hold the same.
func (g *Gate) handleConflict(ctx context.Context, c *claim) error {
	held, err := g.mem.Held(ctx, c.Slot())
	if err != nil {
		return fmt.Errorf("held of %s: %w", c.Portal, err)
	}
	proof := Conflict{Slot: c.Slot(), Version: c.Version(), Lower: held, Higher: c.Wire}
	if c.Hash.isLess(c.seen.Hash) {
		proof.Lower, proof.Higher = c.Wire, held
		// If another call was faster, the lower one is not kept now; the quarantine below applies
		// anyway.
		if _, err := g.mem.Keep(ctx, c.Record, c.seen, c.rememberUntil()); err != nil {
			return fmt.Errorf("keep a record of %s: %w", c.Portal, err)
		}
	}
	if err := g.mem.Quarantine(ctx, proof); err != nil {
		return fmt.Errorf("quarantine %s: %w", c.Portal, err)
	}
	return refuse(Equivocation, "%s signed two records of version %d.%d", c.Portal, c.Epoch, c.Seq)
}

// markEquivocator quarantines the portal of a verified fork proof.
func (g *Gate) markEquivocator(ctx context.Context, f *Fork) error {
	a, b, err := f.openHeads(g.network)
	if err != nil {
		return err
	}
	err = g.mem.Quarantine(ctx, Conflict{Slot: a.Slot(), Version: a.Version(), Lower: a.Wire, Higher: b.Wire})
	if err != nil {
		return fmt.Errorf("quarantine %s: %w", f.Subject, err)
	}
	return nil
}

// rememberUntil returns the time until which the record's version must be remembered: for ever (0)
// for cards and heads, otherwise until every older version has expired, plus a week. For a
// tombstone this is at least a week longer than for the record that it deletes.
func (c *claim) rememberUntil() int64 {
	if c.Type == TypeCard || c.Type == TypeHead {
		return 0
	}
	rule, _ := ruleOf(c.Type)
	return max(c.seen.Until, c.Issued+rule.life+grace)
}
