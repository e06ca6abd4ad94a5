package main

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"agentsite/internal/hub"
)

// plain is the least that does the job: words to documents in memory, BM25
// over one field, the best 20, and the exact counts of the same ten facets. It
// knows no fields, forms, prefixes, slips, phrases or filters, explains
// nothing and cannot forget.
type plain struct {
	mu     sync.RWMutex // guards everything
	agents []*hub.Agent
	length []float32
	words  map[string][]plainPosting
	total  int

	values map[string]uint32
	names  []string
	facet  []uint8
	of     [][]uint32 // by agent

	score   []float32 // by agent, 0 between searches
	touched []uint32
	counts  []uint32
	seen    []uint32
}

type plainPosting struct {
	doc uint32
	tf  float32
}

var plainFacets = []string{"kind", "tag", "skill", "portal", "live", "language", "modality", "signed", "proof", "publisher"}

func newPlain() *plain {
	return &plain{words: make(map[string][]plainPosting), values: make(map[string]uint32)}
}

func plainWords(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
}

func (p *plain) put(a hub.Agent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	doc := uint32(len(p.agents))
	p.agents = append(p.agents, &a)
	tf := make(map[string]float32)
	n := 0
	var list []uint32
	value := func(f int, v string) {
		k := string(rune(f)) + v
		id, ok := p.values[k]
		if !ok {
			id = uint32(len(p.names))
			p.values[k] = id
			p.names, p.facet = append(p.names, v), append(p.facet, uint8(f))
		}
		if !slices.Contains(list, id) {
			list = append(list, id)
		}
	}
	text := []string{a.Name, a.Title, a.Description}
	for _, s := range a.Skills {
		text = append(append(text, s.Name, s.Description), s.Examples...)
		text = append(text, s.Tags...)
		value(2, strings.ToLower(s.Name))
		for _, t := range s.Tags {
			value(1, strings.ToLower(t))
		}
	}
	for _, t := range text {
		for _, w := range plainWords(t) {
			tf[w]++
			n++
		}
	}
	for w, c := range tf {
		p.words[w] = append(p.words[w], plainPosting{doc, c})
	}
	value(0, string(a.Kind))
	value(3, cmp.Or(a.Portal, "local"))
	value(4, string(a.Liveness.State))
	for _, l := range a.Languages {
		value(5, l)
	}
	for _, m := range a.Modalities() {
		value(6, m)
	}
	value(7, strconv.FormatBool(a.Signed()))
	value(8, cmp.Or(a.Proof.State, hub.Unproven))
	p.of = append(p.of, list)
	p.length = append(p.length, float32(n))
	p.total += n
	p.score = append(p.score, 0)
}

// search is for one goroutine at a time.
func (p *plain) search(text string) ([]hub.Result, map[string][]hub.FacetCount) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	avg := float32(p.total) / float32(len(p.agents))
	p.touched = p.touched[:0]
	for _, w := range plainWords(text) {
		list := p.words[w]
		idf := float32(math.Log1p((float64(len(p.agents)-len(list)) + 0.5) / (float64(len(list)) + 0.5)))
		for _, e := range list {
			if p.score[e.doc] == 0 {
				p.touched = append(p.touched, e.doc)
			}
			p.score[e.doc] += idf * e.tf * 2.2 / (e.tf + 1.2*(0.25+0.75*p.length[e.doc]/avg))
		}
	}
	if len(p.counts) < len(p.names) {
		p.counts = make([]uint32, 2*len(p.names))
	}
	p.seen = p.seen[:0]
	best := make([]uint32, 0, 21)
	order := func(a, b uint32) int { return cmp.Or(cmp.Compare(p.score[b], p.score[a]), cmp.Compare(a, b)) }
	for _, d := range p.touched {
		for _, v := range p.of[d] {
			if p.counts[v]++; p.counts[v] == 1 {
				p.seen = append(p.seen, v)
			}
		}
		if len(best) == 20 && p.score[d] <= p.score[best[19]] {
			continue
		}
		i, _ := slices.BinarySearchFunc(best, d, order)
		best = slices.Insert(best, i, d)
		best = best[:min(len(best), 20)]
	}
	results := make([]hub.Result, len(best))
	for i, d := range best {
		results[i] = hub.Result{Agent: *p.agents[d], Score: float64(p.score[d])}
	}
	for _, d := range p.touched {
		p.score[d] = 0
	}
	facets := make(map[string][]hub.FacetCount, len(plainFacets))
	by := func(a, b hub.FacetCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Value, b.Value))
	}
	var lists [10][]hub.FacetCount
	for _, v := range p.seen {
		f, c := p.facet[v], hub.FacetCount{Value: p.names[v], Count: int(p.counts[v])}
		p.counts[v] = 0
		l := lists[f]
		if len(l) == 30 && by(c, l[29]) >= 0 {
			continue
		}
		i, _ := slices.BinarySearchFunc(l, c, by)
		l = slices.Insert(l, i, c)
		lists[f] = l[:min(len(l), 30)]
	}
	for f, l := range lists {
		facets[plainFacets[f]] = l
	}
	return results, facets
}
