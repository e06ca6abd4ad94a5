package federationtest

import (
	"context"
	"sync"

	"agentsite/internal/record"
)

// Cards is a federation.Cards that is kept in memory. The zero value is ready. It is safe for
// concurrent use.
type Cards struct {
	mu   sync.Mutex // guards list
	list map[string][]kept
}

type kept struct {
	record.Version
	wire []byte
}

// LastCard implements federation.Cards. wire is nil before the first KeepCard.
func (c *Cards) LastCard(_ context.Context, network string) (record.Version, []byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var last kept
	for _, k := range c.list[network] {
		if k.Compare(last.Version) > 0 {
			last = k
		}
	}
	return last.Version, last.wire, nil
}

// KeepCard implements federation.Cards.
func (c *Cards) KeepCard(_ context.Context, network string, v record.Version, wire []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.list == nil {
		c.list = make(map[string][]kept)
	}
	c.list[network] = append(c.list[network], kept{v, wire})
	return nil
}
