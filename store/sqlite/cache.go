package sqlite

import (
	"cmp"
	"sync"
)

// maxCached bounds the rows of a cache. A full cache is emptied, because
// rows are read again at little cost.
const maxCached = 8192

// Cache keeps rows that many requests read and that seldom change. A cached
// row is never older than the last committed write, because there is one
// writer: a write names the caches that it makes untrue by invalidate,
// invalidateKey or change, and these take effect after its commit and before
// its caller is answered. A revoked token or a removed member is gone when the
// call that did it returns.
type Cache[V any] struct {
	max int // rows; 0 is maxCached

	mu         sync.RWMutex // guards the fields up to rows
	generation uint64       // grows with each invalidation
	held       bool         // a transaction changes rows: put keeps nothing until it has ended
	rows       map[string]V

	// The other fields belong to the writer: the changes that the open transaction makes to the cache at
	// its end.
	empty   bool
	keys    []string
	changes []cacheChange[V]
}

// cacheChange is the change of one row, if it is cached, by a transaction.
type cacheChange[V any] struct {
	key string
	fn  func(V) V
}

// NewCache returns a cache of at most max rows; 0 is 8192.
func NewCache[V any](max int) *Cache[V] { return &Cache[V]{max: max} }

// Get returns a cached row, or else the generation that put takes.
func (c *Cache[V]) Get(key string) (v V, generation uint64, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	v, ok = c.rows[key]
	return v, c.generation, ok
}

// Put caches a row that was read after get returned the generation. A row that
// may have been read before an invalidation is not kept.
func (c *Cache[V]) Put(key string, v V, generation uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.generation != generation || c.held {
		return
	}
	if c.rows == nil || len(c.rows) >= cmp.Or(c.max, maxCached) {
		c.rows = make(map[string]V)
	}
	c.rows[key] = v
}

// Invalidate drops all rows when the transaction has ended.
func (c *Cache[V]) Invalidate(t *Tx) {
	c.empty = true
	t.AtEnd(c)
}

// InvalidateKey drops one row when the transaction has ended.
func (c *Cache[V]) InvalidateKey(t *Tx, key string) {
	c.keys = append(c.keys, key)
	t.AtEnd(c)
}

// Invalidated reports whether the open transaction invalidates the whole
// cache. A write that reads after its own change must not trust the cache.
func (c *Cache[V]) Invalidated() bool { return c.empty }

// Change replaces a cached row by fn of it when the transaction has committed. Until then no row is
// put, because a reader cannot know whether the row it read is from before or after the commit.
func (c *Cache[V]) Change(t *Tx, key string, fn func(V) V) {
	if len(c.changes) == 0 {
		c.holdRow()
	}
	c.changes = append(c.changes, cacheChange[V]{key, fn})
	t.AtEnd(c)
}

func (c *Cache[V]) holdRow() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
	c.held = true
}

// Ended applies the changes that the transaction named. A transaction that did not commit drops the
// rows all the same: after a failed commit the state on disk is unknown.
func (c *Cache[V]) Ended(committed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
	c.held = false
	for _, key := range c.keys {
		delete(c.rows, key)
	}
	for _, x := range c.changes {
		if v, ok := c.rows[x.key]; ok {
			c.rows[x.key] = x.fn(v)
		}
	}
	if c.empty || !committed && len(c.changes) > 0 {
		c.rows = nil
	}
	c.empty, c.keys, c.changes = false, nil, nil
}

// Set replaces cached rows after a commit.
func (c *Cache[V]) Set(fn func(rows map[string]V)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
	fn(c.rows)
}

// Signal wakes one reader after a commit. It has room for one wake-up, which
// may stand for many.
type Signal struct{ c chan struct{} }

func NewSignal() *Signal { return &Signal{make(chan struct{}, 1)} }

// Wake is read by the one reader.
func (s *Signal) Wake() <-chan struct{} { return s.c }

// Raise wakes the reader when the transaction has committed.
func (s *Signal) Raise(t *Tx) { t.AtEnd(s) }

func (s *Signal) Ended(committed bool) {
	if !committed {
		return
	}
	select {
	case s.c <- struct{}{}:
	default:
	}
}
