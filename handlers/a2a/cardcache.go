package a2a

import (
	"crypto/sha256"
	"encoding/json"
	"sync"

	"agentsite/internal/a2a"
)

// cardCache keeps signed cards by what they say: signing costs far more than
// the rest of an answer, and a signature is another each time, which caches
// would take for another card.
type cardCache struct {
	mu    sync.Mutex // guards the rest
	cards map[[sha256.Size]byte][]byte
	size  int
}

// maxCards bounds the bytes that are kept; with more, all are forgotten.
const maxCards = 16 << 20

// signed is the card in the form that is served, signed.
func (c *cardCache) signed(signer *a2a.Signer, card a2a.AgentCard) ([]byte, error) {
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
	if first := c.cards[key]; first != nil { // two asked at once: one is kept
		return first, nil
	}
	if c.size += len(b); c.cards == nil || c.size > maxCards {
		c.cards, c.size = make(map[[sha256.Size]byte][]byte), len(b)
	}
	c.cards[key] = b
	return b, nil
}
