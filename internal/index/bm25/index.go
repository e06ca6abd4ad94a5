package bm25

import (
	"fmt"
	"slices"
)

// Field is one weighted part of every document.
type Field struct {
	Name   string
	Weight float64
	// Length is the number of words at which the field has no bonus and no
	// malus for its length.
	Length float64
	// Norm is how much the length matters, 0 to 1 (b of BM25).
	Norm float64
}

// Tuning of the ranking.
const (
	maxFields  = fieldBits // the bits of a posting for fields
	saturation = 2         // k1: weighted occurrences at which half is reached
	maxRepeats = 4         // further occurrences in one field do not count
)

// Index is the full-text index. Make one with New; see the package comment for concurrent use.
type Index struct {
	fields []Field
	masks  [1 << maxFields][]string // names of the fields of every mask
	words  *words
	docs   []doc // by id
	all    Bits
	n      int
	like   *Index // see Like
	order  sorted // documents by key
	pairs  pairs
	pool   scratchPool

	terms, old []uint64 // scratch of Put and Remove
	side       []uint64 // likewise, see pairs
	fresh      []uint32
	rec        []byte
}

// New returns an empty index for documents of these fields, at most 6. It
// panics on more: that is an error of the program.
func New(fields ...Field) *Index {
	if len(fields) > maxFields {
		panic(fmt.Sprintf("bm25: %d fields, at most %d", len(fields), maxFields))
	}
	x := &Index{fields: slices.Clone(fields), words: newWords(), pairs: make(pairs)}
	for mask := range x.masks {
		for f := range fields {
			if mask&(1<<f) != 0 {
				x.masks[mask] = append(x.masks[mask], fields[f].Name)
			}
		}
	}
	x.order.texts = keys{x}
	return x
}

// keys are the keys of the documents of an index.
type keys struct{ *Index }

// Text implements Texts.
func (k keys) Text(id uint32) string { return k.docs[id].key() }

// Len returns the number of documents.
func (x *Index) Len() int { return x.n }

// All returns the ids of all documents; the caller must not change it.
func (x *Index) All() Bits { return x.all }

// Put adds the document or replaces its earlier form. Ids should be small:
// memory is used up to the greatest. The key orders documents of one score.
func (x *Index) Put(id int, key string, d Doc) {
	for id >= len(x.docs) {
		x.docs = append(x.docs, doc{})
	}
	had := x.all.Has(id)
	was := x.docs[id]
	x.old = x.old[:0]
	if had {
		x.old = x.termsOf(x.old, was)
		x.pairs.removeDoc(x, uint32(id))
		if was.key() != key {
			x.order.removeID(uint32(id))
		}
	}
	next := x.internWords(key, &d)
	x.writePostings(uint32(id), &d)
	if had {
		x.pairs.pruneTerms(x, x.old)
		for w := range was.eachWord {
			x.words.releaseUse(w)
		}
	}
	x.docs[id] = next
	if !had || was.key() != key {
		x.order.insertID(uint32(id))
	}
	if !had {
		x.all.Add(id)
		x.n++
	}
	x.pairs.addDoc(x, uint32(id))
}

// Remove forgets the document; an unknown id does nothing.
func (x *Index) Remove(id int) {
	if !x.all.Has(id) {
		return
	}
	x.pairs.removeDoc(x, uint32(id))
	x.old = x.termsOf(x.old[:0], x.docs[id])
	for _, t := range x.old {
		x.words.postingsOf(uint32(t)).removeDoc(uint32(id), len(x.docs))
	}
	x.pairs.pruneTerms(x, x.old)
	for w := range x.docs[id].eachWord {
		x.words.releaseUse(w)
	}
	x.order.removeID(uint32(id))
	x.docs[id] = doc{}
	x.all.Drop(id)
	x.n--
}

// internWords interns the words of d, notes its (term, field) pairs in x.terms and returns its stored
// form.
func (x *Index) internWords(key string, d *Doc) doc {
	fresh := d.ids != nil && d.epoch == x.words.epoch
	x.terms, x.side = x.terms[:0], x.side[:0]
	rec := append(x.rec[:0], key...)
	field := 0
	gap := false
	for _, v := range d.values {
		for ; field < v.field; field++ {
			rec = append(rec, markField)
			gap = false
		}
		if gap {
			rec = append(rec, markGap)
		}
		gap = true
		last := uint32(0) // the word before, if it is paired
		for _, joined := range [2]bool{false, true} {
			if joined && !v.joined {
				break
			}
			for i := v.from; i < v.to; i++ {
				t := d.toks[i]
				if t.joined != joined {
					continue
				}
				if joined {
					rec = append(rec, markGap)
					last = 0
				}
				var w uint32
				if fresh && d.ids[i] != 0 {
					w = d.ids[i]
					x.words.list[w].refs++
				} else {
					w = x.words.internWord(d.addWord(t))
				}
				rec = appendWord(rec, w)
				term := x.words.termID[w]
				x.terms = append(x.terms, uint64(term)<<8|uint64(v.field))
				if !x.words.hasPairs(term) {
					term = 0
				} else if last != 0 {
					x.side = append(x.side, pairOf(last, term))
				}
				last = term
			}
		}
	}
	slices.Sort(x.terms)
	x.rec = rec
	return doc{rec: string(rec), cut: uint32(len(key))}
}

// writePostings writes the postings of d from x.terms and removes those of x.old that
// are no longer among them.
func (x *Index) writePostings(id uint32, d *Doc) {
	var norm [maxFields]float64
	var length [maxFields]int
	for _, v := range d.values {
		length[v.field] += v.words
	}
	for f, field := range x.fields {
		norm[f] = field.normOf(length[f])
	}
	docs := len(x.docs)
	old := x.old
	x.fresh = x.fresh[:0]
	for i := 0; i < len(x.terms); {
		t := x.terms[i] >> 8
		sum, mask := 0.0, uint16(0)
		for i < len(x.terms) && x.terms[i]>>8 == t {
			pair, n := x.terms[i], 0
			for ; i < len(x.terms) && x.terms[i] == pair; i++ {
				n++
			}
			f := int(pair & 0xff)
			sum += norm[f] * float64(min(n, maxRepeats))
			mask |= 1 << f
		}
		for len(old) > 0 && old[0] < t {
			x.words.postingsOf(uint32(old[0])).removeDoc(id, docs)
			old = old[1:]
		}
		if len(old) > 0 && old[0] == t {
			old = old[1:]
		}
		p := x.words.postingsOf(uint32(t))
		p.putDoc(id, impactOf(sum), mask, docs)
		if p.many != nil && p.many.bits != nil && !p.many.paired {
			x.fresh = append(x.fresh, uint32(t))
		}
	}
	for _, t := range old {
		x.words.postingsOf(uint32(t)).removeDoc(id, docs)
	}
}

// termsOf appends the distinct terms of a document in ascending order.
func (x *Index) termsOf(dst []uint64, d doc) []uint64 {
	for w := range d.eachWord {
		dst = append(dst, uint64(x.words.termID[w]))
	}
	slices.Sort(dst)
	return slices.Compact(dst)
}

// Fit gives back the room for growth beyond a little, after many documents
// came at once.
func (x *Index) Fit() {
	x.docs, x.words.list, x.words.termID = Fitted(x.docs), Fitted(x.words.list), Fitted(x.words.termID)
}

// Fitted returns the list with little room for growth.
func Fitted[T any](list []T) []T {
	if room := len(list) / 32; cap(list)-len(list) > room {
		return append(make([]T, 0, len(list)+room), list...)
	}
	return list
}
