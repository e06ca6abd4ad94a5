package bm25

import (
	"slices"
	"sync"
)

// Match is the set of documents a query found, with their scores. Release it
// with Close, before the index changes.
type Match struct {
	// Any is true when the text asks for no word: everything matches that
	// is not excluded, with score 0.
	Any bool
	// Bits are the ids that match. The caller may change the set until
	// Close, to filter it.
	Bits Bits

	x     *Index
	s     *scratch
	total float32 // idf of all words, for coordination
	// single is set, and no accumulator was filled, when the query came
	// down to one term.
	single *postings
	worth  float32
}

// accumulator collects the score of one document. The stamp tells which
// search filled it, which word came last, and the mask of fields, so that it
// need not be cleared between searches.
type accumulator struct {
	score float32
	coord float32 // idf of the words found
	last  float32 // what the last word contributed to score
	stamp uint32  // epoch<<16 | word<<8 | fields
}

// scratch is the memory of one search.
type scratch struct {
	acc   []accumulator
	epoch uint32
	bits  Bits
	more  Bits
	heap  []ranked
}

type scratchPool struct{ sync.Pool }

func (p *scratchPool) take(docs int) *scratch {
	s, _ := p.Get().(*scratch)
	if s == nil {
		s = new(scratch)
	}
	s.bits = blank(s.bits, docs)
	return s
}

func (s *scratch) accumulators(docs int) []accumulator {
	if len(s.acc) < docs {
		s.acc = make([]accumulator, docs+docs/8)
		s.epoch = 0
	}
	if s.epoch++; s.epoch == 1<<16 {
		clear(s.acc)
		s.epoch = 1
	}
	return s.acc[:docs]
}

// blank returns an empty set with room for docs ids, in the memory of b.
func blank(b Bits, docs int) Bits {
	n := (docs + 63) / 64
	if cap(b) < n {
		return make(Bits, n, n+n/8)
	}
	b = b[:n]
	clear(b)
	return b
}

// Match finds the documents for a text. It takes time linear in the postings
// of its words, of which there are at most 16 with a bounded number of
// alternatives each.
func (x *Index) Match(text string) *Match {
	q := parse(text)
	m := &Match{x: x, s: x.pool.take(len(x.docs))}
	m.Bits = m.s.bits
	words, known := x.plan(q)
	switch {
	case !known:
		return m
	case len(words) == 0:
		m.Any = !slices.ContainsFunc(q.clauses, func(c clause) bool { return !c.exclude })
		if m.Any {
			copy(m.Bits, x.all)
		}
	case len(words) == 1 && len(words[0].alts) == 1:
		m.single, m.worth = x.words.postings(words[0].alts[0].term), words[0].alts[0].worth
		m.single.addTo(m.Bits)
	default:
		m.accumulate(words)
	}
	for _, c := range q.clauses {
		if c.phrase && !c.exclude {
			m.Bits.And(m.having(c))
		}
	}
	for _, c := range q.clauses {
		if c.exclude {
			m.Bits.AndNot(m.having(c))
		}
	}
	return m
}

// Close gives the memory of the match back.
func (m *Match) Close() {
	m.s.bits = m.Bits
	m.Bits = nil
	m.x.pool.Put(m.s)
}

// plan expands the wanted words; known is false when a phrase has a word that
// no document has.
func (x *Index) plan(q query) (words []wanted, known bool) {
	last := len(q.clauses) - 1
	for i, c := range q.clauses {
		switch {
		case c.exclude:
			continue
		case c.phrase:
			for _, p := range c.parts {
				w := x.want(p, false, false)
				if len(w.alts) == 0 {
					return nil, false
				}
				words = append(words, w)
			}
		case c.joined != "":
			for j, p := range c.parts {
				words = append(words, x.want(p, i == last && j == len(c.parts)-1, false, c.joined))
			}
		default:
			var compounds []string
			if i > 0 && q.clauses[i-1].plain() {
				compounds = append(compounds, q.clauses[i-1].parts[0]+c.parts[0])
			}
			if i < last && q.clauses[i+1].plain() {
				compounds = append(compounds, c.parts[0]+q.clauses[i+1].parts[0])
			}
			words = append(words, x.want(c.parts[0], i == last, true, compounds...))
		}
	}
	return slices.DeleteFunc(words, func(w wanted) bool { return len(w.alts) == 0 }), true
}

// plain reports whether the clause is a single optional word.
func (c clause) plain() bool { return !c.phrase && !c.exclude && c.joined == "" }

// accumulate adds up the words term by term.
func (m *Match) accumulate(words []wanted) {
	acc := m.s.accumulators(len(m.x.docs))
	epoch := m.s.epoch << 16
	for i, w := range words {
		m.total += w.idf
		tag := epoch | uint32(i)<<8
		for _, alt := range w.alts {
			worth := alt.worth / fullImpact
			list := m.x.words.postings(alt.term)
			for part := range list.parts() {
				for _, p := range list.part(part) {
					a := &acc[p.doc]
					s := worth * float32(p.impact)
					switch {
					case a.stamp&^0xffff != epoch:
						*a = accumulator{s, w.idf, s, tag | uint32(p.fields)}
						m.Bits[p.doc>>6] |= 1 << (p.doc & 63)
					case a.stamp&^0xff == tag: // another form of the same word
						if s > a.last {
							a.score += s - a.last
							a.last = s
						}
						a.stamp |= uint32(p.fields)
					default:
						a.score += s
						a.coord += w.idf
						a.last = s
						a.stamp = tag | a.stamp&0xff | uint32(p.fields)
					}
				}
			}
		}
	}
}

// score is what was accumulated, times the share of the query that was found.
func (m *Match) score(a *accumulator) float32 { return a.score * (a.coord / m.total) }

// having returns the documents in which the clause occurs as written, in
// scratch memory that the next call overwrites.
func (m *Match) having(c clause) Bits {
	x := m.x
	m.s.more = blank(m.s.more, len(x.docs))
	set := m.s.more
	if terms, ok := x.phrase(c.parts); ok {
		x.words.postings(terms[0]).addTo(set)
		if len(terms) > 1 {
			other := make(Bits, len(set))
			for _, t := range terms[1:] {
				clear(other)
				x.words.postings(t).addTo(other)
				set.And(other)
			}
			first := x.spellings(terms[0])
			set.Each(func(id int) bool {
				if !x.adjacent(x.docs[id].seq, first, terms) {
					set.Drop(id)
				}
				return true
			})
		}
	}
	if c.joined != "" {
		if t := x.words.termOf([]byte(c.joined)); t != 0 {
			x.words.postings(t).addTo(set)
		}
	}
	return set
}

func (x *Index) phrase(parts []string) ([]uint32, bool) {
	terms := make([]uint32, len(parts))
	for i, p := range parts {
		if terms[i] = x.words.termOf([]byte(p)); terms[i] == 0 {
			return nil, false
		}
	}
	return terms, len(terms) > 0
}

// spellings returns the words of a term.
func (x *Index) spellings(term uint32) []uint32 {
	var list []uint32
	for id, t := range x.words.termID {
		if t == term {
			list = append(list, uint32(id))
		}
	}
	return list
}

// adjacent reports whether the terms follow each other in a sequence; first
// are the spellings of the first term, found without looking up each word.
func (x *Index) adjacent(seq, first, terms []uint32) bool {
	for _, word := range first {
		rest := seq
	next:
		for len(rest) >= len(terms) {
			i := slices.Index(rest[:len(rest)-len(terms)+1], word)
			if i < 0 {
				break
			}
			rest = rest[i+1:]
			for j, t := range terms[1:] {
				if x.words.termID[rest[j]] != t {
					continue next
				}
			}
			return true
		}
	}
	return false
}
