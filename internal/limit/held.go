package limit

import (
	"strings"
	"sync"
)

// Held counts things that their owners hold open, such as sockets, per key. Its memory is bounded by the
// largest Most of a key that every call names. The zero value is ready for use. It is safe for
// concurrent use.
type Held struct {
	mu   sync.Mutex // guards open
	open map[string]int
}

// Share is a key under which a thing is counted, and how many may be open under it.
type Share struct {
	Key  string
	Most int
}

// Hold is one counted thing. Its owner calls Release when the thing has ended.
type Hold struct {
	held   *Held
	shares []Share
}

// Take counts one more thing under each share, or under none of them if one is used up. full is the key
// of the first share that is used up, "" if the thing was counted.
func (h *Held) Take(shares ...Share) (hold *Hold, full string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range shares {
		if h.open[s.Key] >= s.Most {
			return nil, s.Key
		}
	}
	if h.open == nil {
		h.open = make(map[string]int)
	}
	for _, s := range shares {
		h.open[s.Key]++
	}
	return &Hold{h, shares}, ""
}

// Release ends the count. Further calls, and one on nil, do nothing.
func (o *Hold) Release() {
	if o == nil {
		return
	}
	o.held.mu.Lock()
	defer o.held.mu.Unlock()
	for _, s := range o.shares {
		if o.held.open[s.Key]--; o.held.open[s.Key] <= 0 {
			delete(o.held.open, s.Key)
		}
	}
	o.shares = nil
}

// Sum returns the number of things that are open under all keys with the prefix.
func (h *Held) Sum(prefix string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, open := range h.open {
		if strings.HasPrefix(key, prefix) {
			n += open
		}
	}
	return n
}

// Open returns the number of things that are open under a key.
func (h *Held) Open(key string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open[key]
}
