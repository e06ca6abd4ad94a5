package bm25

import (
	"cmp"
	"math/bits"
	"slices"
)

// Found describes how one word of a query was found in a document.
type Found struct {
	Word  string // the typed word, in lower case without diacritics
	Found string // the word in the document, in the same form
	How   string // exact, form (another ending), prefix, typo or phrase
	Field string // the field with the highest weight that has the word
	worth float32
}

// Explain returns how each query word was found in the document id, the word that contributes most to
// the score first, and the document's score. Words that the document does not have are left out.
func (m *Match) Explain(id int) ([]Found, float64) {
	var list []Found
	var a accumulator
	if len(m.words) > 0 {
		list = make([]Found, 0, len(m.words))
	}
	for i := range m.words {
		w := &m.words[i]
		var best alternative
		var most float32
		var in posting
		for _, alt := range w.alts {
			e, ok := m.x.words.postingsOf(alt.term).getPosting(uint32(id))
			if !ok {
				continue
			}
			s := alt.worth / fullImpact * float32(e.impact())
			a.addWord(i+1, w.idf, s, e.fields())
			if s > most {
				best, most, in = alt, s, e
			}
		}
		if best.term != 0 {
			f := m.findTyped(w, best, in.fields(), uint32(id))
			f.worth = most
			list = append(list, f)
		}
	}
	slices.SortStableFunc(list, func(a, b Found) int { return cmp.Compare(b.worth, a.worth) })
	if a.score == 0 {
		return list, 0
	}
	return list, float64(m.scoreOf(&a))
}

// Weigh returns the score of a document, the share of the query's weight (Wish) that its words have, and the names
// of the fields with these words. Words found by a near spelling only count half for the share.
func (m *Match) Weigh(id int) (score, share float64, fields []string) {
	var a accumulator
	var has float32
	for i := range m.words {
		w := &m.words[i]
		most := float32(0)
		for _, alt := range w.alts {
			if e, ok := m.x.words.postingsOf(alt.term).getPosting(uint32(id)); ok {
				a.addWord(i+1, w.idf, alt.worth/fullImpact*float32(e.impact()), e.fields())
				if part := w.idf * shareOf[alt.as]; part > most {
					most = part
				}
			}
		}
		has += most
	}
	if a.score == 0 {
		return 0, 0, nil
	}
	return float64(m.scoreOf(&a)), float64(has / m.wish), m.x.masks[a.fields]
}

// shareOf is the part of a word's weight that counts for Weigh, by the relation of the found word to it.
var shareOf = [...]float32{itself: 1, joined: 1, longer: 0.75, nearby: 0.5}

// findTyped reads the document to find which of its words led to the match: the word as typed if the
// document has it, else the first word of the term alt. fields is the mask of the fields with the term.
func (m *Match) findTyped(w *wanted, alt alternative, fields uint16, id uint32) Found {
	x := m.x
	typed := x.words.lookUp(w.text)
	word, field, exact := uint32(0), bits.TrailingZeros16(fields), false
	for f, o := range x.docs[id].eachPlace {
		if o == 0 || x.words.termID[o] != alt.term {
			continue
		}
		if o == typed {
			word, field, exact = o, f, true
			break
		}
		if word == 0 {
			word, field = o, f
		}
	}
	found := Found{Word: w.text, Found: x.words.list[word].text, Field: x.fields[field].Name}
	switch {
	case w.phrase:
		found.How = "phrase"
	case exact:
		found.How = "exact"
	case alt.as == longer:
		found.How = "prefix"
	case alt.as == nearby:
		found.How = "typo"
	case alt.as == joined:
		found.How = "exact"
	default:
		found.How = "form"
	}
	return found
}

// Fields returns the names of the fields of document id that have words of the query. The result is shared.
func (m *Match) Fields(id int) []string {
	var mask uint16
	for i := range m.words {
		for _, alt := range m.words[i].alts {
			if e, ok := m.x.words.postingsOf(alt.term).getPosting(uint32(id)); ok {
				mask |= e.fields()
			}
		}
	}
	return m.x.masks[mask]
}
