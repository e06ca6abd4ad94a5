package bm25

import "strings"

// top keeps the best limit documents in a heap with the worst at its root.
type top struct {
	x     *Index
	heap  []ranked
	limit int
	after *After
}

// reaches reports whether a document of that score may get on the page.
func (t *top) reaches(score float32) bool {
	return len(t.heap) < t.limit || score >= t.heap[0].score
}

// before is the order of hits.
func (t *top) before(a, b *ranked) bool {
	if a.score != b.score {
		return a.score > b.score
	}
	for _, r := range [2]*ranked{a, b} {
		if r.head == 0 {
			r.head = head(t.x.docs[r.doc].key())
		}
	}
	if a.head != b.head {
		return a.head < b.head
	}
	return t.x.order.less(a.doc, b.doc)
}

func (t *top) offer(score float32, doc uint32, fields uint16) {
	full := len(t.heap) == t.limit
	if full && score < t.heap[0].score {
		return
	}
	if t.after != nil && !t.behind(score, doc) {
		return
	}
	r := ranked{score: score, doc: doc, fields: fields}
	if !full {
		t.heap = append(t.heap, r)
		for i := len(t.heap) - 1; i > 0; {
			up := (i - 1) / 2
			if !t.before(&t.heap[up], &t.heap[i]) {
				break
			}
			t.heap[up], t.heap[i] = t.heap[i], t.heap[up]
			i = up
		}
		return
	}
	if !t.before(&r, &t.heap[0]) {
		return
	}
	t.heap[0] = r
	for i := 0; ; {
		worst := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(t.heap); c++ {
			if t.before(&t.heap[worst], &t.heap[c]) {
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
	if s := float64(score); s != t.after.Score {
		return s < t.after.Score
	}
	return strings.Compare(t.x.docs[doc].key(), t.after.Key) > 0
}
