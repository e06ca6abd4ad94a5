package index

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"agentsite/internal/index/bm25"
)

// users are the numbers of people that used agents, by the id of the agent. They are few, so that a list walks all of
// them. It is not changed after it was made.
type users map[string]int

// SetUsers replaces the number of people that used each agent. Agents may be unknown to the index.
func (x *Index) SetUsers(counts map[string]int) {
	next := users(maps.Clone(counts))
	x.mu.Lock()
	defer x.mu.Unlock()
	if maps.Equal(x.users, next) {
		return
	}
	x.users = next
	x.state.Add(1)
}

// rank returns the documents of match that are up and used, the most used first, each with the rank 1 plus the number
// of people. The caller must hold mu.
func (u users) rank(x *Index, match bm25.Bits) []ranked {
	var list []ranked
	for id, n := range u {
		if doc, known := x.byID.Find(id); known && n > 0 && match.Has(int(doc)) && x.up.Has(int(doc)) {
			list = append(list, ranked{1 + int64(n), int(doc)})
		}
	}
	slices.SortFunc(list, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.rank, a.rank), strings.Compare(x.words.Key(a.doc), x.words.Key(b.doc)))
	})
	return list
}
