package bm25

import "slices"

// pairs maps two common terms (pairOf) to the documents in which the second directly follows the first.
// It makes phrases of two common words fast, which would otherwise read nearly all documents. Phrases
// with a rare term need no list, because few documents have the rare term. The pairs of a term are
// listed (blocks.paired) from when the term becomes common until it no longer is.
type pairs map[uint64]*postings

func pairOf(a, b uint32) uint64 { return uint64(a)<<32 | uint64(b) }

// hasPairs reports whether pairs lists the pairs of a term, that is, whether the term is common.
func (w *words) hasPairs(term uint32) bool {
	m := w.list[term].many
	return m != nil && m.paired
}

// eachPair calls yield with every two adjacent terms of a document whose pairs are listed. Pairs may repeat.
func (p pairs) eachPair(x *Index, id uint32, yield func(a, b uint32)) {
	last := uint32(0)
	for _, w := range x.docs[id].eachPlace {
		t := uint32(0)
		if w != 0 {
			if t = x.words.termID[w]; !x.words.hasPairs(t) {
				t = 0
			} else if last != 0 {
				yield(last, t)
			}
		}
		last = t
	}
}

// addDoc lists the pairs of a document that Put just stored; internWords left them in x.side. Then it starts to
// list the pairs of the terms in x.fresh, which became common, by reading all of their documents.
func (p pairs) addDoc(x *Index, id uint32) {
	for _, pair := range x.side {
		p.notePair(x, uint32(pair>>32), uint32(pair), id)
	}
	if len(x.fresh) == 0 {
		return
	}
	var docs Bits // documents of any of these terms, so that each is read once
	for _, t := range x.fresh {
		m := x.words.list[t].many
		m.paired = true
		for len(docs) < len(m.bits) {
			docs = append(docs, 0)
		}
		for i, w := range m.bits {
			docs[i] |= w
		}
	}
	for doc := range docs.Each {
		p.eachPair(x, uint32(doc), func(a, b uint32) {
			if slices.Contains(x.fresh, a) || slices.Contains(x.fresh, b) {
				p.notePair(x, a, b, uint32(doc))
			}
		})
	}
}

func (p pairs) notePair(x *Index, a, b, id uint32) {
	d := p[pairOf(a, b)]
	if d == nil {
		d = new(postings)
		p[pairOf(a, b)] = d
	}
	d.putDoc(id, 0, 0, len(x.docs))
}

// removeDoc removes a document from the lists of its pairs. It must be called before the stored document changes.
func (p pairs) removeDoc(x *Index, id uint32) {
	p.eachPair(x, id, func(a, b uint32) {
		if d := p[pairOf(a, b)]; d != nil {
			if d.removeDoc(id, len(x.docs)); d.n == 0 {
				delete(p, pairOf(a, b))
			}
		}
	})
}

// pruneTerms deletes all pairs of those terms that are no longer common.
func (p pairs) pruneTerms(x *Index, terms []uint64) {
	for _, t := range terms {
		m := x.words.list[t].many
		if m == nil || !m.paired || m.bits != nil {
			continue
		}
		m.paired = false
		for pair := range p {
			if pair>>32 == t || pair&(1<<32-1) == t {
				delete(p, pair)
			}
		}
	}
}
