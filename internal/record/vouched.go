package record

import (
	"context"
	"time"
)

// Vouched does all checks of Admit for a record that came with the card of its portal, such as a
// value of the DHT; the portal may be unknown here. It keeps neither. A newer card that is held
// here replaces the one that came. The returned record is nil if only a card came. A head older
// than the newest seen one passes: heads are signed each hour, values only a few times a day, and
// here the head proves only that the portal is active. Refusals are Refused errors; other errors
// are those of the memory.
func (g *Gate) Vouched(ctx context.Context, card, wire []byte, now time.Time) (*Card, *Record, error) {
	ms := now.UnixMilli()
	c, older, err := g.checkCard(ctx, card, ms)
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
	if err := r.checkTimes(ms); err != nil {
		return nil, nil, err
	}
	if c.key, err = ring.Key(r, ms); err != nil {
		return nil, nil, err
	}
	// Providers are not in the gate's memory: the store of the DHT keeps the newest of each publisher.
	if r.Type != TypeProvider {
		if c.seen, err = g.mem.Seen(ctx, c.Slot()); err != nil {
			return nil, nil, err
		}
	}
	if err := g.compareSeen(ctx, &c); err != nil && (r.Type != TypeHead || ReasonOf(err) != Stale) {
		return nil, nil, err
	}
	if !c.known {
		if err := g.verifyClaim(&c, ms); err != nil {
			return nil, nil, err
		}
		if c.isConflict() {
			return nil, nil, refuse(Equivocation, "%s signed two records of version %d.%d", c.Portal, c.Epoch, c.Seq)
		}
	}
	return of, r, nil
}

// Signed reports whether a record is valid now and signed by a key that the card lists. The caller
// has admitted the card. It is for records outside of a log, such as a contact.
func (c *Card) Signed(r *Record, now time.Time) error {
	if err := r.checkTimes(now.UnixMilli()); err != nil {
		return err
	}
	key, err := c.Ring().Key(r, now.UnixMilli())
	if err != nil {
		return err
	}
	if r.Portal != c.Portal || !r.signedBy(key) {
		return refuse(BadSignature, "the signature does not hold")
	}
	return nil
}
