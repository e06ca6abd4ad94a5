package bm25

import (
	"fmt"
	"math"
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
	maxFields  = 8 // a mask of a byte in the accumulators
	saturation = 2 // k1: weighted occurrences at which half is reached
	maxRepeats = 4 // further occurrences in one field do not count
)

// Index is the full-text index. Make one with New; see the package comment
// for what may run at once.
type Index struct {
	fields []Field
	words  *words
	docs   []doc // by id
	all    Bits
	n      int
	order  sorted // documents by key
	pool   scratchPool

	terms, old []uint64 // scratch of Put and Remove
}

// doc is what is remembered of a document: its key and the ids of its words
// in order, 0 where a value ends and before each joined compound.
type doc struct {
	key string
	seq []uint32
}

// Doc is an analyzed document on its way into an index.
type Doc struct {
	buf    []byte
	toks   []token
	values []docValue
}

// docValue is one value of a field: toks[from:to].
type docValue struct {
	field    int
	from, to int
	words    int
}

// New returns an empty index for documents of these fields, at most 8. It
// panics on more: that is an error of the program.
func New(fields ...Field) *Index {
	if len(fields) > maxFields {
		panic(fmt.Sprintf("bm25: %d fields, at most %d", len(fields), maxFields))
	}
	x := &Index{fields: slices.Clone(fields), words: newWords()}
	x.order.key = func(id uint32) string { return x.docs[id].key }
	return x
}

// Len returns the number of documents.
func (x *Index) Len() int { return x.n }

// All returns the ids of all documents; the caller must not change it.
func (x *Index) All() Bits { return x.all }

// Analyze splits a document into words. Each argument holds the values of
// one field, in the order given to New; phrases do not reach across values.
// It reads nothing that changes and needs no lock.
func (x *Index) Analyze(fields ...[]string) Doc {
	size := 0
	for _, values := range fields {
		for _, v := range values {
			size += len(v)
		}
	}
	t := tokenizer{buf: make([]byte, 0, size+size/4), toks: make([]token, 0, size/5)}
	var d Doc
	for f, values := range fields[:min(len(fields), len(x.fields))] {
		left := maxFieldWords
		for _, v := range values {
			from := len(t.toks)
			words := t.add(v, left)
			left -= words
			d.values = append(d.values, docValue{field: f, from: from, to: len(t.toks), words: words})
		}
	}
	d.buf, d.toks = t.buf, t.toks
	return d
}

// Put adds the document or replaces its earlier form. Ids should be small:
// memory is used up to the greatest. The key orders documents of one score.
func (x *Index) Put(id int, key string, d Doc) {
	for id >= len(x.docs) {
		x.docs = append(x.docs, doc{})
	}
	had := x.all.Has(id)
	x.old = x.old[:0]
	oldSeq := x.docs[id].seq
	if had {
		x.old = x.termsOf(x.old, oldSeq)
		if x.docs[id].key != key {
			x.order.remove(uint32(id))
		}
	}
	seq := x.sequence(d)
	x.post(uint32(id), d)
	for _, w := range oldSeq {
		if w != 0 {
			x.words.release(w)
		}
	}
	x.docs[id].seq = seq
	if !had || x.docs[id].key != key {
		x.docs[id].key = key
		x.order.insert(uint32(id))
	}
	if !had {
		x.all.Add(id)
		x.n++
	}
}

// Remove forgets the document; an unknown id does nothing.
func (x *Index) Remove(id int) {
	if !x.all.Has(id) {
		return
	}
	x.old = x.termsOf(x.old[:0], x.docs[id].seq)
	for _, t := range x.old {
		x.words.postings(uint32(t)).remove(uint32(id))
	}
	for _, w := range x.docs[id].seq {
		if w != 0 {
			x.words.release(w)
		}
	}
	x.order.remove(uint32(id))
	x.docs[id] = doc{}
	x.all.Drop(id)
	x.n--
}

// sequence interns the words of d and notes its (term, field) pairs in
// x.terms.
func (x *Index) sequence(d Doc) []uint32 {
	x.terms = x.terms[:0]
	n := len(d.values)
	for _, t := range d.toks {
		if n++; t.joined {
			n++
		}
	}
	seq := make([]uint32, 0, n)
	for _, v := range d.values {
		for _, joined := range [2]bool{false, true} {
			for _, t := range d.toks[v.from:v.to] {
				if t.joined != joined {
					continue
				}
				w := x.words.intern(d.buf[t.from:t.to])
				if joined {
					seq = append(seq, 0)
				}
				seq = append(seq, w)
				x.terms = append(x.terms, uint64(x.words.termID[w])<<8|uint64(v.field))
			}
		}
		seq = append(seq, 0)
	}
	slices.Sort(x.terms)
	return seq
}

// post writes the postings of d from x.terms and removes those of x.old that
// are no longer among them.
func (x *Index) post(id uint32, d Doc) {
	var norm [maxFields]float64
	for f, field := range x.fields {
		words := 0
		for _, v := range d.values {
			if v.field == f {
				words += v.words
			}
		}
		norm[f] = field.Weight / (1 - field.Norm + field.Norm*float64(words)/max(1, field.Length))
	}
	old := x.old
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
			x.words.postings(uint32(old[0])).remove(id)
			old = old[1:]
		}
		if len(old) > 0 && old[0] == t {
			old = old[1:]
		}
		impact := math.Ceil(sum / (sum + saturation) * fullImpact)
		x.words.postings(uint32(t)).put(posting{doc: id, impact: uint16(min(impact, fullImpact)), fields: mask})
	}
	for _, t := range old {
		x.words.postings(uint32(t)).remove(id)
	}
}

// termsOf appends the distinct terms of a sequence in ascending order.
func (x *Index) termsOf(dst []uint64, seq []uint32) []uint64 {
	for _, w := range seq {
		if w != 0 {
			dst = append(dst, uint64(x.words.termID[w]))
		}
	}
	slices.Sort(dst)
	return slices.Compact(dst)
}

// names returns the names of the fields in a mask, in the order of New.
func (x *Index) names(mask uint16) []string {
	var names []string
	for f := range x.fields {
		if mask&(1<<f) != 0 {
			names = append(names, x.fields[f].Name)
		}
	}
	return names
}
