package record

import (
	"context"
	"fmt"
	"time"

	"agentsite/internal/fault"
)

// Memory is what a Gate must remember. Its methods are called by several
// goroutines at once.
type Memory interface {
	// Standing returns what is known of a portal, a zero one when nothing is.
	Standing(ctx context.Context, portal PortalID) (Standing, error)
	// Seen returns the newest record of a slot that was kept, or a zero Seen.
	// The record itself may have been forgotten since, see Seen.Void.
	Seen(ctx context.Context, slot Slot) (Seen, error)
	// Held returns the record that Seen told of as it travels, or nil when
	// only its hash was kept.
	Held(ctx context.Context, slot Slot) ([]byte, error)
	// Keep puts r into its slot in place of was and reports whether it did:
	// it does not when the slot holds another by now. It need not when by now
	// r could not be admitted, because of a card, a head or a quarantine that
	// came between: the Gate looks anew then. What Seen returns of
	// the slot from then on may be forgotten only after until; when that is
	// 0, never. A card that is kept is the one whose Ring Standing returns,
	// and voids what keys that it does not list have signed.
	Keep(ctx context.Context, r *Record, was Seen, until int64) (bool, error)
	// Quarantine keeps a conflict as proof. From then on Standing says that
	// the portal is quarantined, until an operator decides otherwise.
	Quarantine(ctx context.Context, c Conflict) error
}

// Standing is what is known of a portal.
type Standing struct {
	Ring *Ring // of its current card; nil when none is known
	// Head is the version of the newest head that was ever kept.
	Head        Version
	Quarantined bool
}

// Seen is what is left of the newest record of a slot, at least.
type Seen struct {
	Version
	Hash  Hash
	Until int64 // as given to Keep
	// Void is true when the record is not held any more, because its key was
	// thrown away, it expired, or its portal was dropped. It is taken in again
	// when it comes again and is good.
	Void bool
}

// Bulk is what a Memory may have besides, for many at once.
type Bulk interface {
	// SeenAll is Seen for each of the slots, at most MaxBatch.
	SeenAll(ctx context.Context, slots []Slot) ([]Seen, error)
	// KeepAll is Keep for each, in order, in one transaction; at most MaxBatch.
	KeepAll(ctx context.Context, list []Keeping) (kept []bool, err error)
}

// Keeping is what Memory.Keep takes.
type Keeping struct {
	Record *Record
	Was    Seen
	Until  int64
}

// Gate is the one way in for records, whatever brings them: push, pull, DHT,
// gossip, a cache, a backup. It is safe for concurrent use.
type Gate struct {
	network string
	mem     Memory
	tally   tally
	current current
}

// NewGate returns the gate of a network.
func NewGate(network string, mem Memory) (*Gate, error) {
	if !ValidNetwork(network) {
		return nil, fmt.Errorf("%q is no name of a network: use at most %d of a–z, 0–9 and -", network, maxNetwork)
	}
	return &Gate{network: network, mem: mem}, nil
}

// maxTries bounds how often Admit starts again because somebody else was
// quicker with the same slot.
const maxTries = 8

// Admit takes in one record that came as wire. fresh is false when this very
// record was seen before. Refusals are Refused errors; other errors are the
// memory's.
//
// The cheap questions come first: form and size before decoding, time, key and
// version before the signature, which costs 50 µs. For many see AdmitAll.
func (g *Gate) Admit(ctx context.Context, wire []byte, now time.Time) (r *Record, fresh bool, err error) {
	defer func() { g.tally.note(fresh, err) }()
	if r, err = Open(g.network, wire); err != nil {
		return nil, false, err
	}
	c := claim{Record: r}
	if err := g.look(ctx, &c, now.UnixMilli()); err != nil {
		return nil, false, err
	}
	if !c.known {
		if err := g.verify(&c, now.UnixMilli()); err != nil {
			return nil, false, err
		}
	}
	return g.finish(ctx, &c, now.UnixMilli())
}

// finish lets a verified claim take its slot, looking anew each time somebody
// else was quicker. The key cannot have changed between: its id is made of it,
// and look asks again whether the card lists it.
func (g *Gate) finish(ctx context.Context, c *claim, now int64) (*Record, bool, error) {
	for range maxTries {
		if c.known {
			return c.Record, false, nil
		}
		done, err := g.settle(ctx, c)
		if err != nil {
			return nil, false, err
		}
		if done {
			return c.Record, true, nil
		}
		if err := g.look(ctx, c, now); err != nil {
			return nil, false, err
		}
	}
	return nil, false, fault.New(fault.Unavailable, "The same record arrives on too many ways at once. Try again.")
}

// claim is a record on its way in.
type claim struct {
	*Record
	standing Standing
	accused  *Ring // of the subject of a Fork
	key      Public
	seen     Seen
	known    bool
	own      bool // this process signed it a moment ago
	err      error
}

// look asks all that can be asked before the signature.
func (g *Gate) look(ctx context.Context, c *claim, now int64) (err error) {
	if err := g.stand(ctx, c, now); err != nil {
		return err
	}
	if c.seen, err = g.mem.Seen(ctx, c.Slot()); err != nil {
		return fmt.Errorf("seen of %s: %w", c.Portal, err)
	}
	return g.compare(ctx, c)
}

// stand asks what depends on the time and on the standing of the portal.
func (g *Gate) stand(ctx context.Context, c *claim, now int64) (err error) {
	if err := c.timely(now); err != nil {
		return err
	}
	if c.standing, err = g.mem.Standing(ctx, c.Portal); err != nil {
		return fmt.Errorf("standing of %s: %w", c.Portal, err)
	}
	// A card is let in: it may throw away the key that did the lying.
	if c.standing.Quarantined && c.Type != TypeCard {
		return refuse(Quarantined, "%s was seen to sign two records of one version", c.Portal)
	}
	if c.key, err = c.signer(now); err != nil {
		return err
	}
	if c.logged() && c.Epoch < c.standing.Head.Epoch {
		return refuse(Stale, "its portal has begun a new epoch")
	}
	return nil
}

// compare asks what depends on what was seen in the slot.
func (g *Gate) compare(ctx context.Context, c *claim) error {
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

// signer returns the key that must have signed: of a card the root key in it,
// which the portal's id is made of, of all else one that the card lists.
func (c *claim) signer(now int64) (Public, error) {
	card, ok := c.Body.(*Card)
	if !ok {
		return c.standing.Ring.Key(c.Record, now)
	}
	if c.Key != KeyIDOf(card.RootPub) {
		return Public{}, refuse(NoKey, "a card is signed by its root key")
	}
	return card.RootPub, nil
}

// logged reports whether the record is of a type whose epoch is that of the
// portal's log.
func (c *claim) logged() bool {
	return c.Type == TypeAgent || c.Type == TypeHead || c.Type == TypeSummary
}

// verify checks the signatures. It asks nobody, so claims can be verified at
// once.
func (g *Gate) verify(c *claim, now int64) error {
	if c.own {
		return nil
	}
	return g.verified(c, c.holds(c.key), now)
}

// verified is verify when it is known whether the record's own signature holds.
func (g *Gate) verified(c *claim, holds bool, now int64) error {
	if !holds {
		return refuse(BadSignature, "the signature does not hold")
	}
	if !c.consents(g.network) {
		return refuse(BadSignature, "agent_sig does not hold")
	}
	if f, ok := c.Body.(*Fork); ok {
		if _, _, err := f.proven(g.network, c.accused, now); err != nil {
			return err
		}
	}
	return nil
}

// settle lets a verified claim take its slot. done is false when the slot has
// changed since look.
func (g *Gate) settle(ctx context.Context, c *claim) (done bool, err error) {
	if c.contradicts() {
		return true, g.conflict(ctx, c)
	}
	if f, ok := c.Body.(*Fork); ok { // before it is known, or a crash between would let the liar off
		if err := g.convict(ctx, f); err != nil {
			return false, err
		}
	}
	done, err = g.mem.Keep(ctx, c.Record, c.seen, c.until())
	if err != nil {
		return false, fmt.Errorf("keep a record of %s: %w", c.Portal, err)
	}
	return done, nil
}

// contradicts reports whether another record of the version was seen.
func (c *claim) contradicts() bool { return c.seen.Version == c.Version() && c.seen.Hash != c.Hash }

// conflict deals with the second of two records of one version. Of the two,
// that with the lower hash stays, so that all who saw both hold the same.
func (g *Gate) conflict(ctx context.Context, c *claim) error {
	held, err := g.mem.Held(ctx, c.Slot())
	if err != nil {
		return fmt.Errorf("held of %s: %w", c.Portal, err)
	}
	proof := Conflict{Slot: c.Slot(), Version: c.Version(), Lower: held, Higher: c.Wire}
	if c.Hash.less(c.seen.Hash) {
		proof.Lower, proof.Higher = c.Wire, held
		// When somebody is quicker the lower one is not kept now; the
		// quarantine below stands either way.
		if _, err := g.mem.Keep(ctx, c.Record, c.seen, c.until()); err != nil {
			return fmt.Errorf("keep a record of %s: %w", c.Portal, err)
		}
	}
	if err := g.mem.Quarantine(ctx, proof); err != nil {
		return fmt.Errorf("quarantine %s: %w", c.Portal, err)
	}
	return refuse(Equivocation, "%s signed two records of version %d.%d", c.Portal, c.Epoch, c.Seq)
}

// convict acts on a fork proof that was verified.
func (g *Gate) convict(ctx context.Context, f *Fork) error {
	a, b, err := f.heads(g.network)
	if err != nil {
		return err
	}
	err = g.mem.Quarantine(ctx, Conflict{Slot: a.Slot(), Version: a.Version(), Lower: a.Wire, Higher: b.Wire})
	if err != nil {
		return fmt.Errorf("quarantine %s: %w", f.Subject, err)
	}
	return nil
}

// until returns until when the record's version must be remembered: for cards
// and heads for ever, else until every older version has expired, and a week
// more. For a tombstone that is at least a week longer than what it deletes.
func (c *claim) until() int64 {
	if c.Type == TypeCard || c.Type == TypeHead {
		return 0
	}
	rule, _ := ruleOf(c.Type)
	return max(c.seen.Until, c.Issued+rule.life+grace)
}
