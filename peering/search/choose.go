package search

import (
	"cmp"
	"hash/fnv"
	"math"
	"slices"
	"time"

	"agentsite/internal/hub"
	"agentsite/internal/index/bm25"
	"agentsite/internal/record"
	"agentsite/peering/catalog"
	"agentsite/peering/translate"
)

// sought holds the parts of a query in the form in which summaries are asked for them.
type sought struct {
	words     [][]record.Term // each with its forms
	tags      []string
	languages []string
	seed      uint64 // of the query: portals that are alike take turns
}

func soughtOf(q hub.Query) sought {
	h := fnv.New64a()
	w := sought{languages: q.Languages}
	for _, text := range append([]string{q.Text}, q.Skills...) {
		h.Write([]byte(text))
		for _, forms := range bm25.Wanted(text) {
			terms := make([]record.Term, len(forms))
			for i, f := range forms {
				terms[i] = record.TermOf(f)
			}
			w.words = append(w.words, terms)
		}
	}
	for _, t := range q.Tags {
		if c, ok := translate.Cap(t); ok {
			w.tags = append(w.tags, c)
			h.Write([]byte(c))
		}
	}
	w.seed = h.Sum64()
	return w
}

// askable is a portal that may be asked, as far as the choice depends on it.
type askable struct {
	id      record.PortalID
	summary *catalog.Summary // nil when none is known
	silent  bool             // it did not answer lately
	trust   int              // the more the better
	rtt     time.Duration
}

// The groups of portals, in the order in which they are asked.
const (
	affirms      = iota // its summary has some of the terms
	unheard             // nothing is known of its terms
	affirmsMute         // its summary has some of it, but it does not answer
	denies              // its summary has none of it; it may be older than an agent
	silentOthers        // the rest
)

// choose returns the indexes of up to n portals to ask, the best first: by the sought terms in their
// summaries, where rare terms count more than frequent ones, then by trust and by response time. The
// order of equal portals depends on the query, so that different searches ask different portals.
func choose(list []askable, w sought, n int) []int {
	type choice struct {
		at, group int
		score     float64
		pace      int
		turn      uint64
	}
	score := scoreTerms(list, w)
	out := make([]choice, len(list))
	for i, p := range list {
		c := choice{at: i, score: score[i], pace: pace(p.rtt), turn: turnOf(w.seed, p.id)}
		switch {
		case p.summary != nil && c.score > 0 && !p.silent:
			c.group = affirms
		case p.summary == nil && !p.silent:
			c.group = unheard
		case p.summary != nil && c.score > 0:
			c.group = affirmsMute
		case !p.silent:
			c.group = denies
		default:
			c.group = silentOthers
		}
		out[i] = c
	}
	slices.SortStableFunc(out, func(a, b choice) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(b.score, a.score),
			cmp.Compare(list[b.at].trust, list[a.at].trust),
			cmp.Compare(a.pace, b.pace), cmp.Compare(a.turn, b.turn), cmp.Compare(list[a.at].id, list[b.at].id))
	})
	out = out[:min(n, len(out))]
	places := make([]int, len(out))
	for i, c := range out {
		places[i] = c.at
	}
	return places
}

// scoreTerms returns for each summary how much of the sought terms it has.
func scoreTerms(list []askable, w sought) []float64 {
	out := make([]float64, len(list))
	known := 0
	for _, p := range list {
		if p.summary != nil {
			known++
		}
	}
	count := func(has func(s *catalog.Summary) float64) {
		got, n := make([]float64, len(list)), 0
		for i, p := range list {
			if p.summary != nil {
				if got[i] = has(p.summary); got[i] > 0 {
					n++
				}
			}
		}
		rare := math.Log1p(float64(known) / float64(max(n, 1)))
		for i, g := range got {
			out[i] += g * rare
		}
	}
	for _, forms := range w.words {
		count(func(s *catalog.Summary) float64 {
			if slices.ContainsFunc(forms, s.Terms.HasTerm) {
				return filterWeight(s)
			}
			return 0
		})
	}
	for _, t := range w.tags {
		count(func(s *catalog.Summary) float64 {
			if s.Capabilities[t] > 0 {
				return 1
			}
			return 0
		})
	}
	for _, l := range w.languages {
		count(func(s *catalog.Summary) float64 {
			if s.Languages[l] {
				return 0.1 // of two with the same words, the one that speaks it
			}
			return 0
		})
	}
	return out
}

// filterWeight is the weight of a match in a filter: full for a filter as full as it should be, zero for one
// that matches everything. The weight has steps, so that a filter gains nothing by being emptier than
// others.
func filterWeight(s *catalog.Summary) float64 {
	if s.FalsePositives <= 0.05 {
		return 1
	}
	return math.Floor((1-s.FalsePositives)*10) / 10
}

// pace puts times of answers into a few classes.
func pace(rtt time.Duration) int {
	switch {
	case rtt <= 0:
		return 2 // not known
	case rtt < 100*time.Millisecond:
		return 0
	case rtt < 300*time.Millisecond:
		return 1
	case rtt < 600*time.Millisecond:
		return 3
	}
	return 4
}

func turnOf(seed uint64, id record.PortalID) uint64 {
	h := fnv.New64a()
	h.Write([]byte(id))
	x := h.Sum64() ^ seed
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	return x ^ x>>33
}
