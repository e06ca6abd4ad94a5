package limit

import (
	"sync"
	"time"
)

// Daily counts today's admitted uses per key, in memory, for limits with an exact count in a
// database. The database count is behind: concurrent uses are admitted before the first of them is
// stored, and some are never stored. The zero value is ready for use. It is safe for concurrent
// use.
type Daily struct {
	mu  sync.Mutex // guards the fields below
	day time.Time
	n   map[string]int // admitted uses of day, by key
}

// maxDaily bounds the keys in memory. When it is reached all counts start again, so that a flood of
// keys costs no memory.
const maxDaily = 100_000

// Count admits and counts one more use of a key if its count on the given day is below most, and
// reports whether it did. stored is the count of that day in the database; the larger of the two
// counts is used. A new day resets all counts.
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
