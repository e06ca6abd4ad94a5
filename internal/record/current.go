package record

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
)

// maxCurrent is how many cards a Gate caches, about 2 KB each.
const maxCurrent = 16 << 10

// current caches the cards that were read from the Memory, each with its ring: as long as the
// Memory returns the same ring for a portal, the cached card is current. It is safe for concurrent
// use.
type current struct {
	mu sync.Mutex // guards the fields below
	of map[PortalID]carded
	by map[Hash]PortalID // portals of the cached cards, by the hash of the wire form
}

type carded struct {
	ring *Ring
	card *Record
	id   Hash
}

func (c *current) getCard(portal PortalID) carded {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[portal]
}

// getByWire returns the cached card with that wire form; false if it is not cached.
func (c *current) getByWire(wire []byte) (carded, bool) {
	id := Hash(sha256.Sum256(wire))
	c.mu.Lock()
	defer c.mu.Unlock()
	portal, ok := c.by[id]
	return c.of[portal], ok
}

func (c *current) putCard(ring *Ring, r *Record) {
	// The cached copy drops the wire form, which is half of the size and is not needed again.
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

// Current returns the card of a portal, nil without one, and the standing of the portal. The card
// is shared and must not be changed. Errors are those of the memory.
func (g *Gate) Current(ctx context.Context, portal PortalID) (*Card, Standing, error) {
	s, err := g.mem.Standing(ctx, portal)
	if err != nil || s.Ring == nil {
		return nil, s, err
	}
	if c := g.current.getCard(portal); c.ring == s.Ring {
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
	g.current.putCard(s.Ring, r)
	return card, s, nil
}

// checkCard checks the card that came with a record. older is true if a newer card is stored; the claim
// then still has the card that came.
func (g *Gate) checkCard(ctx context.Context, wire []byte, now int64) (c claim, older bool, err error) {
	// The same portals publish often, so their cards are usually cached.
	if have, ok := g.current.getByWire(wire); ok {
		c = claim{Record: have.card, known: true}
		if c.standing, err = g.mem.Standing(ctx, c.Portal); err != nil {
			return c, false, err
		}
		if c.standing.Ring == have.ring {
			return c, false, c.checkTimes(now)
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
	switch err := g.lookUp(ctx, &c, now); {
	case ReasonOf(err) == Stale:
		// An outdated card is no refusal: the stored card may list the record's key as well.
		return c, true, nil
	case err != nil:
		return c, false, err
	case c.known:
		_, _, err := g.Current(ctx, c.Portal) // puts the card into the cache
		return c, false, err
	}
	if err := g.verifyClaim(&c, now); err != nil {
		return c, false, err
	}
	if c.isConflict() {
		return c, false, refuse(Equivocation, "%s signed two cards of version %d.%d", c.Portal, c.Epoch, c.Seq)
	}
	return c, false, nil
}
