package bm25

import (
	"cmp"
	"slices"
	"strings"
)

// Fold returns the words of a text as the index knows them, in small letters
// without diacritics.
func Fold(text string) []string {
	var t tokenizer
	t.addWords(text, maxQueryWords)
	var list []string
	for _, k := range t.toks {
		if !k.joined {
			list = append(list, string(t.tokenText(k)))
		}
	}
	return list
}

// Terms calls yield for each word that a document with this field would be
// found by, as Fold writes words, those of compounds and the compounds written
// together, again where it is again, and for the stem of each. It reads no more
// than an index does.
func Terms(values []string, yield func(term string)) {
	var t tokenizer
	left := maxFieldWords
	for _, v := range values {
		left -= t.addWords(v, left)
	}
	for _, k := range t.toks {
		for _, f := range wordForms(string(t.tokenText(k))) {
			yield(f)
		}
	}
}

// wordForms are a word and its stem, if that is another.
func wordForms(word string) []string {
	if st := string(stemWord([]byte(word))); st != word {
		return []string{word, st}
	}
	return []string{word}
}

// Wanted returns the words that a query looks for, each with the forms of which
// Terms yields at least one of a document that has the word.
func Wanted(text string) (words [][]string) {
	for _, c := range parseQuery(text).clauses {
		if c.exclude {
			continue
		}
		for _, w := range c.parts {
			list := wordForms(w)
			if c.joined != "" {
				list = append(list, c.joined)
			}
			words = append(words, list)
		}
	}
	return words
}

// Bounds of Begins.
const (
	maxBeginWords = 24   // words of the dictionary, the most frequent ones
	maxBeginLooks = 8000 // their postings looked at
	maxBeginReads = 400  // their documents read for the very word
)

// Begins returns up to n documents in which one of the fields has a word that
// begins like the last one of text, and which have the other words of text
// anywhere: those in prefer first, then those with the very word, then by
// impact. Of words that many have, it looks at some thousand documents.
func (x *Index) Begins(text string, fields []int, prefer Bits, n int) []int {
	typed := Fold(text)
	if len(typed) == 0 || n <= 0 {
		return nil
	}
	prefix, before := typed[len(typed)-1], typed[:len(typed)-1]
	var others []*postings
	for _, w := range before {
		others = append(others, x.words.postingsOf(x.words.termOf(w)))
	}
	mask := uint16(0)
	for _, f := range fields {
		mask |= 1 << f
	}
	exact := uint32(0)
	if id := x.words.lookUp(prefix); id != 0 {
		exact = x.words.termID[id]
	}
	b := best{most: maxBeginWords}
	scanned := 0
	x.words.order.eachFrom(prefix, func(id uint32) bool {
		w := x.words.list[id].text
		if !strings.HasPrefix(w, prefix) {
			return false
		}
		t := x.words.termID[id]
		b.offerCandidate(candidate{term: t, df: x.words.docFreq(t), text: w})
		scanned++
		return scanned < maxPrefixScan
	})
	if exact != 0 && !slices.ContainsFunc(b.list, func(c candidate) bool { return c.term == exact }) {
		b.list = append(b.list, candidate{term: exact})
	}
	type pick struct {
		doc  uint32
		rank uint32
	}
	const preferred, very = 2 << impactBits, 1 << impactBits
	order := func(a, b pick) int { return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(a.doc, b.doc)) }
	var picks []pick
	reads, looks := maxBeginReads, maxBeginLooks
	for _, c := range b.list {
		extra := uint32(0)
		if c.term == exact {
			extra = very
		}
		look := func(doc uint32, e posting) {
			rank := extra + e.impact()
			if prefer.Has(int(doc)) {
				rank += preferred
			}
			p := pick{doc, rank}
			if e.fields()&mask == 0 || len(picks) == n && order(p, picks[n-1]) >= 0 {
				return
			}
			for _, o := range others {
				if _, ok := o.getPosting(doc); !ok {
					return
				}
			}
			if reads--; reads < 0 || !x.hasPrefix(doc, mask, prefix) {
				return
			}
			if i := slices.IndexFunc(picks, func(o pick) bool { return o.doc == doc }); i >= 0 {
				if order(p, picks[i]) >= 0 {
					return
				}
				picks = slices.Delete(picks, i, i+1)
			}
			i, _ := slices.BinarySearchFunc(picks, p, order)
			picks = slices.Insert(picks, i, p)
			picks = picks[:min(len(picks), n)]
		}
		p := x.words.postingsOf(c.term)
		if p.many == nil {
			p.eachPosting(look)
			continue
		}
		for i := range p.many.list {
			l := &p.many.list[i]
			if len(picks) == n && preferred+extra+uint32(l.top) < picks[n-1].rank {
				continue
			}
			if looks -= len(l.list); looks < 0 {
				break
			}
			for _, e := range l.list {
				if e.fields()&mask != 0 {
					look(l.base|e.low(), e)
				}
			}
		}
	}
	docs := make([]int, len(picks))
	for i, p := range picks {
		docs[i] = int(p.doc)
	}
	return docs
}

// hasPrefix reports whether one of the fields of a document has a word that
// begins so.
func (x *Index) hasPrefix(doc uint32, fields uint16, prefix string) bool {
	for f, w := range x.docs[doc].eachPlace {
		if w != 0 && fields&(1<<f) != 0 && strings.HasPrefix(x.words.list[w].text, prefix) {
			return true
		}
	}
	return false
}
