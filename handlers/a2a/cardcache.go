package a2a

import (
	"crypto/sha256"
	"encoding/json"
	"sync"

	"agentsite/internal/a2a"
)

// cardCache keeps signed cards by their content: signing costs far more than the rest of an answer,
// and each signature differs, so that caches would see another card each time.
type cardCache struct {
	mu    sync.Mutex // guards the rest
	cards map[[sha256.Size]byte][]byte
	size  int
}

// maxCards bounds the cached bytes; above it the cache is emptied.
const maxCards = 16 << 20

// signCached returns the signed card in the form that is served.
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
	if first := c.cards[key]; first != nil { // of two requests at once the first is kept
		return first, nil
	}
	if c.size += len(b); c.cards == nil || c.size > maxCards {
		c.cards, c.size = make(map[[sha256.Size]byte][]byte), len(b)
	}
	c.cards[key] = b
	return b, nil
}
