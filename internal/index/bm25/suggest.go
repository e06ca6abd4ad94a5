package bm25

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Suggest returns at most n texts to try in place of a query that found nothing, best first: with an unknown word
// replaced by the closest known ones, at a greater distance than Match tolerates; with phrases as separate words;
// and with single words left out. Several words are replaced only beside as many known ones: a query of other words
// would have nothing in common with the typed one. A suggestion may find nothing either; the caller should check.
func (x *Index) Suggest(text string, n int) []string {
	q := parseQuery(text)
	var list []string
	offer := func(clauses []clause) {
		if s := writeQuery(clauses); s != "" && s != writeQuery(q.clauses) && !slices.Contains(list, s) && len(list) < n {
			list = append(list, s)
		}
	}
	closest := make(map[string][]string) // by unknown word
	unknown, known := 0, 0               // frame words count as neither
	for _, c := range q.clauses {
		for _, p := range c.parts {
			if x.words.termOf(p) != 0 && !frame[p] {
				known++
			} else if closest[p] == nil && !c.exclude && x.words.termOf(p) == 0 {
				closest[p] = x.closestWords(p, n)
				unknown++
			}
		}
	}
	if unknown > max(1, known) {
		clear(closest)
	}
	// The first suggestion replaces every unknown word by its closest one, later ones by the next closest.
	for rank := range n {
		next := slices.Clone(q.clauses)
		changed := false
		for i, c := range next {
			if c.exclude {
				continue
			}
			next[i].parts = slices.Clone(c.parts)
			for j, p := range c.parts {
				if others := closest[p]; rank < len(others) {
					next[i].parts[j], changed = others[rank], true
				} else if len(others) > 0 {
					next[i].parts[j] = others[0]
				}
			}
		}
		if !changed {
			break
		}
		offer(next)
	}
	for i, c := range q.clauses {
		if c.phrase && !c.exclude && len(c.parts) > 1 {
			next := slices.Clone(q.clauses)
			next[i].phrase = false
			offer(next)
		}
	}
	for i := range q.clauses {
		rest := slices.Delete(slices.Clone(q.clauses), i, i+1)
		if slices.ContainsFunc(rest, func(c clause) bool { return !c.exclude }) {
			offer(rest)
		}
	}
	return list
}

// closestWords returns at most n known words that are closest to an unknown word: those with a near
// spelling, which shares more than two thirds of the letters, else those with the longest common beginning, which is more
// than two fifths of the word.
func (x *Index) closestWords(word string, n int) []string {
	b := best{most: n}
	x.words.near.eachNear(x.words.list, word, maxEdits(word)+1, func(id uint32, distance int) {
		if t := x.words.termID[id]; 3*distance < utf8.RuneCountInString(word) {
			b.offerCandidate(candidate{term: t, df: x.words.docFreq(t), distance: distance, text: x.words.list[id].text})
		}
	})
	// No near spelling: try words with the same beginning, of at least 4 bytes.
	for cut := len(word) - 1; cut >= 4 && 5*cut > 2*len(word) && len(b.list) == 0; cut-- {
		if utf8.RuneStart(word[cut]) {
			b.list = x.completeWord(word[:cut], 0)
		}
	}
	var words []string
	for _, c := range b.list[:min(n, len(b.list))] {
		words = append(words, c.text)
	}
	return words
}

// writeQuery is the inverse of parseQuery.
func writeQuery(clauses []clause) string {
	var b strings.Builder
	for _, c := range clauses {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		if c.exclude {
			b.WriteByte('-')
		}
		switch {
		case c.phrase:
			b.WriteString(`"` + strings.Join(c.parts, " ") + `"`)
		case c.joined != "":
			b.WriteString(strings.Join(c.parts, "-"))
		default:
			b.WriteString(strings.Join(c.parts, " "))
		}
	}
	return b.String()
}
