package a2a

import (
	"crypto/sha256"
	"encoding/json"
	"sync"

	"agentsite/internal/a2a"
)

// cardCache keeps signed cards, with the hash of the unsigned card as the key. Signing costs far more
// than the rest of an answer, and each signature differs, so an uncached card would get a new entity tag
// at each request.
type cardCache struct {
	mu    sync.Mutex // guards the fields below
	cards map[[sha256.Size]byte][]byte
	size  int
}

// maxCards bounds the cached bytes; above it the cache is emptied.
const maxCards = 16 << 20

// signCached returns the signed card as indented JSON. The caller must not change the bytes, because they
// are shared.
func (c *cardCache) signCached(signer *a2a.Signer, card a2a.AgentCard) ([]byte, error) {
	plain, err := json.Marshal(card)
	if err != nil {
		return nil, err
	}
	key := sha256.Sum256(plain)
	c.mu.Lock()
	b := c.cards[key]
	c.mu.Unlock()
	if b != nil {
		return b, nil
	}
	if card, err = signer.Sign(card); err != nil {
		return nil, err
	}
	if b, err = json.MarshalIndent(card, "", "  "); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if first := c.cards[key]; first != nil { // two requests signed the same card; both get the first one
		return first, nil
	}
	if c.size += len(b); c.cards == nil || c.size > maxCards {
		c.cards, c.size = make(map[[sha256.Size]byte][]byte), len(b)
	}
	c.cards[key] = b
	return b, nil
}
