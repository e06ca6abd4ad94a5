package bm25

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Weights of the other words that a typed word may stand for.
const (
	weightJoined = 0.9 // chat bot for chatbot
	weightPrefix = 0.5
	weightNear   = 0.6 // divided by the distance

	minPrefixRunes = 2
	maxPrefixScan  = 512   // words of the dictionary looked at
	maxPrefixTerms = 24    // the most frequent ones are searched
	maxPrefixDocs  = 20000 // postings they may have together
	maxBesideDocs  = 2000  // likewise, beside a word that is there as typed
	maxNearTerms   = 8

	rareShare    = 20000 // a word in fewer than one of so many documents is rare
	rareMultiple = 10    // and stands aside for one so much more frequent
)

// kinship is the relation of a term to a typed word.
type kinship uint8

const (
	itself kinship = iota // the word or another form of it
	joined                // written together with its neighbour
	longer                // a word that begins so
	nearby                // a near spelling
)

// alternative is one term that a typed word may stand for, and the worth of an impact of 1 in it.
type alternative struct {
	term  uint32
	worth float32
	as    kinship
}

// wanted is one typed word: a document scores the best of the alternatives.
type wanted struct {
	text   string
	phrase bool          // part of one
	alts   []alternative // best worth first
	idf    float32       // weight of the word for coordination
}

func (x *Index) idf(df int) float64 {
	n := x.n
	if x.like != nil {
		n += x.like.n
	}
	df = min(df, n)
	return math.Log1p((float64(n-df) + 0.5) / (float64(df) + 0.5))
}

// Like makes the words of x weigh as if its documents were in the other index, so that scores of both
// can be compared. The other index must not change while x is searched.
func (x *Index) Like(other *Index) { x.like = other }

// docFreq is the number of documents of a stem, those of the other index included.
func (x *Index) docFreq(term uint32) int {
	n := x.words.docFreq(term)
	if x.like != nil && term != 0 {
		n += x.like.words.docFreq(x.like.words.lookUpTerm(x.words.list[term].text))
	}
	return n
}

// candidate is a term on its way to become an alternative.
type candidate struct {
	term     uint32
	df       int
	distance int
	text     string
}

// compareCandidates orders candidates: near before far, frequent before rare.
func compareCandidates(a, b candidate) int {
	return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(b.df, a.df), strings.Compare(a.text, b.text))
}

// best keeps the first most candidates in the order of better, one per term.
type best struct {
	list []candidate
	most int
}

// rejects reports whether no candidate of that distance and frequency gets in.
func (b *best) rejects(distance, df int) bool {
	n := len(b.list)
	return n == b.most && (distance > b.list[n-1].distance || distance == b.list[n-1].distance && df < b.list[n-1].df)
}

func (b *best) offerCandidate(c candidate) {
	if b.rejects(c.distance, c.df) {
		return
	}
	if len(b.list) == b.most && compareCandidates(c, b.list[len(b.list)-1]) >= 0 {
		return
	}
	if i := slices.IndexFunc(b.list, func(o candidate) bool { return o.term == c.term }); i >= 0 {
		if compareCandidates(c, b.list[i]) >= 0 {
			return
		}
		b.list = slices.Delete(b.list, i, i+1)
	}
	i, _ := slices.BinarySearchFunc(b.list, c, compareCandidates)
	b.list = slices.Insert(b.list, i, c)
	if len(b.list) > b.most {
		b.list = b.list[:b.most]
	}
}

// expandWord expands one typed word. The compounds, if any, are other ways to
// write it together with its neighbours.
func (x *Index) expandWord(text string, prefix, near bool, compounds ...string) wanted {
	exact := x.words.termOf(text)
	exactDocs := x.docFreq(exact)
	w := wanted{text: text}
	add := func(term uint32, as kinship, weight, cap float64) {
		if term == 0 || slices.ContainsFunc(w.alts, func(a alternative) bool { return a.term == term }) {
			return
		}
		w.alts = append(w.alts, alternative{term, float32(min(x.idf(x.docFreq(term)), cap) * weight), as})
	}
	limit := math.Inf(1)
	if exact != 0 {
		limit = x.idf(exactDocs)
		w.idf = float32(limit)
		add(exact, itself, 1, limit)
	}
	for _, c := range compounds {
		add(x.words.termOf(c), joined, weightJoined, math.Inf(1))
	}
	var others []candidate
	if prefix {
		others = x.completeWord(text, exact)
	}
	switch {
	case !near || len(w.alts) > 0 && exact == 0:
	case exact == 0 && len(others) == 0, exact != 0 && exactDocs*rareShare <= x.n:
		others = append(others, x.nearTerms(text, maxEdits(text), exact, max(1, exactDocs*rareMultiple))...)
	}
	if exact == 0 {
		// The word weighs as much as all it may stand for.
		docs := 0
		for _, c := range others {
			docs += c.df
		}
		for _, a := range w.alts {
			docs += x.docFreq(a.term)
		}
		limit = x.idf(docs)
		w.idf = float32(limit)
	}
	for _, c := range others {
		as, weight := longer, weightPrefix
		if c.distance > 0 {
			as, weight = nearby, weightNear/float64(c.distance)
		}
		add(c.term, as, weight, limit)
	}
	slices.SortStableFunc(w.alts, func(a, b alternative) int { return cmp.Compare(b.worth, a.worth) })
	return w
}

// completeWord returns the most frequent terms that have a word starting
// with text.
func (x *Index) completeWord(text string, exact uint32) []candidate {
	if utf8.RuneCountInString(text) < minPrefixRunes {
		return nil
	}
	b := best{most: maxPrefixTerms}
	end := x.words.prefixEnd(text)
	scanned := 0
	x.words.order.eachFrom(text, func(id uint32) bool {
		if id == end {
			return false
		}
		if t := x.words.termID[id]; t != exact {
			// Words come in their order: of two as frequent, the first stays.
			if df := x.words.docFreq(t); !b.rejects(0, df-1) {
				b.offerCandidate(candidate{term: t, df: df, text: x.words.list[id].text})
			}
		}
		scanned++
		return scanned < maxPrefixScan
	})
	docs, most := 0, maxPrefixDocs
	if exact != 0 {
		most = maxBesideDocs
	}
	return slices.DeleteFunc(b.list, func(c candidate) bool {
		if docs+c.df > most && docs > 0 {
			return true
		}
		docs += c.df
		return false
	})
}

// prefixEnd returns the first word after all with the prefix, 0 if there is none, so that a search need
// not read each word.
func (w *words) prefixEnd(prefix string) (end uint32) {
	next := []byte(prefix)
	next[len(next)-1]++ // no UTF-8 has the greatest byte
	w.order.eachFrom(string(next), func(id uint32) bool { end = id; return false })
	return end
}

// maxEdits is the number of edits forgiven in a word.
func maxEdits(text string) int {
	switch n := utf8.RuneCountInString(text); {
	case n >= 8:
		return 2
	case n >= 4:
		return 1
	}
	return 0
}

// nearTerms returns the terms closest to text among those in at least minDocs
// documents; all have the same distance.
func (x *Index) nearTerms(text string, most int, exact uint32, minDocs int) []candidate {
	if most == 0 {
		return nil
	}
	b := best{most: maxNearTerms}
	x.words.near.eachNear(x.words.list, text, most, func(id uint32, distance int) {
		t := x.words.termID[id]
		if df := x.words.docFreq(t); t != exact && df >= minDocs {
			b.offerCandidate(candidate{term: t, df: df, distance: distance, text: x.words.list[id].text})
		}
	})
	for i, c := range b.list {
		if c.distance > b.list[0].distance {
			return b.list[:i]
		}
	}
	return b.list
}
