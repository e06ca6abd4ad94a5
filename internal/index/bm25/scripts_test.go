package bm25

import (
	"slices"
	"strings"
	"testing"

	"agentsite/internal/testing/scripttest"
)

// The manual says: the beginning of a word is enough.
func TestQuery_FindsTheBeginningOfAWordInEveryScript(t *testing.T) {
	x := New(Field{Name: "title", Weight: 1, Length: 8, Norm: 0.5})
	list := scripttest.Sentences()
	for i, s := range list {
		x.Put(i, s.Script, x.Analyze([]string{s.Text}))
	}
	for i, s := range list {
		for _, query := range s.Finds {
			hits := x.Query(query, 10)
			if len(hits) == 0 || hits[0].ID != i {
				t.Errorf("%s: %q finds %v", s.Script, query, hits)
			}
			words := Wanted(query)
			have := map[string]bool{}
			Terms([]string{s.Text}, func(term string) { have[term] = true })
			whole := slices.ContainsFunc(words, func(forms []string) bool {
				return slices.ContainsFunc(forms, func(f string) bool { return have[f] })
			})
			begun := len(words) > 0 && slices.ContainsFunc(words[len(words)-1], func(f string) bool {
				for term := range have {
					if strings.HasPrefix(term, f) {
						return true
					}
				}
				return false
			})
			if !whole && !begun {
				t.Errorf("%s: %q is not in the summary for other portals", s.Script, query)
			}
		}
	}
}
