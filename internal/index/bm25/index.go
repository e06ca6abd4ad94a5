package bm25

import (
	"fmt"
	"slices"
)

// Field describes one part of every document and its influence on the score.
type Field struct {
	Name   string
	Weight float64
	// Length is the number of words of an ordinary text in the field. A shorter text scores higher for
	// each word, a longer one lower.
	Length float64
	// Norm is the strength of that length normalization, from 0 (none) to 1 (proportional); b in BM25.
	Norm float64
}

// Constants of the ranking formula BM25F.
const (
	maxFields  = fieldBits // a posting has one bit for each field
	saturation = 2         // k1 in BM25: the weighted number of occurrences that gives half of the maximum impact
	maxRepeats = 4         // further occurrences of a word in one field do not count
)

// Index is a full-text index. Create it with New; it does not lock, see the package comment.
type Index struct {
	fields []Field
	masks  [1 << maxFields][]string // names of the fields in every possible mask
	words  *words
	docs   []doc // by document id; the zero doc if the id is not in use
	all    Bits
	n      int
	like   *Index // set by Like, else nil
	order  sorted // documents sorted by key
	pairs  pairs
	pool   scratchPool

	terms, old []uint64 // buffers of Put and Remove
	side       []uint64 // pairs of the document that Put adds, see pairs.addDoc
	fresh      []uint32
	rec        []byte
}

// New returns an empty index for documents with these fields, at most 6. It panics if there are more,
// which is a programming error.
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

// keys gives the sorted list Index.order the key of each document.
type keys struct{ *Index }

// Text implements Texts for keys of documents.
func (k keys) Text(id uint32) string { return k.docs[id].key() }

// Len returns the number of documents.
func (x *Index) Len() int { return x.n }

// All returns the set of the ids in use. The caller must not change it, and it changes with the index.
func (x *Index) All() Bits { return x.all }

// Put adds a document or replaces the one with the same id. key is the tie-breaker in the order of hits.
// Memory grows with the greatest id, so ids should be small. Put needs exclusive access.
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

// Remove deletes a document; an id that is not in use does nothing. Remove needs exclusive access.
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

// internWords adds the words of d to the dictionary, one use for each occurrence, and returns the stored form of d.
// It leaves the sorted (term, field) pairs in x.terms and the pairs of adjacent terms in x.side.
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
		last := uint32(0) // the previous term if its pairs are listed, else 0
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

// writePostings adds a posting for each term in x.terms and removes those of terms that are only in
// x.old. Terms that became common are left in x.fresh, for pairs.addDoc.
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

// termsOf appends to dst the distinct terms of a document in ascending order.
func (x *Index) termsOf(dst []uint64, d doc) []uint64 {
	for w := range d.eachWord {
		dst = append(dst, uint64(x.words.termID[w]))
	}
	slices.Sort(dst)
	return slices.Compact(dst)
}

// Fit reallocates the large slices of the index without most of their spare capacity. It is worth its
// cost after many documents were added.
func (x *Index) Fit() {
	x.docs, x.words.list, x.words.termID = Fitted(x.docs), Fitted(x.words.list), Fitted(x.words.termID)
}

// Fitted returns list, reallocated if its spare capacity is more than 1/32 of its length.
func Fitted[T any](list []T) []T {
	if room := len(list) / 32; cap(list)-len(list) > room {
		return append(make([]T, 0, len(list)+room), list...)
	}
	return list
}
