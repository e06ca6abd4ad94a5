package limit

import (
	"sync"
	"time"
)

// Daily counts the uses that were admitted today for each key. It bounds keys whose uses are also stored: several
// uses at once are admitted before the first of them is stored, and some never are. The zero value has counted
// nothing. It is safe for concurrent use.
type Daily struct {
	mu  sync.Mutex // guards the rest
	day time.Time
	n   map[string]int // by key
}

// maxDaily bounds the keys that are counted.
const maxDaily = 100_000

// Count counts one more use of a key, of which stored are in the store, and reports whether that is not more than
// most. A use over the bound is not counted.
func (c *Daily) Count(key string, day time.Time, stored, most int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil || !c.day.Equal(day) || len(c.n) >= maxDaily {
		c.day, c.n = day, make(map[string]int)
	}
	n := max(c.n[key], stored)
	if n >= most {
		return false
	}
	c.n[key] = n + 1
	return true
}
