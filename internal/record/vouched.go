package record

import (
	"context"
	"time"
)

// Vouched asks of a record all that Admit does, when it came with the card of
// its portal, which may be one that nobody here ever met: so do values of the
// DHT. It takes in neither. A card that is held here and newer counts instead of
// the one that came; the record is nil where only a card came. An older head than
// the newest that was seen passes: it is signed anew each hour, a value only a few
// times a day, and says no more here than that the portal is there. Refusals are
// Refused errors; other errors are the memory's.
func (g *Gate) Vouched(ctx context.Context, card, wire []byte, now time.Time) (*Card, *Record, error) {
	ms := now.UnixMilli()
	c, older, err := g.vouching(ctx, card, ms)
	if err != nil {
		return nil, nil, err
	}
	of := c.Body.(*Card)
	if c.standing.Quarantined {
		return nil, nil, refuse(Quarantined, "%s was seen to sign two records of one version", c.Portal)
	}
	if wire == nil {
		if older {
			return nil, nil, refuse(Stale, "a newer card was seen")
		}
		return of, nil, nil
	}

	r, err := Open(g.network, wire)
	if err != nil {
		return nil, nil, err
	}
	if r.Portal != of.Portal {
		return nil, nil, refuse(NotConsistent, "the card is of another portal")
	}
	if r.Type == TypeCard || r.Type == TypeFork {
		return nil, nil, refuse(NotConsistent, "a %s does not belong there", r.Type)
	}
	ring := of.Ring()
	if older {
		if ring = c.standing.Ring; ring == nil {
			return nil, nil, refuse(NoPortal, "no card of its portal is known; fetch it first")
		}
	}
	c = claim{Record: r, standing: Standing{Ring: ring, Head: c.standing.Head}}
	if err := r.timely(ms); err != nil {
		return nil, nil, err
	}
	if c.key, err = ring.Key(r, ms); err != nil {
		return nil, nil, err
	}
	// Nobody takes a provider record in: the shelf of the DHT itself has the
	// newest of each publisher.
	if r.Type != TypeProvider {
		if c.seen, err = g.mem.Seen(ctx, c.Slot()); err != nil {
			return nil, nil, err
		}
	}
	if err := g.compare(ctx, &c); err != nil && (r.Type != TypeHead || ReasonOf(err) != Stale) {
		return nil, nil, err
	}
	if !c.known {
		if err := g.verify(&c, ms); err != nil {
			return nil, nil, err
		}
		if c.contradicts() {
			return nil, nil, refuse(Equivocation, "%s signed two records of version %d.%d", c.Portal, c.Epoch, c.Seq)
		}
	}
	return of, r, nil
}

// Signed reports whether a record is good now and signed by a key that the card
// lists, which the caller has admitted. It is for what is no log's: a contact.
func (c *Card) Signed(r *Record, now time.Time) error {
	if err := r.timely(now.UnixMilli()); err != nil {
		return err
	}
	key, err := c.Ring().Key(r, now.UnixMilli())
	if err != nil {
		return err
	}
	if r.Portal != c.Portal || !r.holds(key) {
		return refuse(BadSignature, "the signature does not hold")
	}
	return nil
}
