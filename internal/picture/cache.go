package picture

import (
	"container/list"
	"sync"
)

// Cache holds the last pictures that were drawn, by the hash of the file;
// nil for one that cannot be drawn. It is safe for concurrent use.
type Cache struct {
	most int // bytes

	mu    sync.Mutex // guards the rest
	bytes int
	order *list.List // of *drawn, the last used first
	byKey map[string]*list.Element
}

type drawn struct {
	hash string
	png  []byte
}

// weight is the size that an entry counts besides its picture.
const weight = 256

// NewCache returns a cache of at most so many bytes.
func NewCache(most int) *Cache {
	return &Cache{most: most, order: list.New(), byKey: make(map[string]*list.Element)}
}

// Get returns the picture of a file, and whether it is known.
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

// Put keeps the picture of a file.
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
