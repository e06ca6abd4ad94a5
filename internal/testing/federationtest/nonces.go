package federationtest

import (
	"context"
	"maps"
	"sync"
	"time"
)

// Nonces is a federation.Nonces that is kept in memory. The zero value is ready. It is safe for
// concurrent use.
type Nonces struct {
	mu      sync.Mutex // guards the fields below
	list    map[[16]byte]time.Time
	running bool
}

// KeepNonces implements federation.Nonces.
func (n *Nonces) KeepNonces(_ context.Context, list map[[16]byte]time.Time) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.list == nil {
		n.list = make(map[[16]byte]time.Time)
	}
	maps.Copy(n.list, list)
	return nil
}

// LoadNonces implements federation.Nonces.
func (n *Nonces) LoadNonces(_ context.Context, yield func(nonce [16]byte, until time.Time)) (clean bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for nonce, until := range n.list {
		yield(nonce, until)
	}
	clean, n.running = !n.running, true
	return clean, nil
}

// EndNonces implements federation.Nonces.
func (n *Nonces) EndNonces(context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.running = false
	return nil
}
