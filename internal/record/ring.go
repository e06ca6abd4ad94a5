package record

import "crypto/ed25519"

// Ring holds the operational keys of a portal's current card. It is immutable.
type Ring struct {
	portal  PortalID
	keys    []Key
	expires int64
}

// Ring returns the keys of the card, which the caller has admitted.
func (c *Card) Ring() *Ring { return &Ring{c.Portal, c.Keys, c.Expires} }

// Has reports whether the card lists a key. Records signed by other keys are invalid.
func (g *Ring) Has(id KeyID) bool {
	_, ok := g.findKey(id)
	return ok
}

func (g *Ring) findKey(id KeyID) (Key, bool) {
	for _, k := range g.keys { // a linear search: at most MaxKeys keys
		if k.ID == id {
			return k, true
		}
	}
	return Key{}, false
}

// Key returns the key that must have signed r. The whole life of r must lie within the key's own,
// so that a stolen key cannot sign valid records after its end, even with false dates. Attestations
// and fork proofs live longer than any key may; they must be issued within the key's life, and end
// when a card drops the key. now is in milliseconds.
func (g *Ring) Key(r *Record, now int64) (Public, error) {
	if g == nil {
		return Public{}, refuse(NoPortal, "no card of its portal is known; fetch it first")
	}
	if g.expires <= now {
		return Public{}, refuse(NoPortal, "the card of %s has expired; fetch a newer one", g.portal)
	}
	k, ok := g.findKey(r.Key)
	if !ok {
		return Public{}, refuse(NoKey, "the card of %s does not list the key; fetch a newer one", g.portal)
	}
	last := r.Expires
	if r.maxLife() > maxKeyLife {
		last = r.Issued
	}
	if r.Issued < k.From || last > k.Until {
		return Public{}, refuse(KeyTime, "it lives when its key does not")
	}
	return k.Pub, nil
}

// isSound reports whether a key is safe to use. Unsafe are the keys of small order, for which a
// signature of one text is valid for others, and encodings with y at or above the field's prime.
func isSound(pub Public) bool {
	y := pub
	y[31] &= 0x7f // the highest bit is the sign of x
	for _, bad := range smallOrder {
		if y == bad {
			return false
		}
	}
	if y[31] != 0x7f || y[0] < 0xed {
		return true
	}
	for _, b := range y[1:31] {
		if b != 0xff {
			return true
		}
	}
	return false // y is at or above the prime 2^255 - 19
}

// smallOrder are the y coordinates of the points of order 1, 2, 4 and 8, little-endian.
var smallOrder = [...]Public{
	{1},
	{0xec, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
	{},
	{0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0,
		0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05},
	{0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f,
		0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a},
}

// PublicOf returns the public half of a private key.
func PublicOf(key ed25519.PrivateKey) Public { return Public(key.Public().(ed25519.PublicKey)) }

// IDs returns the ids of the keys, sorted as in the card.
func (g *Ring) IDs() []KeyID {
	ids := make([]KeyID, len(g.keys))
	for i, k := range g.keys {
		ids[i] = k.ID
	}
	return ids
}
