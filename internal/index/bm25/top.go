package bm25

import (
	"slices"
	"strings"
)

// Hit is one found document.
type Hit struct {
	ID      int
	Score   float64
	Matched []string // names of the fields in which words were found
}

// After is a place in the order of hits: behind the document of that score
// and key.
type After struct {
	Score float64
	Key   string
}

type ranked struct {
	score float32
	doc   uint32
}

// Query returns the best limit documents for a text, by descending score and
// then by key.
func (x *Index) Query(text string, limit int) []Hit {
	m := x.Match(text)
	defer m.Close()
	return m.Top(limit, nil)
}

// Top returns the first limit documents of m.Bits by descending score and
// then by key, from behind after unless that is nil.
func (m *Match) Top(limit int, after *After) []Hit {
	if limit <= 0 {
		return nil
	}
	t := m.newTop(limit, after)
	switch {
	case m.Any:
		return m.first(limit, after)
	case m.single != nil:
		worth := m.worth / fullImpact
		for part := range m.single.parts() {
			for _, p := range m.single.part(part) {
				if m.Bits[p.doc>>6]&(1<<(p.doc&63)) != 0 {
					t.offer(worth*float32(p.impact), p.doc)
				}
			}
		}
	case m.total > 0:
		acc := m.s.acc
		m.Bits.Each(func(id int) bool {
			t.offer(m.score(&acc[id]), uint32(id))
			return true
		})
	}
	slices.SortFunc(t.heap, func(a, b ranked) int {
		if t.before(a, b) {
			return -1
		}
		return 1
	})
	hits := make([]Hit, len(t.heap))
	for i, r := range t.heap {
		hits[i] = Hit{ID: int(r.doc), Score: float64(r.score), Matched: m.x.names(m.fields(r.doc))}
	}
	m.s.heap = t.heap
	return hits
}

// first is Top without words: all scores are 0.
func (m *Match) first(limit int, after *After) []Hit {
	key := ""
	if after != nil {
		key = after.Key
	}
	var hits []Hit
	m.x.Ascend(key, func(id int) bool {
		if m.Bits.Has(id) && (after == nil || m.x.docs[id].key > key) {
			hits = append(hits, Hit{ID: id})
		}
		return len(hits) < limit
	})
	return hits
}

// Ascend calls yield with the documents in the order of their keys, from the
// first that is not less than key, until it returns false.
func (x *Index) Ascend(key string, yield func(id int) bool) {
	x.order.from(key, func(id uint32) bool { return yield(int(id)) })
}

// Key returns the key a document was put with.
func (x *Index) Key(id int) string { return x.docs[id].key }

func (m *Match) fields(doc uint32) uint16 {
	if m.single != nil {
		p, _ := m.single.get(doc)
		return p.fields
	}
	return uint16(m.s.acc[doc].stamp & 0xff)
}

// top keeps the best limit documents in a heap with the worst at its root.
type top struct {
	x     *Index
	heap  []ranked
	limit int
	after *After
	chunk int // of after.Key, which rules out most ties without reading keys
}

func (m *Match) newTop(limit int, after *After) *top {
	t := &top{x: m.x, heap: m.s.heap[:0], limit: limit, after: after}
	if after != nil {
		t.chunk, _ = m.x.order.find(after.Key)
	}
	return t
}

// before is the order of hits.
func (t *top) before(a, b ranked) bool {
	if a.score != b.score {
		return a.score > b.score
	}
	return t.x.order.less(a.doc, b.doc)
}

func (t *top) offer(score float32, doc uint32) {
	full := len(t.heap) == t.limit
	if full && score < t.heap[0].score {
		return
	}
	if t.after != nil && !t.behind(score, doc) {
		return
	}
	r := ranked{score, doc}
	if !full {
		t.heap = append(t.heap, r)
		for i := len(t.heap) - 1; i > 0; {
			up := (i - 1) / 2
			if !t.before(t.heap[up], t.heap[i]) {
				break
			}
			t.heap[up], t.heap[i] = t.heap[i], t.heap[up]
			i = up
		}
		return
	}
	if !t.before(r, t.heap[0]) {
		return
	}
	t.heap[0] = r
	for i := 0; ; {
		worst := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(t.heap); c++ {
			if t.before(t.heap[worst], t.heap[c]) {
				worst = c
			}
		}
		if worst == i {
			return
		}
		t.heap[i], t.heap[worst] = t.heap[worst], t.heap[i]
		i = worst
	}
}

// behind reports whether a document comes after the place t.after.
func (t *top) behind(score float32, doc uint32) bool {
	switch s := float64(score); {
	case s != t.after.Score:
		return s < t.after.Score
	}
	if ord := t.x.order.where[doc].ord; ord != t.chunk {
		return ord > t.chunk
	}
	return strings.Compare(t.x.docs[doc].key, t.after.Key) > 0
}
