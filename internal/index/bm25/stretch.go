package bm25

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// A stretch is a range of stretchSize consecutive document ids. An upper bound for the scores in a
// stretch is computed before its postings are read, so that stretches without a chance are skipped.
const (
	stretchBits = 9
	stretchSize = 1 << stretchBits
	maxSpan     = 16 // a block over fewer stretches gives all of them the same bound
	maxSingly   = 16 // maximum number of documents of a stretch that are looked up one by one
)

// slack enlarges upper bounds by more than the rounding errors of float32 sums.
const slack = 1.00001

type stretch struct {
	words  []float32 // upper bound of each word in each stretch; index word*n + stretch
	order  []uint64  // stretches that can match: bound in the upper half, number in the lower
	light  []lightWord
	heavy  []bool // words whose postings are read
	singly []uint32
	acc    [stretchSize]accumulator
	has    [stretchSize / 64]uint64 // set of the documents in acc
}

// lightWord is a word of the query in stretch.light, which is sorted by ascending worth.
type lightWord struct {
	word       int
	sum, coord float32 // upper bounds of all words before it in the list
}

func zeroFloats(list []float32, n int) []float32 {
	if cap(list) < n {
		return make([]float32, n, n+n/8)
	}
	list = list[:n]
	clear(list)
	return list
}

// rankStretches ranks a query of several words with many postings. It reads the stretches by descending
// upper bound, until no bound reaches the page.
func (m *Match) rankStretches(t *top) {
	s := &m.s.seg
	n := (len(m.x.docs) + stretchSize - 1) >> stretchBits
	s.words = zeroFloats(s.words, n*len(m.words))
	s.light, s.heavy = s.light[:0], s.heavy[:0]
	for w := range m.words {
		bounds := s.words[w*n:][:n]
		for _, alt := range m.words[w].alts {
			raiseBounds(bounds, m.x.words.postingsOf(alt.term), alt.worth/fullImpact)
		}
		s.light, s.heavy = append(s.light, lightWord{word: w}), append(s.heavy, true)
	}
	slices.SortStableFunc(s.light, func(a, b lightWord) int {
		return cmp.Compare(m.words[a.word].alts[0].worth, m.words[b.word].alts[0].worth)
	})
	s.order = s.order[:0]
	for i := range n {
		var sum, coord float32
		for w := range m.words {
			if most := s.words[w*n+i]; most > 0 {
				sum += most
				coord += m.words[w].idf
			}
		}
		if sum > 0 {
			s.order = append(s.order, uint64(math.Float32bits(m.scoreBound(sum, coord)))<<32|uint64(i))
		}
	}
	slices.Sort(s.order)
	for i := len(s.order) - 1; i >= 0; i-- {
		if !t.mayReach(math.Float32frombits(uint32(s.order[i] >> 32))) {
			return
		}
		m.rankStretch(t, uint32(s.order[i]), n)
	}
}

// scoreBound returns an upper bound for the score of a document with at most this sum and this sum of
// idf (coord) of found words.
func (m *Match) scoreBound(sum, coord float32) float32 { return sum * (coord / m.total) * slack }

// raiseBounds raises the upper bound of each stretch to the best posting of p in it, times worth.
func raiseBounds(bounds []float32, p *postings, worth float32) {
	if p.n == 1 {
		i := (p.base | p.only.low()) >> stretchBits
		bounds[i] = max(bounds[i], worth*float32(p.only.impact()))
		return
	}
	if p.n == 0 {
		return
	}
	for b := range p.many.list {
		l := &p.many.list[b]
		from, to := l.firstDoc()>>stretchBits, l.lastDoc()>>stretchBits
		if to-from < maxSpan {
			most := worth * float32(l.top)
			for i := from; i <= to; i++ {
				bounds[i] = max(bounds[i], most)
			}
			continue
		}
		for _, e := range l.list {
			i := (l.base | e.low()) >> stretchBits
			bounds[i] = max(bounds[i], worth*float32(e.impact()))
		}
	}
}

// rankStretch offers the matches of stretch number, of n in total, to t. Words that together cannot lift
// a document onto the page are light. Their postings, which are the most, are not read; they are only
// looked up for the few documents that would reach the page with them.
func (m *Match) rankStretch(t *top, number uint32, n int) {
	from := number << stretchBits
	to := min(from+stretchSize, uint32(len(m.x.docs)))
	words := m.Bits[from>>6 : (to+63)>>6]
	if !slices.ContainsFunc(words, func(w uint64) bool { return w != 0 }) {
		return
	}
	s := &m.s.seg
	var sum, coord float32 // upper bounds of all light words together
	light := 0
	for ; light < len(s.light); light++ {
		w := &s.light[light]
		w.sum, w.coord = sum, coord
		if most := s.words[w.word*n+int(number)]; most > 0 {
			if t.mayReach(m.scoreBound(sum+most, coord+m.words[w.word].idf)) {
				break
			}
			sum, coord = sum+most, coord+m.words[w.word].idf
		}
	}
	for i, w := range s.light {
		s.heavy[w.word] = i >= light
	}
	m.addHeavy(from, to)
	if sum > 0 {
		s.singly = s.singly[:0]
		for i, w := range words {
			for w &= s.has[i]; w != 0; w &= w - 1 {
				id := uint32(i<<6 + bits.TrailingZeros64(w))
				if a := &s.acc[id]; t.mayReach(m.scoreBound(a.score+sum, a.coord+coord)) {
					s.singly = append(s.singly, from+id)
				}
			}
		}
		if len(s.singly) <= maxSingly {
			for _, doc := range s.singly {
				if a := s.acc[doc-from]; m.addLight(t, &a, doc, s.light[:light]) {
					// Scored again in the order of the words, because float sums depend on the order.
					a = m.scoreDoc(doc)
					t.offerHit(m.scoreOf(&a), doc, a.fields)
				}
			}
			return
		}
		for w := range s.heavy {
			s.heavy[w] = true
		}
		m.addHeavy(from, to)
	}
	for i, w := range words {
		for w &= s.has[i]; w != 0; w &= w - 1 {
			id := uint32(i<<6 + bits.TrailingZeros64(w))
			if a := &s.acc[id]; t.mayReach(a.score) { // coordination can only lower the score
				t.offerHit(m.scoreOf(a), from+id, a.fields)
			}
		}
	}
}

// addLight adds the light words to the score of a document. It returns false, with an incomplete score,
// as soon as the document cannot reach the page.
func (m *Match) addLight(t *top, a *accumulator, doc uint32, light []lightWord) bool {
	for k := len(light) - 1; k >= 0; k-- {
		l := &light[k]
		w := &m.words[l.word]
		for _, alt := range w.alts {
			if e, ok := m.x.words.postingsOf(alt.term).getPosting(doc); ok {
				a.addWord(l.word+1, w.idf, alt.worth/fullImpact*float32(e.impact()), 0)
			}
		}
		if !t.mayReach(m.scoreBound(a.score+l.sum, a.coord+l.coord)) {
			return false
		}
	}
	return true
}

// scoreDoc computes the score of one document from all words.
func (m *Match) scoreDoc(doc uint32) (a accumulator) {
	for i := range m.words {
		w := &m.words[i]
		for _, alt := range w.alts {
			if e, ok := m.x.words.postingsOf(alt.term).getPosting(doc); ok {
				a.addWord(i+1, w.idf, alt.worth/fullImpact*float32(e.impact()), e.fields())
			}
		}
	}
	return a
}

// addHeavy sums the scores of the heavy words for the documents from to to-1, into acc and has.
func (m *Match) addHeavy(from, to uint32) {
	s := &m.s.seg
	clear(s.has[:])
	for i, w := range m.words {
		if !s.heavy[i] {
			continue
		}
		for _, alt := range w.alts {
			worth := alt.worth / fullImpact
			p := m.x.words.postingsOf(alt.term)
			if p.n == 1 {
				if doc := p.base | p.only.low(); doc >= from && doc < to {
					s.addPosting(doc-from, i+1, w.idf, worth, p.only)
				}
				continue
			}
			if p.n == 0 || p.many.end < from {
				continue
			}
			b, at := p.many.findDoc(from)
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
					s.addPosting(doc-from, i+1, w.idf, worth, e)
				}
				at = 0
			}
		}
	}
}

func (s *stretch) addPosting(doc uint32, word int, idf, worth float32, e posting) {
	doc %= stretchSize
	a, bit := &s.acc[doc], uint64(1)<<(doc&63)
	score := worth * float32(e.impact())
	if has := &s.has[doc>>6]; *has&bit == 0 {
		*has |= bit
		*a = accumulator{score: score, coord: idf, last: score, word: int16(word), fields: e.fields()}
		return
	}
	a.addWord(word, idf, score, e.fields())
}
