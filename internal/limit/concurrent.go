package limit

import "sync"

// Concurrent counts how many of one thing each key does at the same time. Create it with NewConcurrent.
// It is safe for concurrent use.
type Concurrent struct {
	most int

	mu sync.Mutex // guards n
	n  map[string]int
}

// NewConcurrent returns counts that allow most at the same time per key.
func NewConcurrent(most int) *Concurrent { return &Concurrent{most: most, n: make(map[string]int)} }

// Begin counts one more for a key, unless it has the most already. After true the caller must call End.
func (c *Concurrent) Begin(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n[key] >= c.most {
		return false
	}
	c.n[key]++
	return true
}

// End counts one less for a key.
func (c *Concurrent) End(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n[key]--; c.n[key] <= 0 {
		delete(c.n, key)
	}
}
