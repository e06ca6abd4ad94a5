package main

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode"

	"agentsite/internal/hub"
)

// words is a full-text index in memory: for each word the agents that have it, with their weights. A
// search adds up the weights and keeps the best agents. The index knows whole words only: no facets, no
// correction of typing errors, no explanation of results. It is safe for concurrent use.
type words struct {
	mu     sync.RWMutex // guards lists and agents
	lists  map[string][]posting
	agents []found
	sums   sync.Pool // of *sums, reused so that a search allocates little
}

// posting says that an agent has a word.
type posting struct {
	agent  uint32
	weight float32 // BM25 without the factor for the rarity of the word
}

// sums is the working memory of a search: the score of each agent, and the agents whose score is not 0.
type sums struct {
	score []float32
	hit   []uint32
}

func newWords() *words { return &words{lists: make(map[string][]posting)} }

// split calls yield for each word of a text.
func split(text string, yield func(word string)) {
	for w := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		yield(w)
	}
}

func (x *words) put(a *hub.Agent) {
	count, all := make(map[string]int, 64), 0
	add := func(w string) { count[w]++; all++ }
	split(a.Name, add)
	split(a.Title, add)
	split(a.Description, add)
	for i := range a.Skills {
		s := &a.Skills[i]
		split(s.Name, add)
		split(s.Description, add)
		for _, t := range s.Tags {
			split(t, add)
		}
		for _, e := range s.Examples {
			split(e, add)
		}
	}
	const k1, b, usual = 1.2, 0.75, 60
	norm := k1 * (1 - b + b*float32(all)/usual)
	f := found{Name: a.Name, Title: a.Title, Description: a.Description, Tags: a.Tags()}
	x.mu.Lock()
	defer x.mu.Unlock()
	n := uint32(len(x.agents))
	x.agents = append(x.agents, f)
	for w, c := range count {
		x.lists[w] = append(x.lists[w], posting{n, float32(c) * (k1 + 1) / (float32(c) + norm)})
	}
}

// best returns the n best agents for the words of text, best first, and the number of agents that have
// any of the words.
func (x *words) best(text string, n int) (list []found, total int) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	s, _ := x.sums.Get().(*sums)
	if s == nil {
		s = new(sums)
	}
	defer x.sums.Put(s)
	top := top{n: n}
	var asked [][]posting
	split(text, func(w string) {
		if l := x.lists[w]; len(l) > 0 {
			asked = append(asked, l)
		}
	})
	if len(asked) == 1 {
		for _, p := range asked[0] {
			if p.weight > top.least {
				top.add(p.agent, p.weight)
			}
		}
		total = len(asked[0])
	} else {
		if len(s.score) < len(x.agents) {
			s.score = make([]float32, len(x.agents)+len(x.agents)/4)
		}
		for _, l := range asked {
			r := float32(math.Log(1 + float64(len(x.agents))/float64(len(l))))
			for _, p := range l {
				if s.score[p.agent] == 0 {
					s.hit = append(s.hit, p.agent)
				}
				s.score[p.agent] += p.weight * r
			}
		}
		for _, a := range s.hit {
			if v := s.score[a]; v > top.least {
				top.add(a, v)
			}
			s.score[a] = 0
		}
		total = len(s.hit)
		s.hit = s.hit[:0]
	}
	slices.SortFunc(top.list, func(a, b posting) int { return cmp.Compare(b.weight, a.weight) })
	list = make([]found, len(top.list))
	for i, p := range top.list {
		list[i] = x.agents[p.agent]
		list[i].Score = float64(p.weight)
	}
	return list, total
}

// top keeps the n postings with the highest weights.
type top struct {
	n     int
	least float32 // lowest weight in list once it has n postings, 0 before
	list  []posting
}

func (t *top) add(agent uint32, weight float32) {
	if len(t.list) < t.n {
		t.list = append(t.list, posting{agent, weight})
	} else {
		worst := 0
		for i, p := range t.list {
			if p.weight < t.list[worst].weight {
				worst = i
			}
		}
		t.list[worst] = posting{agent, weight}
	}
	if len(t.list) == t.n {
		t.least = slices.MinFunc(t.list, func(a, b posting) int { return cmp.Compare(a.weight, b.weight) }).weight
	}
}
