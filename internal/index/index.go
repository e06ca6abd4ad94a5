// Package index finds agents by words and counts them by facet, in memory,
// behind the port hub.Index. It knows which parts of an agent matter how
// much and which of them may be listed; how words are found and ranked is
// the business of its subpackage bm25, and neither knows the database: the
// index is filled with Put at start and kept current by whoever saves.
//
//	x := index.New()
//	x.Put(agent)
//	page, err := x.Search(hub.Query{Text: "translat", Kinds: []string{"a2a"}, Limit: 20})
//
// One lock guards everything. Splitting texts into words, which is most of
// the work of Put, happens outside of it, and a Put that changes no text (a
// probe's verdict) touches only the facets, so searches hardly notice writes.
package index

import (
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/internal/hub"
	"agentsite/internal/index/bm25"
)

// Index implements hub.Index. Make one with New.
type Index struct {
	mu      sync.RWMutex // guards everything below
	words   *bm25.Index
	entries []entry // by document id
	byID    map[string]uint32
	free    []uint32
	facets  [facetCount]facet
	alive   bm25.Bits
	state   atomic.Uint64 // counts changes that a search may show

	scratch sync.Pool // of *scratch
}

var _ hub.Index = (*Index)(nil)

// entry is one indexed agent with its values of all facets, one after the
// other; ends tells where those of each facet end.
type entry struct {
	agent  *hub.Agent
	values []uint32
	ends   [facetCount]uint16
}

// of returns the entry's values of one facet.
func (e *entry) of(f int) []uint32 {
	from := uint16(0)
	if f > 0 {
		from = e.ends[f-1]
	}
	return e.values[from:e.ends[f]]
}

// New returns an empty index.
func New() *Index {
	x := &Index{words: bm25.New(fields...), byID: make(map[string]uint32)}
	for f := range x.facets {
		x.facets[f] = newFacet(f)
	}
	return x
}

// Len implements hub.Index.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.byID)
}

// State implements hub.Index.
func (x *Index) State() uint64 { return x.state.Load() }

// Put implements hub.Index. An agent that may not be listed is removed. The
// index keeps the slices of a; the caller must not change them afterwards.
func (x *Index) Put(a hub.Agent) {
	if !listable(&a) {
		x.Remove(a.ID)
		return
	}
	next := &a
	values := facetValues(next)
	var doc bm25.Doc
	analyzed := false
	if !x.holdsText(next) {
		doc, analyzed = x.words.Analyze(texts(next)...), true
	}

	x.mu.Lock()
	defer x.mu.Unlock()
	id, known := x.byID[next.ID]
	if !known {
		id = x.newID()
		x.byID[next.ID] = id
	}
	e := &x.entries[id]
	if !known || !sameText(e.agent, next) {
		if !analyzed { // somebody else's Put came between
			doc = x.words.Analyze(texts(next)...)
		}
		x.words.Put(int(id), key(next), doc)
	}
	if !known || !sameLook(e.agent, next) {
		x.state.Add(1)
	}
	x.setFacets(id, e, values)
	e.agent = next
	if next.Liveness.State == hub.Alive {
		x.alive.Add(int(id))
	} else {
		x.alive.Drop(int(id))
	}
}

// Remove implements hub.Index.
func (x *Index) Remove(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	doc, known := x.byID[id]
	if !known {
		return
	}
	delete(x.byID, id)
	x.words.Remove(int(doc))
	x.setFacets(doc, &x.entries[doc], [facetCount][]string{})
	x.entries[doc] = entry{}
	x.alive.Drop(int(doc))
	x.free = append(x.free, doc)
	x.state.Add(1)
}

func listable(a *hub.Agent) bool {
	return a.Visibility == hub.Public && a.Status.State != hub.Withdrawn
}

// sameLook reports whether two forms of an agent are shown alike.
func sameLook(a, b *hub.Agent) bool {
	x, y := *a, *b
	for _, l := range []*hub.Liveness{&x.Liveness, &y.Liveness} {
		l.CheckedAt, l.Latency = time.Time{}, 0
	}
	return reflect.DeepEqual(x, y)
}

// holdsText reports whether the index already holds the texts of a.
func (x *Index) holdsText(a *hub.Agent) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	id, known := x.byID[a.ID]
	return known && sameText(x.entries[id].agent, a)
}

// newID returns an unused document id; the caller must hold mu.
func (x *Index) newID() uint32 {
	if n := len(x.free); n > 0 {
		id := x.free[n-1]
		x.free = x.free[:n-1]
		return id
	}
	x.entries = append(x.entries, entry{})
	return uint32(len(x.entries) - 1)
}

// setFacets replaces the entry's values; the caller must hold mu.
func (x *Index) setFacets(id uint32, e *entry, values [facetCount][]string) {
	n := 0
	for _, v := range values {
		n += len(v)
	}
	next := entry{values: make([]uint32, 0, n)}
	for f := range x.facets {
		for _, v := range values[f] {
			next.values = append(next.values, x.facets[f].intern(v))
		}
		next.ends[f] = uint16(len(next.values))
	}
	for f := range x.facets {
		old, new := e.of(f), next.of(f)
		for _, v := range new {
			x.facets[f].add(v, id, len(x.entries))
		}
		for _, v := range old {
			if !slices.Contains(new, v) {
				x.facets[f].remove(v, id, len(x.entries))
			}
		}
	}
	e.values, e.ends = next.values, next.ends
}
