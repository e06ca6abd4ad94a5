package bm25

import (
	"math"
	"math/bits"
	"slices"
)

// Hit is one found document.
type Hit struct {
	ID      int
	Score   float64
	Matched []string // names of the fields in which words were found; not to be changed
}

// After is a place in the order of hits: behind the document of that score
// and key.
type After struct {
	Score float64
	Key   string
}

type ranked struct {
	score  float32
	doc    uint32
	fields uint16
}

// Query returns the best limit documents for a text, by descending score and
// then by key.
func (x *Index) Query(text string, limit int) []Hit {
	m := x.Match(text)
	defer m.Close()
	return m.Top(limit, nil)
}

// Top returns the first limit documents of m.Bits by descending score and
// then by key, from behind after unless that is nil. Matches that cannot get
// on the page are skipped in blocks.
func (m *Match) Top(limit int, after *After) []Hit {
	if limit <= 0 {
		return nil
	}
	if m.Any {
		return m.first(limit, after)
	}
	t := &top{x: m.x, heap: m.s.heap[:0], limit: limit, after: after}
	postings := 0
	for _, w := range m.words {
		for _, a := range w.alts {
			postings += m.x.words.df(a.term)
		}
	}
	switch {
	case len(m.words) == 0:
	case len(m.words) == 1:
		m.single(t)
	case postings <= fewPostings:
		m.few(t)
	default:
		m.segments(t)
	}
	slices.SortFunc(t.heap, func(a, b ranked) int {
		if t.before(a, b) {
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

// first is Top without words: all scores are 0.
func (m *Match) first(limit int, after *After) []Hit {
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

// Ascend calls yield with the documents in the order of their keys, from the
// first that is not less than key, until it returns false.
func (x *Index) Ascend(key string, yield func(id int) bool) {
	x.order.from(key, func(id uint32) bool { return yield(int(id)) })
}

// Key returns the key a document was put with.
func (x *Index) Key(id int) string { return x.docs[id].key() }

// single ranks the documents of one word: those in the blocks with the
// greatest impacts first, and of the others those that still can matter.
func (m *Match) single(t *top) {
	alts := m.words[0].alts
	for i, alt := range alts {
		worth := alt.worth / fullImpact
		p := m.x.words.postings(alt.term)
		if p.n == 1 {
			if doc := p.base | p.only.low(); m.Bits.Has(int(doc)) {
				m.offer(t, i, worth*float32(p.only.impact()), doc, p.only.fields())
			}
			continue
		}
		if p.n == 0 {
			continue
		}
		look := func(b *block) {
			for _, e := range b.list {
				score := worth * float32(e.impact())
				if !t.reaches(score) {
					continue
				}
				if doc := b.base | e.low(); m.Bits[doc>>6]&(1<<(doc&63)) != 0 {
					m.offer(t, i, score, doc, e.fields())
				}
			}
		}
		list, level := p.many.list, 0
		if i == 0 {
			level = p.many.level(t.limit)
		}
		for b := range list {
			if int(list[b].top) >= level && t.reaches(worth*float32(list[b].top)) {
				look(&list[b])
			}
		}
		for b := range list {
			if int(list[b].top) < level && t.reaches(worth*float32(list[b].top)) {
				look(&list[b])
			}
		}
	}
}

// level returns an impact that so many blocks have at least, if there are as
// many.
func (p *blocks) level(n int) int {
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

// offer offers a document of the only word that has that score by the i-th
// alternative, unless it has a better one, or one as good comes before.
func (m *Match) offer(t *top, i int, score float32, doc uint32, fields uint16) {
	if len(t.heap) == t.limit && !t.before(ranked{score, doc, fields}, t.heap[0]) {
		return
	}
	for k, o := range m.words[0].alts {
		if k == i {
			continue
		}
		if e, ok := m.x.words.postings(o.term).get(doc); ok {
			if s := o.worth / fullImpact * float32(e.impact()); s > score || s == score && k < i {
				return
			}
			fields |= e.fields()
		}
	}
	t.offer(score, doc, fields)
}

// accumulator collects the score of one document.
type accumulator struct {
	score  float32
	coord  float32 // idf of the words found
	last   float32 // what the last word contributed to score
	word   int16   // the last word, from 1; 0: none yet
	fields uint16
}

// add notes that word has an alternative in the document, worth s.
func (a *accumulator) add(word int, idf, s float32, fields uint16) {
	a.fields |= fields
	if a.word != int16(word) {
		a.word = int16(word)
		a.score += s
		a.coord += idf
		a.last = s
	} else if s > a.last { // another form of the same word
		a.score += s - a.last
		a.last = s
	}
}

// score is what was accumulated, times the share of the query that was found.
func (m *Match) score(a *accumulator) float32 { return a.score * (a.coord / m.total) }

// few are the accumulators of a query with few postings: a small hash table,
// so that the memory does not depend on the size of the index.
type few struct {
	docs []uint32 // by slot: document+1
	acc  []accumulator
	used []uint16
}

const (
	fewPostings = 4096
	fewSlots    = 2 * fewPostings
)

func (f *few) of(doc uint32) *accumulator {
	i := doc * 0x9E3779B1 >> 19 // 13 bits: fewSlots
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

func (m *Match) few(t *top) {
	f := &m.s.few
	if f.docs == nil {
		f.docs, f.acc = make([]uint32, fewSlots), make([]accumulator, fewSlots)
	}
	for i, w := range m.words {
		for _, alt := range w.alts {
			worth := alt.worth / fullImpact
			m.x.words.postings(alt.term).each(func(doc uint32, e posting) {
				f.of(doc).add(i+1, w.idf, worth*float32(e.impact()), e.fields())
			})
		}
	}
	for _, i := range f.used {
		doc := f.docs[i] - 1
		f.docs[i] = 0
		if m.Bits.Has(int(doc)) {
			t.offer(m.score(&f.acc[i]), doc, f.acc[i].fields)
		}
	}
	f.used = f.used[:0]
}

// A segment is so many documents that follow each other by number. What the
// best of a segment could score is known before its postings are read.
const (
	segmentBits = 9
	segmentSize = 1 << segmentBits
	maxSpan     = 16 // segments of a block whose best stands for all of it
)

type segment struct {
	word, sum, coord []float32 // by segment: bounds
	order            []uint64  // bound and number
	acc              [segmentSize]accumulator
}

func zeros(list []float32, n int) []float32 {
	if cap(list) < n {
		return make([]float32, n, n+n/8)
	}
	list = list[:n]
	clear(list)
	return list
}

// segments ranks the matches of words with many postings: segment by segment,
// best bound first, until no bound reaches the page.
func (m *Match) segments(t *top) {
	s := &m.s.seg
	n := (len(m.x.docs) + segmentSize - 1) >> segmentBits
	s.sum, s.coord = zeros(s.sum, n), zeros(s.coord, n)
	for _, w := range m.words {
		s.word = zeros(s.word, n)
		for _, alt := range w.alts {
			s.bound(m.x.words.postings(alt.term), alt.worth/fullImpact)
		}
		for i, most := range s.word {
			if most > 0 {
				s.sum[i] += most
				s.coord[i] += w.idf
			}
		}
	}
	s.order = s.order[:0]
	for i, sum := range s.sum {
		if sum > 0 {
			bound := sum * (s.coord[i] / m.total) * 1.00001 // sums are rounded
			s.order = append(s.order, uint64(math.Float32bits(bound))<<32|uint64(i))
		}
	}
	slices.Sort(s.order)
	for i := len(s.order) - 1; i >= 0; i-- {
		if !t.reaches(math.Float32frombits(uint32(s.order[i] >> 32))) {
			return
		}
		m.segment(t, uint32(s.order[i]))
	}
}

// bound raises the bounds of one word by those of one of its alternatives.
func (s *segment) bound(p *postings, worth float32) {
	if p.n == 1 {
		i := (p.base | p.only.low()) >> segmentBits
		s.word[i] = max(s.word[i], worth*float32(p.only.impact()))
		return
	}
	if p.n == 0 {
		return
	}
	for b := range p.many.list {
		l := &p.many.list[b]
		from, to := l.first()>>segmentBits, l.last()>>segmentBits
		if to-from < maxSpan {
			most := worth * float32(l.top)
			for i := from; i <= to; i++ {
				s.word[i] = max(s.word[i], most)
			}
			continue
		}
		for _, e := range l.list {
			i := (l.base | e.low()) >> segmentBits
			s.word[i] = max(s.word[i], worth*float32(e.impact()))
		}
	}
}

func (m *Match) segment(t *top, number uint32) {
	from := number << segmentBits
	to := min(from+segmentSize, uint32(len(m.x.docs)))
	words := m.Bits[from>>6 : (to+63)>>6]
	if !slices.ContainsFunc(words, func(w uint64) bool { return w != 0 }) {
		return
	}
	acc := &m.s.seg.acc
	clear(acc[:])
	for i, w := range m.words {
		for _, alt := range w.alts {
			worth := alt.worth / fullImpact
			p := m.x.words.postings(alt.term)
			if p.n == 1 {
				if doc := p.base | p.only.low(); doc >= from && doc < to {
					acc[doc-from].add(i+1, w.idf, worth*float32(p.only.impact()), p.only.fields())
				}
				continue
			}
			if p.n == 0 {
				continue
			}
			b, at := p.many.find(from)
			for ; b < len(p.many.list); b++ {
				l := &p.many.list[b]
				if l.base|l.list[at].low() >= to {
					break
				}
				for _, e := range l.list[at:] {
					doc := l.base | e.low()
					if doc >= to {
						break
					}
					acc[doc-from].add(i+1, w.idf, worth*float32(e.impact()), e.fields())
				}
				at = 0
			}
		}
	}
	for i, w := range words {
		for ; w != 0; w &= w - 1 {
			id := uint32(i<<6 + bits.TrailingZeros64(w))
			if a := &acc[id]; t.reaches(a.score) { // no share of it is more
				t.offer(m.score(a), from+id, a.fields)
			}
		}
	}
}
