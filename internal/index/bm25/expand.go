package bm25

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Weights and bounds of the alternatives that a typed word is expanded to. A weight is relative to 1 for
// the word as typed.
const (
	weightJoined = 0.9 // "chatbot" for the typed "chat bot"
	weightPrefix = 0.5
	weightNear   = 0.6 // divided by the edit distance

	minPrefixRunes = 2
	maxPrefixScan  = 512   // words with the prefix that are read
	maxPrefixTerms = 24    // most frequent terms with the prefix that are searched
	maxPrefixDocs  = 20000 // postings of all these terms together
	maxBesideDocs  = 2000  // the same if the typed word itself is in the dictionary
	maxNearTerms   = 8

	rareShare    = 20000 // a word in at most 1/rareShare of the documents is rare
	rareMultiple = 10    // near spellings of a rare word must be this many times more frequent
)

// kinship is the relation of an alternative term to the typed word.
type kinship uint8

const (
	itself kinship = iota // the typed word or another form of it, such as the plural
	joined                // the typed word written together with the word before or after it
	longer                // a word that begins with the typed word
	nearby                // a word with a near spelling
)

// alternative is one term that a typed word is expanded to. worth is the score of an impact of 1 in that
// term: its idf times the weight of the kinship.
type alternative struct {
	term  uint32
	worth float32
	as    kinship
}

// wanted is one typed word with its alternatives. A document scores only the best alternative that it has.
type wanted struct {
	text   string
	phrase bool          // true if the word is part of a quoted phrase
	alts   []alternative // highest worth first
	idf    float32       // weight in the coordination factor, see Match.scoreOf
	guess  string        // if no document has the word: the best completion or near spelling; "" if there is none
}

func (x *Index) idf(df int) float64 {
	n := x.n
	if x.like != nil {
		n += x.like.n
	}
	df = min(df, n)
	return math.Log1p((float64(n-df) + 0.5) / (float64(df) + 0.5))
}

// Like makes scores of x comparable with those of another index: words are weighted as if the documents of x were
// in other. other must not change while x is searched. It is for a small index of documents that are not in other.
func (x *Index) Like(other *Index) { x.like = other }

// docFreq returns the number of documents with a stem, including those of the index given to Like. It is
// 0 for term 0.
func (x *Index) docFreq(term uint32) int {
	n := x.words.docFreq(term)
	if x.like != nil && term != 0 {
		n += x.like.words.docFreq(x.like.words.lookUpTerm(x.words.list[term].text))
	}
	return n
}

// candidate is a term that may become an alternative for a typed word, with the data that decides: the
// number of documents (df) and the edit distance to the typed word (0 for a completion).
type candidate struct {
	term     uint32
	df       int
	distance int
	text     string
}

// compareCandidates orders candidates by ascending distance, then descending frequency, then text.
func compareCandidates(a, b candidate) int {
	return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(b.df, a.df), strings.Compare(a.text, b.text))
}

// best collects the first most candidates in the order of compareCandidates, one for each term.
type best struct {
	list []candidate
	most int
}

// rejects reports whether best would not keep any candidate with this distance and frequency.
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

// expandWord returns a typed word with its alternatives. prefix also admits words that begin with text, near also
// near spellings; near spellings are tried only if text is unknown or rare. compounds are spellings of text joined
// with the neighbouring words. The result has no alternatives if no document can match.
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
		// An unknown word gets the idf that all its alternatives together would have.
		docs := 0
		for _, c := range others {
			docs += c.df
		}
		for _, a := range w.alts {
			docs += x.docFreq(a.term)
		}
		limit = x.idf(docs)
		w.idf = float32(limit)
		if len(others) > 0 {
			w.guess = others[0].text
		}
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

// completeWord returns the most frequent terms with a word that begins with text, except the term exact.
// It returns none for texts shorter than minPrefixRunes, and keeps within maxPrefixDocs postings
// (maxBesideDocs if exact is not 0).
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
			// Words arrive in alphabetical order, so of two equally frequent terms the earlier one is kept.
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

// prefixEnd returns the id of the first word after all words with the prefix, or 0 if there is none. A
// loop over the words can stop at that id instead of comparing the text of every word.
func (w *words) prefixEnd(prefix string) (end uint32) {
	next := []byte(prefix)
	next[len(next)-1]++ // cannot overflow: no byte of valid UTF-8 is 0xFF
	w.order.eachFrom(string(next), func(id uint32) bool { end = id; return false })
	return end
}

// maxEdits returns the number of typing errors that are tolerated in a word, by its length in runes.
func maxEdits(text string) int {
	switch n := utf8.RuneCountInString(text); {
	case n >= 8:
		return 2
	case n >= 4:
		return 1
	}
	return 0
}

// nearTerms returns the terms with the smallest edit distance to text, at most most, that at least
// minDocs documents have; exact is left out. All results have the same distance.
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
