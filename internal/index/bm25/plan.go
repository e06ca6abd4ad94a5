package bm25

import (
	"encoding/binary"
	"math"
)

// Bounds of a plan. A plan is part of a cursor and thus comes from a client.
const (
	maxPlanWords = maxQueryWords
	maxPlanAlts  = 64 // alternatives of one word
)

// Plan encodes the terms of the match and their weights. The weights depend on the number of documents
// with each word. Further pages of a result reuse the plan of the first page through MatchPlan, so that
// their order stays the same when documents are added or removed.
func (m *Match) Plan() []byte {
	b := []byte{byte(len(m.words))}
	text := func(s string) {
		b = append(b, byte(len(s)))
		b = append(b, s...)
	}
	for _, w := range m.words {
		text(w.text)
		flags := byte(0)
		if w.phrase {
			flags = 1
		}
		b = append(b, flags, byte(len(w.alts)))
		b = binary.BigEndian.AppendUint32(b, math.Float32bits(w.idf))
		for _, a := range w.alts {
			text(m.x.words.list[a.term].text)
			b = append(b, byte(a.as))
			b = binary.BigEndian.AppendUint32(b, math.Float32bits(a.worth))
		}
	}
	return b
}

// CheckPlan reports whether b is a well-formed plan, as MatchPlan requires. A client may have changed its plan.
func CheckPlan(b []byte) bool {
	ok := true
	readPlan(b, func(wanted) {}, func(string, alternative) {}, &ok)
	return ok
}

// followPlan decodes a plan that CheckPlan accepted. Terms that are no longer in the dictionary are left out.
func (x *Index) followPlan(b []byte) []wanted {
	var words []wanted
	ok := true
	readPlan(b, func(w wanted) { words = append(words, w) }, func(term string, a alternative) {
		if a.term = x.words.lookUpTerm(term); a.term != 0 {
			w := &words[len(words)-1]
			w.alts = append(w.alts, a)
		}
	}, &ok)
	return words
}

func readPlan(b []byte, word func(wanted), alt func(string, alternative), ok *bool) {
	take := func(n int) []byte {
		if len(b) < n {
			*ok, b = false, nil
			return make([]byte, n)
		}
		head := b[:n]
		b = b[n:]
		return head
	}
	text := func() string { return string(take(int(take(1)[0]))) }
	number := func() float32 {
		f := math.Float32frombits(binary.BigEndian.Uint32(take(4)))
		if !(f >= 0 && f <= 1e6) {
			*ok = false
			return 0
		}
		return f
	}
	n := int(take(1)[0])
	if n > maxPlanWords {
		*ok = false
	}
	for range min(n, maxPlanWords) {
		w := wanted{text: text()}
		w.phrase = take(1)[0] == 1
		alts := int(take(1)[0])
		if alts > maxPlanAlts {
			*ok = false
		}
		w.idf = number()
		word(w)
		for range min(alts, maxPlanAlts) {
			term := text()
			as := kinship(take(1)[0])
			if as > nearby {
				*ok = false
			}
			alt(term, alternative{worth: number(), as: as})
		}
		if !*ok {
			return
		}
	}
	if len(b) > 0 {
		*ok = false
	}
}
