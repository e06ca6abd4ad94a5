package bm25

import "strings"

// top collects the best limit documents after the position after, in a heap whose root is the worst.
type top struct {
	x     *Index
	heap  []ranked
	limit int
	after *After
}

// mayReach reports whether a document with that score may still be among the best.
func (t *top) mayReach(score float32) bool {
	return len(t.heap) < t.limit || score >= t.heap[0].score
}

// ranksBefore reports whether a comes before b in a result: by descending score, then by key.
func (t *top) ranksBefore(a, b *ranked) bool {
	if a.score != b.score {
		return a.score > b.score
	}
	for _, r := range [2]*ranked{a, b} {
		if r.head == 0 {
			r.head = keyHead(t.x.docs[r.doc].key())
		}
	}
	if a.head != b.head {
		return a.head < b.head
	}
	return t.x.order.lessID(a.doc, b.doc)
}

func (t *top) offerHit(score float32, doc uint32, fields uint16) {
	full := len(t.heap) == t.limit
	if full && score < t.heap[0].score {
		return
	}
	if t.after != nil && !t.ranksBehind(score, doc) {
		return
	}
	r := ranked{score: score, doc: doc, fields: fields}
	if !full {
		t.heap = append(t.heap, r)
		for i := len(t.heap) - 1; i > 0; {
			up := (i - 1) / 2
			if !t.ranksBefore(&t.heap[up], &t.heap[i]) {
				break
			}
			t.heap[up], t.heap[i] = t.heap[i], t.heap[up]
			i = up
		}
		return
	}
	if !t.ranksBefore(&r, &t.heap[0]) {
		return
	}
	t.heap[0] = r
	for i := 0; ; {
		worst := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(t.heap); c++ {
			if t.ranksBefore(&t.heap[worst], &t.heap[c]) {
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

// ranksBehind reports whether a document comes after the position t.after.
func (t *top) ranksBehind(score float32, doc uint32) bool {
	if s := float64(score); s != t.after.Score {
		return s < t.after.Score
	}
	return strings.Compare(t.x.docs[doc].key(), t.after.Key) > 0
}
