package bm25

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Segment is a batch of some thousand documents for an index. All work that
// depends on one document or one word is done once and without the index, with
// words numbered within the segment; the index then receives whole runs of
// postings. The calls have this order, each with the lock that it needs:
//
//	s.Add(fields...)       none, for each document
//	s.Resolve(from, to)    reading, until all words are looked up
//	s.Sort()               none
//	x.Intern(s)            writing; from here on its words are in use
//	s.Build(keys)          none
//	s.Look()               reading
//	s.Pair()               none
//	x.Append(s, first)     writing; from here on its documents are found
//	s.Reset()              none
//
// Between Intern and Append the dictionary has words without documents.
type Segment struct {
	x      *Index
	tokens tokenizer
	words  Lexicon
	uses   []uint32            // number of occurrences of each word
	stream []uint32            // all documents as numbers: wordsFrom+1+word, and the marks of doc
	ends   []uint32            // end of each document in stream
	sizes  [][maxFields]uint16 // number of words in each field of each document

	texts []string // each word's text
	ids   []uint32 // each word's id in the index, 0 if unknown
	epoch uint64
	stems []freshWord // unknown words, sorted by text

	terms      []uint32 // distinct stems, as ids in the index
	termOf     []uint32 // position in terms of each word's stem
	byTerm     dense
	docs       []doc
	starts     []uint32 // start of each term's postings in runs
	runs       []posting
	flat       []uint64 // posting of a document and, in the upper half, its term; ordered by document
	sums       []termSum
	touched    []uint32
	keyed      []keyed
	orderIDs   []uint32
	rec        []byte
	paired     []bool
	pairOf     dense
	pairStarts []uint32
	found      []uint64 // document and, in the upper half, the number of a pair
	pairDocs   []posting
}

type freshWord struct {
	head   uint64
	number uint32
	text   string
	stem   string // "" if the word is its own stem
}

type keyed struct {
	head uint64
	doc  uint32
}

// termSum sums the occurrences of one term in the document that Build processes.
type termSum struct {
	doc   uint32 // number of the document plus 1; other values mean that the sum is outdated
	field uint8
	count uint8
	mask  uint16
	sum   float64
}

// MaxSegment is the recommended maximum of documents in a segment. Append takes about 4 µs for each
// document, and searches wait for it; a segment half as large would need a tenth more work in total.
const MaxSegment = 1 << 11

// NewSegment returns an empty segment for the index x. Several segments of one index may be filled concurrently.
func (x *Index) NewSegment() *Segment { return &Segment{x: x} }

// Len returns the number of documents added.
func (s *Segment) Len() int { return len(s.ends) }

// Size returns the number of words and marks added. The time of Build and Append grows with it.
func (s *Segment) Size() int { return len(s.stream) }

// Words returns the number of distinct words added.
func (s *Segment) Words() int { return s.words.Len() }

// Reset empties the segment and keeps its memory for reuse.
func (s *Segment) Reset() {
	s.words.Reset()
	s.uses, s.stream, s.ends, s.sizes = s.uses[:0], s.stream[:0], s.ends[:0], s.sizes[:0]
	clear(s.texts)
	clear(s.stems)
	clear(s.docs)
	s.texts, s.ids, s.stems, s.docs = s.texts[:0], s.ids[:0], s.stems[:0], s.docs[:0]
}

// Add splits a document into words, as Analyze does, and appends it to the segment.
func (s *Segment) Add(fields ...[]string) {
	var size [maxFields]uint16
	at := 0
	gap := false
	s.tokens.reset()
	for f, list := range fields[:min(len(fields), len(s.x.fields))] {
		left := maxFieldWords
		for _, v := range list {
			for ; at < f; at++ {
				s.stream = append(s.stream, markField)
				gap = false
			}
			if gap {
				s.stream = append(s.stream, markGap)
			}
			gap = true
			from := len(s.tokens.toks)
			words := s.tokens.addWords(v, left)
			left -= words
			size[f] += uint16(words)
			s.tokens.addDetached(from)
			toks := s.tokens.toks[from:]
			for _, t := range toks {
				if !t.joined {
					s.addWord(t)
				}
			}
			if len(toks) == words {
				continue
			}
			for _, t := range toks {
				if t.joined {
					s.stream = append(s.stream, markGap)
					s.addWord(t)
				}
			}
		}
	}
	s.ends = append(s.ends, uint32(len(s.stream)))
	s.sizes = append(s.sizes, size)
}

func (s *Segment) addWord(t token) {
	n := s.words.Number(s.tokens.tokenText(t))
	if int(n) == len(s.uses) {
		s.uses = append(s.uses, 0)
	}
	s.uses[n]++
	s.stream = append(s.stream, n+1+wordsFrom)
}

// Resolve looks up the words with the numbers from to to-1. The caller may unlock the index between two calls.
func (s *Segment) Resolve(from, to int) {
	if from == 0 {
		s.texts = s.words.Texts(s.texts[:0])
		s.ids = append(s.ids[:0], make([]uint32, len(s.texts))...)
		s.epoch = s.x.words.epoch
	}
	for n := from; n < to; n++ {
		s.ids[n] = s.x.words.lookupHash(s.texts[n], s.words.hashes[n])
	}
}

// Sort sorts the words that Resolve did not find and computes their stems.
func (s *Segment) Sort() {
	var buf [maxWordBytes]byte
	for n, id := range s.ids {
		if id == 0 {
			w := freshWord{head: keyHead(s.texts[n]), number: uint32(n), text: strings.Clone(s.texts[n])}
			if st := stemWord(append(buf[:0], w.text...)); string(st) != w.text {
				w.stem = string(st)
			}
			s.stems = append(s.stems, w)
		}
	}
	slices.SortFunc(s.stems, func(a, b freshWord) int {
		if a.head != b.head {
			return cmp.Compare(a.head, b.head)
		}
		return strings.Compare(a.text, b.text)
	})
}

// Intern adds the unknown words of a segment to the dictionary and counts the uses of all words.
func (x *Index) Intern(s *Segment) {
	w := x.words
	again := w.epoch != s.epoch // ids found by Resolve may be outdated
	for n, uses := range s.uses {
		if again && s.ids[n] != 0 {
			if s.ids[n] = w.lookupHash(s.texts[n], s.words.hashes[n]); s.ids[n] == 0 {
				// The word was removed since Resolve. That is rare, so the slower single insert is enough.
				s.ids[n] = w.internWord(s.texts[n])
				w.list[s.ids[n]].refs += uses - 1
				continue
			}
		}
		if id := s.ids[n]; id != 0 {
			w.list[id].refs += uses
		}
	}
	w.makeRoom(len(s.stems) - len(w.free))
	fresh := s.orderIDs[:0]
	for i := range s.stems {
		f := &s.stems[i]
		h := s.words.hashes[f.number]
		id, ok := w.byText.FindHash(f.text, h)
		switch {
		case !ok:
			id = w.enterHash(f.text, h)
		case w.list[id].refs > 0: // added by another segment since Resolve
			w.list[id].refs += s.uses[f.number]
			s.ids[f.number] = id
			continue
		}
		w.list[id].refs = s.uses[f.number]
		s.ids[f.number] = id
		fresh = append(fresh, id)
		w.near.addWord(w.list, id)
		t := id
		if f.stem != "" {
			if t, ok = w.byText.Find(f.stem); !ok {
				t = w.enterHash(f.stem, HashOf(f.stem))
			}
		}
		w.list[t].stems++
		w.termID[id] = t
	}
	w.order.mergeIDs(fresh)
	s.orderIDs = fresh
	// The terms are copied, so that Build can run without access to the index.
	s.terms, s.termOf = s.terms[:0], s.termOf[:0]
	for _, id := range s.ids {
		s.termOf = append(s.termOf, w.termID[id])
	}
}

// Build computes the stored form and the postings of each document. keys has a key for each, in the order of Add.
func (s *Segment) Build(keys []string) {
	s.byTerm.reset()
	for n, t := range s.termOf {
		s.termOf[n] = s.byTerm.numberOf(uint64(t))
	}
	s.terms = s.terms[:0]
	for _, t := range s.byTerm.keys {
		s.terms = append(s.terms, uint32(t))
	}
	s.sums = append(s.sums[:0], make([]termSum, len(s.terms))...)
	s.starts = append(s.starts[:0], make([]uint32, len(s.terms)+1)...)
	s.flat, s.keyed = s.flat[:0], s.keyed[:0]
	from := uint32(0)
	for d, end := range s.ends {
		s.docs = append(s.docs, s.storeDoc(keys[d], s.stream[from:end]))
		s.sumPostings(uint32(d), s.stream[from:end])
		s.keyed = append(s.keyed, keyed{keyHead(keys[d]), uint32(d)})
		from = end
	}
	slices.SortFunc(s.keyed, func(a, b keyed) int {
		if a.head != b.head {
			return cmp.Compare(a.head, b.head)
		}
		return cmp.Or(strings.Compare(keys[a.doc], keys[b.doc]), cmp.Compare(a.doc, b.doc))
	})
	// Sort the postings by term; those of one term stay in the order of documents.
	at := uint32(0)
	for t, n := range s.starts {
		s.starts[t] = at
		at += n
	}
	s.runs = slices.Grow(s.runs[:0], len(s.flat))[:len(s.flat)]
	for _, f := range s.flat {
		t := f >> 32
		s.runs[s.starts[t]] = posting(f)
		s.starts[t]++
	}
	copy(s.starts[1:], s.starts) // the loop moved each start to the end of its term
	s.starts[0] = 0
}

// storeDoc returns the stored form of a document; stream is its part of s.stream.
func (s *Segment) storeDoc(key string, stream []uint32) doc {
	rec := append(s.rec[:0], key...)
	for _, w := range stream {
		if w > wordsFrom {
			rec = appendWord(rec, s.ids[w-wordsFrom-1])
		} else {
			rec = append(rec, byte(w))
		}
	}
	s.rec = rec
	return doc{rec: string(rec), cut: uint32(len(key))}
}

// sumPostings appends the postings of document d to flat. It computes the same impacts as Index.writePostings.
func (s *Segment) sumPostings(d uint32, stream []uint32) {
	var norm [maxFields]float64
	for f, field := range s.x.fields {
		norm[f] = field.normOf(int(s.sizes[d][f]))
	}
	s.touched = s.touched[:0]
	field := uint8(0)
	for _, w := range stream {
		if w <= wordsFrom {
			if w == markField {
				field++
			}
			continue
		}
		t := s.termOf[w-wordsFrom-1]
		sum := &s.sums[t]
		switch {
		case sum.doc != d+1:
			*sum = termSum{doc: d + 1, field: field, count: 1, mask: 1 << field}
			s.touched = append(s.touched, t)
		case sum.field == field:
			sum.count = min(sum.count+1, maxRepeats)
		default:
			sum.sum += norm[sum.field] * float64(sum.count)
			sum.field, sum.count = field, 1
			sum.mask |= 1 << field
		}
	}
	for _, t := range s.touched {
		sum := &s.sums[t]
		impact := impactOf(sum.sum + norm[sum.field]*float64(sum.count))
		s.flat = append(s.flat, uint64(t)<<32|uint64(newPosting(d, impact, uint32(sum.mask))))
		s.starts[t]++
	}
}

// normOf returns the weight of one occurrence in a field with that number of words (BM25F).
func (f *Field) normOf(words int) float64 {
	return f.Weight / (1 - f.Norm + f.Norm*float64(words)/max(1, f.Length))
}

// impactOf saturates the weighted sum of occurrences and scales it to 0…fullImpact, rounded up so that a
// match never has impact 0.
func impactOf(sum float64) uint32 {
	return uint32(min(math.Ceil(sum/(sum+saturation)*fullImpact), fullImpact))
}
