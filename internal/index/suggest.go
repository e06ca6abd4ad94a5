package index

import (
	"cmp"
	"slices"
	"strings"

	"agentsite/internal/hub"
	"agentsite/internal/index/bm25"
)

// Bounds of Suggest, so that its cost does not grow with the index.
const (
	maxSuggest     = 20
	maxSuggestText = 100
	frequentValues = 512 // most frequent tags, and most frequent skills, that are compared
	sampledAgents  = 16  // agents whose tags and skills are compared in addition
)

// Suggest implements hub.Index. A tag or skill is suggested if one of its words begins with text;
// compared are the 512 most frequent tags and skills and those of some agents with such a word. If there
// are any, agents get at most two thirds of the n places. n is at most 20, and text is cut at 100 bytes.
func (x *Index) Suggest(text string, n int) []hub.Suggestion {
	n = min(n, maxSuggest)
	if len(text) > maxSuggestText {
		text = strings.ToValidUTF8(text[:maxSuggestText], "")
	}
	words := bm25.Fold(text)
	if n <= 0 || len(words) == 0 {
		return nil
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	values := x.valuesLike(text, words, n)
	docs := x.words.Begins(text, []int{nameField, titleField}, x.up, n)
	places := max(n-len(values), n-n/3)
	list := make([]hub.Suggestion, 0, n)
	for _, doc := range docs[:min(len(docs), places)] {
		a := x.agentOf(uint32(doc))
		list = append(list, hub.Suggestion{Kind: "agent", Text: cmp.Or(a.Title, a.Name), Handle: a.Handle()})
	}
	for _, id := range values[:min(len(values), n-len(list))] {
		v := x.valueOf(id)
		list = append(list, hub.Suggestion{Kind: facetNames[id.facet()], Text: v.text, Count: v.docs.len()})
	}
	return list
}

// valuesLike returns the tags and then the skills that match the typed text (matchesTyped), the most
// frequent of each first; the caller must hold mu.
func (x *Index) valuesLike(text string, words []string, n int) []valueID {
	typed := strings.Join(words, " ")
	lower := strings.ToLower(strings.TrimSpace(text))
	var list []valueID
	for _, f := range []int{tagFacet, skillFacet} {
		from := len(list)
		add := func(id valueID) {
			if !slices.Contains(list[from:], id) {
				list = append(list, id)
			}
		}
		facet := x.facets[f]
		order := facet.order
		for _, number := range order[:min(len(order), frequentValues)] {
			if matchesTyped(facet.values[number].text, lower, typed) {
				add(newValueID(f, number))
			}
			if len(list)-from == n {
				break
			}
		}
		if len(list)-from < n && len(order) > frequentValues {
			field := map[int]int{tagFacet: tagField, skillFacet: skillField}[f]
			for _, doc := range x.words.Begins(text, []int{field}, nil, sampledAgents) {
				for _, id := range x.values[doc] {
					if id.facet() == f && matchesTyped(x.valueOf(id).text, lower, typed) {
						add(id)
					}
				}
			}
		}
		slices.SortStableFunc(list[from:], func(a, b valueID) int {
			va, vb := x.valueOf(a), x.valueOf(b)
			return cmp.Or(cmp.Compare(vb.docs.len(), va.docs.len()), strings.Compare(va.text, vb.text))
		})
		list = list[:min(len(list), from+n)]
	}
	return list
}

// matchesTyped reports whether a tag or skill, or a word in it, begins with the typed text. lower is the
// text in lower case, typed the text as joined bm25.Fold words.
func matchesTyped(value, lower, typed string) bool {
	if strings.HasPrefix(value, lower) {
		return true
	}
	for i := 0; i < len(value); i++ {
		if value[i] >= 0x80 {
			folded := " " + strings.Join(bm25.Fold(value), " ")
			return strings.Contains(folded, " "+typed)
		}
		if i > 0 && value[i] == typed[0] && !isLetter(value[i-1]) && strings.HasPrefix(value[i:], typed) {
			return true
		}
	}
	return false
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }
