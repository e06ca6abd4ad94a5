package engine

import (
	"cmp"
	"sync"
)

// maxCached is the default number of rows in a cache. A full cache is emptied, because reading rows
// again costs little.
const maxCached = 8192

// Cache holds rows that many requests read and that seldom change. A cached row is never older than the
// last committed write: there is one writer, and each write names the rows that it changes by
// Invalidate, InvalidateKey or Change. These take effect after its commit and before its caller is
// answered, so that a revoked token or a removed member is gone when the call that did it returns.
type Cache[V any] struct {
	max int // maximum of rows; 0 means maxCached

	mu         sync.RWMutex // guards the fields to rows
	generation uint64       // grows with each invalidation
	held       bool         // a transaction changes rows, so Put keeps nothing until it ends
	rows       map[string]V

	// The fields below belong to the writer: the changes that the cache gets when the open transaction
	// ends.
	empty   bool
	keys    []string
	changes []cacheChange[V]
}

// cacheChange is a change of one row by the open transaction. It applies only if the row is cached then.
type cacheChange[V any] struct {
	key string
	fn  func(V) V
}

// NewCache returns a cache of at most max rows; 0 means maxCached.
func NewCache[V any](max int) *Cache[V] { return &Cache[V]{max: max} }

// Get returns a cached row. If ok is false, read the row and pass generation to Put.
func (c *Cache[V]) Get(key string) (v V, generation uint64, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	v, ok = c.rows[key]
	return v, c.generation, ok
}

// Put caches a row that was read after Get returned generation. It does nothing if rows were invalidated
// since, because the row may be older.
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

// Invalidate drops all rows when the transaction ends, whether it commits or not.
func (c *Cache[V]) Invalidate(t Tx) {
	c.empty = true
	t.AtEnd(c)
}

// InvalidateKey drops one row when the transaction ends, whether it commits or not.
func (c *Cache[V]) InvalidateKey(t Tx, key string) {
	c.keys = append(c.keys, key)
	t.AtEnd(c)
}

// Invalidated reports whether the open transaction invalidates the whole cache. A write that reads after
// its own change must not use the cache then. Only the writer may call it.
func (c *Cache[V]) Invalidated() bool { return c.empty }

// Change replaces a cached row by fn of it when the transaction commits. Until then Put keeps nothing,
// because a reader cannot know whether its row is from before or after the commit.
func (c *Cache[V]) Change(t Tx, key string, fn func(V) V) {
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

// Ended implements Ender. It applies the changes that the transaction named. A transaction that did not
// commit drops the rows as well, because after a failed commit the state on disk is unknown.
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

// Set calls fn with the cached rows to change them. Call it after a commit, with the cache locked for
// the time of fn.
func (c *Cache[V]) Set(fn func(rows map[string]V)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
	fn(c.rows)
}

// Signal wakes one reader after a commit. It holds at most one wake-up, which may stand for many
// commits.
type Signal struct{ c chan struct{} }

func NewSignal() *Signal { return &Signal{make(chan struct{}, 1)} }

// Wake returns the channel of wake-ups, for one reader.
func (s *Signal) Wake() <-chan struct{} { return s.c }

// Raise wakes the reader when the transaction has committed; a rollback does not wake it.
func (s *Signal) Raise(t Tx) { t.AtEnd(s) }

func (s *Signal) Ended(committed bool) {
	if !committed {
		return
	}
	select {
	case s.c <- struct{}{}:
	default:
	}
}
