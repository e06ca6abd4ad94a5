package markup

import (
	"container/list"
	"sync"
)

// Cache keeps rendered HTML by key within a number of bytes; the least recently used entry is removed
// first. It is safe for concurrent use.
type Cache[K comparable] struct {
	max int

	mu    sync.Mutex // guards the fields below
	size  int
	order *list.List // elements are *cached[K], the most recently used in front
	byKey map[K]*list.Element
}

type cached[K comparable] struct {
	key  K
	html string
}

// entryBytes is the approximate memory in bytes of an entry without its HTML, so that many small entries
// count too.
const entryBytes = 200

// NewCache returns an empty cache for about maxBytes of HTML and keys.
func NewCache[K comparable](maxBytes int) *Cache[K] {
	return &Cache[K]{max: maxBytes, order: list.New(), byKey: make(map[K]*list.Element)}
}

// Get returns the HTML of a key and makes the entry the most recently used one; false without an entry.
func (c *Cache[K]) Get(key K) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byKey[key]
	if !ok {
		return "", false
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached[K]).html, true
}

// Put stores html under key. It stores nothing if html alone would take a large part of the cache.
func (c *Cache[K]) Put(key K, html string) {
	if len(html)+entryBytes > c.max/8 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byKey[key]; ok {
		v := e.Value.(*cached[K])
		c.size += len(html) - len(v.html)
		v.html = html
		c.order.MoveToFront(e)
	} else {
		c.byKey[key] = c.order.PushFront(&cached[K]{key, html})
		c.size += len(html) + entryBytes
	}
	for c.size > c.max {
		e := c.order.Back()
		v := e.Value.(*cached[K])
		c.order.Remove(e)
		delete(c.byKey, v.key)
		c.size -= len(v.html) + entryBytes
	}
}
