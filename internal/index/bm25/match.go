package bm25

import (
	"slices"
	"strings"
	"sync"
)

// Match is the result of a query: the set of matching documents and the data to score them. The caller
// must call Close before the index changes, and must not use the Match after Close.
type Match struct {
	// Any is true if the query asks for no word. Then all documents match except excluded ones, with score 0.
	Any bool
	// Bits holds the ids of the matching documents. The caller may remove ids until Close, to filter the result.
	Bits Bits

	x     *Index
	s     *scratch
	words []wanted
	total float32 // sum of the idf of all words, for scoreOf
	wish  float32 // the same, with words that no document has
	query query
	// guesses are the words of which no document has any, with the words that were searched instead.
	guesses map[string]string
}

// scratch holds the buffers of one search, reused through Index.pool. Its parts are described where they
// are used, mostly in top.go.
type scratch struct {
	bits  Bits
	more  Bits
	other Bits
	heap  []ranked
	few   few
	seg   stretch
	rec   []uint32 // terms of the document that areAdjacent reads
}

type scratchPool struct{ sync.Pool }

func (p *scratchPool) takeScratch(docs int) *scratch {
	s, _ := p.Get().(*scratch)
	if s == nil {
		s = new(scratch)
	}
	s.bits = blankBits(s.bits, docs)
	return s
}

// blankBits returns an empty set for ids below docs that reuses the memory of b.
func blankBits(b Bits, docs int) Bits {
	n := (docs + 63) / 64
	if cap(b) < n {
		return make(Bits, n, n+n/8)
	}
	b = b[:n]
	clear(b)
	return b
}

// Match finds the documents for a query text. Its time is linear in the postings of the words that are not common.
// At most 16 words count, each with a bounded number of alternatives. The caller must call Close.
func (x *Index) Match(text string) *Match { return x.MatchPlan(text, nil) }

// MatchPlan is Match with the words and weights that Match.Plan returned for an earlier search with the
// same text; a nil plan is the same as Match.
func (x *Index) MatchPlan(text string, plan []byte) *Match {
	q := parseQuery(text)
	m := &Match{x: x, s: x.pool.takeScratch(len(x.docs))}
	m.Bits = m.s.bits
	words, wish, guesses, known := x.planWords(q)
	if known && plan != nil {
		words = x.followPlan(plan)
	}
	m.query, m.wish, m.guesses = q, wish, guesses
	switch {
	case !known:
		return m
	case len(words) == 0:
		m.Any = !slices.ContainsFunc(q.clauses, func(c clause) bool { return !c.exclude })
		if m.Any {
			copy(m.Bits, x.all)
		}
	default:
		m.words = words
		for _, w := range words {
			m.total += w.idf
			for _, a := range w.alts {
				x.words.postingsOf(a.term).addTo(m.Bits)
			}
		}
	}
	m.Narrow(m.Bits)
	return m
}

// Narrow removes from set the documents without the quoted phrases of the query, and those with its excluded words.
func (m *Match) Narrow(set Bits) {
	for _, c := range m.query.clauses {
		if c.phrase && !c.exclude {
			set.And(m.clauseDocs(c))
		}
	}
	for _, c := range m.query.clauses {
		if c.exclude {
			set.AndNot(m.clauseDocs(c))
		}
	}
}

// HasPhrase reports whether the query has a quoted phrase.
func (m *Match) HasPhrase() bool {
	return slices.ContainsFunc(m.query.clauses, func(c clause) bool { return c.phrase && !c.exclude })
}

// Wish returns the sum of the weights of the query's words, including words that no document has. It is above the
// score of every document.
func (m *Match) Wish() float64 { return float64(m.wish) }

// Close returns the buffers of the match to the index. The match must not be used afterwards.
func (m *Match) Close() {
	m.s.bits = m.Bits
	m.Bits = nil
	m.x.pool.Put(m.s)
}

// planWords expands all words of a query that are not excluded and drops those without alternatives. wish is the sum of
// the idf of all of them before; guesses has the words that were searched in place of unknown ones. known is false if a
// phrase has a word that no document has: then nothing can match.
func (x *Index) planWords(q query) (words []wanted, wish float32, guesses map[string]string, known bool) {
	last := len(q.clauses) - 1
	for i, c := range q.clauses {
		switch {
		case c.exclude:
			continue
		case c.phrase:
			for _, p := range c.parts {
				w := x.expandWord(p, false, false)
				w.phrase = true
				if len(w.alts) == 0 {
					return nil, 0, nil, false
				}
				words = append(words, w)
			}
		case c.joined != "":
			for j, p := range c.parts {
				words = append(words, x.expandWord(p, i == last && j == len(c.parts)-1, false, c.joined))
			}
		default:
			var compounds []string
			if i > 0 && q.clauses[i-1].isPlain() {
				compounds = append(compounds, q.clauses[i-1].parts[0]+c.parts[0])
			}
			if i < last && q.clauses[i+1].isPlain() {
				compounds = append(compounds, c.parts[0]+q.clauses[i+1].parts[0])
			}
			words = append(words, x.expandWord(c.parts[0], i == last, true, compounds...))
		}
	}
	dropFramed(words)
	for _, w := range words {
		if wish += w.idf; w.guess != "" {
			if guesses == nil {
				guesses = make(map[string]string)
			}
			guesses[w.text] = w.guess
		}
	}
	return slices.DeleteFunc(words, func(w wanted) bool { return len(w.alts) == 0 }), wish, guesses, true
}

// isPlain reports whether the clause is a single optional word.
func (c clause) isPlain() bool { return !c.phrase && !c.exclude && c.joined == "" }

// clauseDocs returns the documents with the clause exactly as written. The next call overwrites the result.
func (m *Match) clauseDocs(c clause) Bits {
	x := m.x
	m.s.more = blankBits(m.s.more, len(x.docs))
	set := m.s.more
	if terms, ok := x.phraseTerms(c.parts); ok {
		m.intersectTerms(set, terms)
		if len(terms) > 1 && !(len(terms) == 2 && x.words.hasPairs(terms[0]) && x.words.hasPairs(terms[1])) {
			set.Each(func(id int) bool {
				if !m.areAdjacent(x.docs[id], terms) {
					set.Drop(id)
				}
				return true
			})
		}
	}
	if c.joined != "" {
		if t := x.words.termOf(c.joined); t != 0 {
			x.words.postingsOf(t).addTo(set)
		}
	}
	return set
}

// intersectTerms sets set, which must be empty, to the documents that can contain the terms as a phrase: those with
// all terms and, where pairs are listed, with every two neighbours adjacent. Other adjacency is not checked here.
func (m *Match) intersectTerms(set Bits, terms []uint32) {
	x := m.x
	first := true
	also := func(p *postings) {
		if first {
			p.addTo(set)
			first = false
			return
		}
		m.s.other = blankBits(m.s.other, len(x.docs))
		p.addTo(m.s.other)
		set.And(m.s.other)
	}
	for i, t := range terms {
		switch paired := x.words.hasPairs(t); {
		case paired && i > 0 && x.words.hasPairs(terms[i-1]):
			if p := x.pairs[pairOf(terms[i-1], t)]; p != nil {
				also(p)
			} else {
				also(new(postings))
			}
		case paired && i+1 < len(terms) && x.words.hasPairs(terms[i+1]): // implied by the pair with the next term
		default:
			also(x.words.postingsOf(t))
		}
	}
}

func (x *Index) phraseTerms(parts []string) ([]uint32, bool) {
	terms := make([]uint32, len(parts))
	for i, p := range parts {
		if terms[i] = x.words.termOf(p); terms[i] == 0 {
			return nil, false
		}
	}
	return terms, len(terms) > 0
}

// areAdjacent reports whether a document has the terms directly one after the other.
func (m *Match) areAdjacent(d doc, terms []uint32) bool {
	rec := m.s.rec[:0]
	for i := int(d.cut); i < len(d.rec); {
		var n uint32
		if n, i = d.nextNumber(i); n > wordsFrom {
			rec = append(rec, m.x.words.termID[n-wordsFrom])
		} else {
			rec = append(rec, 0)
		}
	}
	m.s.rec = rec
	for len(rec) >= len(terms) {
		i := slices.Index(rec[:len(rec)-len(terms)+1], terms[0])
		if i < 0 {
			return false
		}
		if slices.Equal(rec[i:i+len(terms)], terms) {
			return true
		}
		rec = rec[i+1:]
	}
	return false
}

// Excludes reports whether the query has excluded words.
func (m *Match) Excludes() bool {
	return slices.ContainsFunc(m.query.clauses, func(c clause) bool { return c.exclude })
}

// Meant returns the query as it is to be understood by its meaning: without excluded words and quotation marks, and
// with the words that were searched in place of unknown ones, unless knows reports that a word is one. It is empty if
// the query has only words of grammar.
// unfinished reports whether its last word is the beginning of one that knows does not have.
func (m *Match) Meant(text string, knows func(word string) bool) (meant string, unfinished bool) {
	if !slices.ContainsFunc(m.query.clauses, func(c clause) bool {
		return !c.exclude && slices.ContainsFunc(c.parts, func(w string) bool { return !frame[w] })
	}) {
		return "", false
	}
	var out []string
	for _, f := range strings.Fields(text) {
		if strings.HasPrefix(f, "-") {
			continue
		}
		f = strings.TrimFunc(f, isQuote)
		guess := ""
		if words := Fold(f); len(words) == 1 {
			guess = m.guesses[words[0]]
		}
		unfinished = guess != "" && !knows(f) && strings.HasPrefix(guess, strings.ToLower(f))
		switch {
		case guess == "" || knows(f) && !strings.HasPrefix(guess, strings.ToLower(f)):
			out = append(out, f)
		case knows(f):
			out = append(out, f, guess)
		default:
			out = append(out, guess)
		}
	}
	return strings.Join(out, " "), unfinished
}
