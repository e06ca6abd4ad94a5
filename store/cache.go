package store

import (
	"cmp"
	"sync"
)

// maxCached bounds the rows of a cache. A full cache is emptied, because
// rows are read again at little cost.
const maxCached = 8192

// cache keeps rows that many requests read and that seldom change. A cached
// row is never older than the last committed write, because there is one
// writer: a write names the caches that it makes untrue by invalidate,
// invalidateKey or change, and these take effect after its commit and before
// its caller is answered. A revoked token or a removed member is gone when the
// call that did it returns.
type cache[V any] struct {
	max int // rows; 0 is maxCached

	mu         sync.RWMutex // guards the fields up to rows
	generation uint64       // grows with each invalidation
	held       bool         // a transaction changes rows: put keeps nothing until it has ended
	rows       map[string]V

	// The rest belongs to the writer: what the open transaction does to the
	// cache when it has ended.
	empty   bool
	keys    []string
	changes []cacheChange[V]
}

// cacheChange is what a transaction makes of one row, if it is cached.
type cacheChange[V any] struct {
	key string
	fn  func(V) V
}

// newCache returns a cache of at most max rows; 0 is 8192.
func newCache[V any](max int) *cache[V] { return &cache[V]{max: max} }

// get returns a cached row, or else the generation that put takes.
func (c *cache[V]) get(key string) (v V, generation uint64, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	v, ok = c.rows[key]
	return v, c.generation, ok
}

// put caches a row that was read after get returned the generation. A row that
// may have been read before an invalidation is not kept.
func (c *cache[V]) put(key string, v V, generation uint64) {
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

// invalidate drops all rows when the transaction has ended.
func (c *cache[V]) invalidate(t *tx) {
	c.empty = true
	t.atEnd(c)
}

// invalidateKey drops one row when the transaction has ended.
func (c *cache[V]) invalidateKey(t *tx, key string) {
	c.keys = append(c.keys, key)
	t.atEnd(c)
}

// invalidated reports whether the open transaction invalidates the whole
// cache. A write that reads after its own change must not trust the cache.
func (c *cache[V]) invalidated() bool { return c.empty }

// change replaces a cached row by fn of it when the transaction has committed.
// Until then nothing is put, because a reader cannot tell whether the row it
// read is from before the commit or from after it.
func (c *cache[V]) change(t *tx, key string, fn func(V) V) {
	if len(c.changes) == 0 {
		c.hold()
	}
	c.changes = append(c.changes, cacheChange[V]{key, fn})
	t.atEnd(c)
}

func (c *cache[V]) hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
	c.held = true
}

// ended applies what the transaction named. A transaction that did not commit
// drops the rows all the same: after a failed commit it is not known what is
// on disk.
func (c *cache[V]) ended(committed bool) {
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

// set replaces rows that are cached already, by what was just committed.
func (c *cache[V]) set(fn func(rows map[string]V)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
	fn(c.rows)
}

// signal wakes one reader after a commit. It has room for one wake-up, which
// may stand for many.
type signal struct{ c chan struct{} }

func newSignal() *signal { return &signal{make(chan struct{}, 1)} }

// wake is read by the one reader.
func (s *signal) wake() <-chan struct{} { return s.c }

// raise wakes the reader when the transaction has committed.
func (s *signal) raise(t *tx) { t.atEnd(s) }

func (s *signal) ended(committed bool) {
	if !committed {
		return
	}
	select {
	case s.c <- struct{}{}:
	default:
	}
}
