package index

import (
	"encoding/binary"
	"fmt"
	"sync"

	"agentsite/internal/hub"
)

// counted caches the facets of recent queries until the index changes (Index.State), because many people
// make the same query, most often the empty one. The zero value is an empty cache.
type counted struct {
	mu    sync.Mutex // guards the following fields
	state uint64     // Index.State for which lists is valid
	lists map[string]facetLists
}

// facetLists holds the values of all facets in one slice; facet f ends at ends[f].
type facetLists struct {
	values []hub.FacetCount
	ends   [facetCount]int
}

// Bounds of the cache: 256 queries of at most 512 facet values, about 3 MB.
const (
	maxCounted      = 256
	maxCountedKey   = 512
	maxCountedLists = 512 // values of all facets of one query
)

// countedKey returns the cache key of a query's facets, without the state of the index; it is empty
// when the key would be too long. model is the Model.ID of the vectors that are compared.
func countedKey(q *hub.Query, plan []byte, model uint32) string {
	asked := filtersOf(q)
	size := len(q.Text) + len(modeKey(q)) + len(plan)
	for _, values := range asked {
		for _, v := range values {
			size += 1 + len(v)
		}
	}
	if size > maxCountedKey {
		return ""
	}
	key := make([]byte, 0, size+96)
	add := func(s string) { key = append(binary.AppendUvarint(key, uint64(len(s))), s...) }
	key = binary.BigEndian.AppendUint32(key, model)
	add(q.Text)
	add(modeKey(q))
	add(string(plan))
	if q.CountMatches || !q.CreatedAfter.IsZero() || !q.UpdatedAfter.IsZero() {
		add(fmt.Sprint(q.CountMatches, timeNumber(q.CreatedAfter), timeNumber(q.UpdatedAfter)))
	} else {
		add("")
	}
	for _, values := range asked {
		key = binary.AppendUvarint(key, uint64(len(values)))
		for _, v := range values {
			add(v)
		}
	}
	return string(key)
}

// modeKey returns a text for the mode of a query, "" for the usual one.
func modeKey(q *hub.Query) string {
	switch {
	case q.Mode == hub.ModeWords || q.Mode == hub.ModeMeaning:
		return q.Mode
	case q.Unfit:
		return "unfit"
	}
	return ""
}

// getFacets returns the cached facets of key, or false if there are none for this state of the index.
// The result is a copy that the caller may change.
func (c *counted) getFacets(key string, state uint64) (*facetCounts, bool) {
	c.mu.Lock()
	if c.state != state {
		c.mu.Unlock()
		return nil, false
	}
	l, ok := c.lists[key]
	c.mu.Unlock()
	if !ok {
		return nil, false
	}
	var out facetCounts
	values := append([]hub.FacetCount{}, l.values...)
	from := 0
	for f, end := range l.ends {
		out[f] = values[from:end:end]
		from = end
	}
	return &out, true
}

// putFacets caches a copy of facets under key. It does nothing if key is empty, if there are more than
// maxCountedLists values, or if the cache holds facets of a newer state. A full cache is emptied first.
func (c *counted) putFacets(key string, state uint64, facets *facetCounts) {
	n := 0
	for _, list := range facets {
		n += len(list)
	}
	if key == "" || n > maxCountedLists {
		return
	}
	l := facetLists{values: make([]hub.FacetCount, 0, n)}
	for f, list := range facets {
		l.values = append(l.values, list...)
		l.ends[f] = len(l.values)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if state < c.state {
		return
	}
	if state > c.state || c.lists == nil || len(c.lists) == maxCounted {
		c.state, c.lists = state, make(map[string]facetLists)
	}
	c.lists[key] = l
}
