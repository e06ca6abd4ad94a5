package bm25

import (
	"cmp"
	"slices"
	"strings"
)

// Fold splits a text into words as the index stores them: lower case, without diacritics, at most 16.
// Compounds written together are not included.
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

// Terms calls yield with each word by which an index would find a document with these values in one field, in the
// form that Fold returns: single words, parts of compounds, compounds written together, and the stem of each. A
// word is repeated as often as it occurs. Words after the first 2,000 of a field are skipped, as in an index.
func Terms(values []string, yield func(term string)) {
	var t tokenizer
	left := maxFieldWords
	for _, v := range values {
		from := len(t.toks)
		left -= t.addWords(v, left)
		t.addDetached(from)
	}
	for _, k := range t.toks {
		for _, f := range wordForms(string(t.tokenText(k))) {
			yield(f)
		}
	}
}

// wordForms returns a word, followed by its stem if the stem differs.
func wordForms(word string) []string {
	if st := string(stemWord([]byte(word))); st != word {
		return []string{word, st}
	}
	return []string{word}
}

// Wanted returns, for each word that a query looks for, its alternative forms: if a document has the
// word, Terms yields at least one of them. Excluded words are left out. Portals use this to test a query
// against a summary of another portal.
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

// Bounds of Begins, which limit its cost for a prefix of many words.
const (
	maxBeginWords = 24   // most frequent words with the prefix
	maxBeginLooks = 8000 // postings that are read
	maxBeginReads = 400  // documents whose text is read to find the exact word
)

// Begins returns at most n documents that have, in one of the given fields (numbers in the order of
// New), a word that begins with the last word of text, and all other words of text in any field.
// Documents in prefer come first, then those with exactly the last word, then those with the highest
// impact. Very frequent words are searched only in part, see the bounds above.
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

// hasPrefix reports whether a document has a word with the prefix in one of the fields, a mask with bit
// f for field f.
func (x *Index) hasPrefix(doc uint32, fields uint16, prefix string) bool {
	for f, w := range x.docs[doc].eachPlace {
		if w != 0 && fields&(1<<f) != 0 && strings.HasPrefix(x.words.list[w].text, prefix) {
			return true
		}
	}
	return false
}
