package bm25

import (
	"math"
	"slices"
)

// Hit is one document of a result.
type Hit struct {
	ID      int
	Score   float64
	Matched []string // names of the fields in which words were found; shared, not to be changed
}

// After is a position in a result: after the document with that score and key. The document need not exist.
type After struct {
	Score float64
	Key   string
}

type ranked struct {
	score  float32
	doc    uint32
	fields uint16
	head   uint64 // keyHead of its key, 0 until it was needed
}

// Query returns the best limit documents, by descending score and then by key. It needs read access to the index.
func (x *Index) Query(text string, limit int) []Hit {
	m := x.Match(text)
	defer m.Close()
	return m.Top(limit, nil)
}

// Top returns the first limit documents of m.Bits by descending score and then by key, after the position after, or
// from the start if after is nil. Blocks of postings that cannot get on the page are skipped.
func (m *Match) Top(limit int, after *After) []Hit {
	if limit <= 0 {
		return nil
	}
	if m.Any {
		return m.firstHits(limit, after)
	}
	t := &top{x: m.x, heap: m.s.heap[:0], limit: limit, after: after}
	postings := 0
	for _, w := range m.words {
		for _, a := range w.alts {
			postings += m.x.words.docFreq(a.term)
		}
	}
	switch {
	case len(m.words) == 0:
	case len(m.words) == 1:
		m.rankSingle(t)
	case postings <= fewPostings:
		m.rankFew(t)
	default:
		m.rankStretches(t)
	}
	slices.SortFunc(t.heap, func(a, b ranked) int {
		if t.ranksBefore(&a, &b) {
			return -1
		}
		return 1
	})
	hits := make([]Hit, len(t.heap))
	for i, r := range t.heap {
		hits[i] = Hit{ID: int(r.doc), Score: float64(r.score), Matched: m.x.masks[r.fields]}
	}
	m.s.heap = t.heap
	return hits
}

// firstHits is Top for a query without words: all scores are 0, so the order is by key.
func (m *Match) firstHits(limit int, after *After) []Hit {
	key := ""
	if after != nil {
		key = after.Key
	}
	var hits []Hit
	m.x.Ascend(key, func(id int) bool {
		if m.Bits.Has(id) && (after == nil || m.x.docs[id].key() > key) {
			hits = append(hits, Hit{ID: id})
		}
		return len(hits) < limit
	})
	return hits
}

// Ascend calls yield with the documents in the order of their keys, starting at the first key that is
// key or greater, until yield returns false.
func (x *Index) Ascend(key string, yield func(id int) bool) {
	x.order.eachFrom(key, func(id uint32) bool { return yield(int(id)) })
}

// Key returns the key of a document; id must be in use.
func (x *Index) Key(id int) string { return x.docs[id].key() }

// rankSingle ranks the documents of a query with one word. The blocks with the greatest impacts are read
// first, so that most of the others can be skipped.
func (m *Match) rankSingle(t *top) {
	alts := m.words[0].alts
	for i, alt := range alts {
		worth := alt.worth / fullImpact
		p := m.x.words.postingsOf(alt.term)
		if p.n == 1 {
			if doc := p.base | p.only.low(); m.Bits.Has(int(doc)) {
				m.offerDoc(t, i, worth*float32(p.only.impact()), doc, p.only.fields())
			}
			continue
		}
		if p.n == 0 {
			continue
		}
		look := func(b *block) {
			for _, e := range b.list {
				score := worth * float32(e.impact())
				if !t.mayReach(score) {
					continue
				}
				if doc := b.base | e.low(); m.Bits[doc>>6]&(1<<(doc&63)) != 0 {
					m.offerDoc(t, i, score, doc, e.fields())
				}
			}
		}
		list, level := p.many.list, 0
		if i == 0 {
			level = p.many.impactLevel(t.limit)
		}
		for b := range list {
			if int(list[b].top) >= level && t.mayReach(worth*float32(list[b].top)) {
				look(&list[b])
			}
		}
		for b := range list {
			if int(list[b].top) < level && t.mayReach(worth*float32(list[b].top)) {
				look(&list[b])
			}
		}
	}
}

// impactLevel returns the greatest impact that the best postings of n blocks reach, or 0 for fewer blocks.
func (p *blocks) impactLevel(n int) int {
	var tops [fullImpact + 1]uint16
	for i := range p.list {
		tops[p.list[i].top] = min(tops[p.list[i].top], math.MaxUint16-1) + 1
	}
	level, blocks := fullImpact, 0
	for ; level > 0; level-- {
		if blocks += int(tops[level]); blocks >= n {
			break
		}
	}
	return level
}

// offerDoc offers a document of a query with one word to t, with the score of alternative i. It does
// nothing if the document also has a better alternative, or an equal one with a lower number, because
// each document is offered once.
func (m *Match) offerDoc(t *top, i int, score float32, doc uint32, fields uint16) {
	if r := (ranked{score: score, doc: doc}); len(t.heap) == t.limit && !t.ranksBefore(&r, &t.heap[0]) {
		return
	}
	for k, o := range m.words[0].alts {
		if k == i {
			continue
		}
		if e, ok := m.x.words.postingsOf(o.term).getPosting(doc); ok {
			if s := o.worth / fullImpact * float32(e.impact()); s > score || s == score && k < i {
				return
			}
			fields |= e.fields()
		}
	}
	t.offerHit(score, doc, fields)
}

// accumulator sums the score of one document, word by word.
type accumulator struct {
	score  float32
	coord  float32 // sum of the idf of the words found
	last   float32 // part of score from the last word
	word   int16   // the query's word added last, counted from 1; 0 before the first
	fields uint16
}

// addWord adds an alternative of a word with score s. All alternatives of one word must be added in
// succession: only the best of them counts.
func (a *accumulator) addWord(word int, idf, s float32, fields uint16) {
	a.fields |= fields
	if a.word != int16(word) {
		a.word = int16(word)
		a.score += s
		a.coord += idf
		a.last = s
	} else if s > a.last { // another alternative of the same word
		a.score += s - a.last
		a.last = s
	}
}

// scoreOf returns the score of a document: the sum of its words times the coordination factor, the share
// of the query's total idf that the document has.
func (m *Match) scoreOf(a *accumulator) float32 { return a.score * (a.coord / m.total) }

// few is a small hash table of accumulators for queries with at most fewPostings postings, so that their
// memory does not depend on the size of the index.
type few struct {
	docs []uint32 // document+1 by slot; 0 is a free slot
	acc  []accumulator
	used []uint16
}

const (
	fewPostings = 4096
	fewSlots    = 2 * fewPostings
)

func (f *few) accumulatorOf(doc uint32) *accumulator {
	i := doc * 0x9E3779B1 >> 19 // the upper 13 bits: a number below fewSlots
	for {
		switch f.docs[i] {
		case doc + 1:
			return &f.acc[i]
		case 0:
			f.docs[i] = doc + 1
			f.used = append(f.used, uint16(i))
			f.acc[i] = accumulator{}
			return &f.acc[i]
		}
		i = (i + 1) % fewSlots
	}
}

func (m *Match) rankFew(t *top) {
	f := &m.s.few
	if f.docs == nil {
		f.docs, f.acc = make([]uint32, fewSlots), make([]accumulator, fewSlots)
	}
	for i, w := range m.words {
		for _, alt := range w.alts {
			worth := alt.worth / fullImpact
			m.x.words.postingsOf(alt.term).eachPosting(func(doc uint32, e posting) {
				f.accumulatorOf(doc).addWord(i+1, w.idf, worth*float32(e.impact()), e.fields())
			})
		}
	}
	for _, i := range f.used {
		doc := f.docs[i] - 1
		f.docs[i] = 0
		if m.Bits.Has(int(doc)) {
			t.offerHit(m.scoreOf(&f.acc[i]), doc, f.acc[i].fields)
		}
	}
	f.used = f.used[:0]
}
