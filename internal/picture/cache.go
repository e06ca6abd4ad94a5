package picture

import (
	"container/list"
	"sync"
)

// Cache holds scaled pictures by the hash of the original file, the last used ones. It holds nil
// for a file that cannot be decoded, so that decoding is not tried again. It is safe for concurrent
// use.
type Cache struct {
	most int // bound of bytes

	mu    sync.Mutex // guards the fields below
	bytes int
	order *list.List // values are *drawn, the last used one first
	byKey map[string]*list.Element
}

type drawn struct {
	hash string
	png  []byte
}

// weight is the number of bytes that an entry counts besides its picture, for the structures around
// it.
const weight = 256

// NewCache returns a cache that holds at most so many bytes, or a single larger picture.
func NewCache(most int) *Cache {
	return &Cache{most: most, order: list.New(), byKey: make(map[string]*list.Element)}
}

// Get returns the picture of a file and whether the cache has an entry for it; the picture is nil
// if the file cannot be decoded. The caller must not change the bytes.
func (p *Cache) Get(hash string) ([]byte, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.byKey[hash]
	if e == nil {
		return nil, false
	}
	p.order.MoveToFront(e)
	return e.Value.(*drawn).png, true
}

// Put adds the picture of a file, nil for one that cannot be decoded, and removes the least
// recently used ones if needed. The cache keeps the slice.
func (p *Cache) Put(hash string, png []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byKey[hash] != nil {
		return
	}
	p.byKey[hash] = p.order.PushFront(&drawn{hash, png})
	p.bytes += len(png) + weight
	for p.bytes > p.most && p.order.Len() > 1 {
		last := p.order.Back()
		d := p.order.Remove(last).(*drawn)
		delete(p.byKey, d.hash)
		p.bytes -= len(d.png) + weight
	}
}
