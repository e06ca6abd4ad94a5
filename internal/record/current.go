package record

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
)

// maxCurrent bounds the cards that a Gate has in memory, at some 2 KB.
const maxCurrent = 16 << 10

// current are cards that were read from the Memory, with the ring that it had
// then: as long as a portal's ring is that one, so is its card. It is safe for
// concurrent use.
type current struct {
	mu sync.Mutex // guards the rest
	of map[PortalID]carded
	by map[Hash]PortalID // by the hash of the wire
}

type carded struct {
	ring *Ring
	card *Record
	id   Hash
}

func (c *current) get(portal PortalID) carded {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[portal]
}

// sent returns the card of a wire.
func (c *current) sent(wire []byte) (carded, bool) {
	id := Hash(sha256.Sum256(wire))
	c.mu.Lock()
	defer c.mu.Unlock()
	portal, ok := c.by[id]
	return c.of[portal], ok
}

func (c *current) put(ring *Ring, r *Record) {
	// What is asked of it again is not what it came as: that is half of it.
	card := &Record{Type: r.Type, Header: r.Header, Key: r.Key, Hash: r.Hash, Body: r.Body}
	next := carded{ring, card, sha256.Sum256(r.Wire)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil || len(c.of) >= maxCurrent {
		c.of, c.by = make(map[PortalID]carded), make(map[Hash]PortalID)
	}
	if was, ok := c.of[card.Portal]; ok {
		delete(c.by, was.id)
	}
	c.of[card.Portal], c.by[next.id] = next, card.Portal
}

// Current returns the card of a portal that is held, nil without one, and what is
// known of the portal. The card is shared: nobody may change it. Errors are the
// memory's.
func (g *Gate) Current(ctx context.Context, portal PortalID) (*Card, Standing, error) {
	s, err := g.mem.Standing(ctx, portal)
	if err != nil || s.Ring == nil {
		return nil, s, err
	}
	if c := g.current.get(portal); c.ring == s.Ring {
		return c.card.Body.(*Card), s, nil
	}
	wire, err := g.mem.Held(ctx, Slot{Type: TypeCard, Portal: portal})
	if err != nil || wire == nil {
		return nil, s, err
	}
	r, err := Open(g.network, wire)
	if err != nil {
		return nil, s, err
	}
	card, ok := r.Body.(*Card)
	if !ok {
		return nil, s, fmt.Errorf("the card of %s that is held is a %s", portal, r.Type)
	}
	g.current.put(s.Ring, r)
	return card, s, nil
}

// vouching looks at the card that came with a record. older says that a newer one
// is held.
func (g *Gate) vouching(ctx context.Context, wire []byte, now int64) (c claim, older bool, err error) {
	if have, ok := g.current.sent(wire); ok { // the same portals publish again and again
		c = claim{Record: have.card, known: true}
		if c.standing, err = g.mem.Standing(ctx, c.Portal); err != nil {
			return c, false, err
		}
		if c.standing.Ring == have.ring {
			return c, false, c.timely(now)
		}
	}
	r, err := Open(g.network, wire)
	if err != nil {
		return c, false, err
	}
	if r.Type != TypeCard {
		return c, false, refuse(NotConsistent, "it begins with a %s, not with a card", r.Type)
	}
	c = claim{Record: r}
	switch err := g.look(ctx, &c, now); {
	case ReasonOf(err) == Stale:
		return c, true, nil // what it vouches for may still be signed by a key that counts
	case err != nil:
		return c, false, err
	case c.known:
		_, _, err := g.Current(ctx, c.Portal) // for the next time
		return c, false, err
	}
	if err := g.verify(&c, now); err != nil {
		return c, false, err
	}
	if c.contradicts() {
		return c, false, refuse(Equivocation, "%s signed two cards of version %d.%d", c.Portal, c.Epoch, c.Seq)
	}
	return c, false, nil
}
