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

// sought holds the parts of a query in the form in which summaries can be tested for them.
type sought struct {
	words     [][]record.Term // each word with its inflected forms
	tags      []string
	languages []string
	seed      uint64 // hash of the query; it varies the order of equal portals
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

// askable is a candidate for a request, reduced to the facts that choose uses.
type askable struct {
	id      record.PortalID
	summary *catalog.Summary // nil when no summary is held
	silent  bool             // true if the portal did not answer the last requests
	trust   int              // see trustIn; higher is better
	rtt     time.Duration
}

// Groups of portals, in the order in which choose prefers them.
const (
	affirms      = iota // the summary contains some of the terms
	unheard             // no summary is held, so the portal may have matches
	affirmsMute         // like affirms, but the portal is silent
	denies              // the summary contains no term; it may be older than a new agent
	silentOthers        // silent portals that are not in affirmsMute
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

// scoreTerms returns a score for each portal: how many of the sought terms its summary contains, rare terms
// counting more. A portal without a summary scores 0.
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
				return 0.1 // decides between portals that contain the same words
			}
			return 0
		})
	}
	return out
}

// filterWeight is the weight of a match in a portal's Bloom filter: 1 up to a false positive rate of 5 %,
// falling to 0 for a filter that matches everything. It has steps, so that a portal gains nothing by a
// filter that is slightly emptier than others.
func filterWeight(s *catalog.Summary) float64 {
	if s.FalsePositives <= 0.05 {
		return 1
	}
	return math.Floor((1-s.FalsePositives)*10) / 10
}

// pace puts a response time into one of five classes, the fastest 0. An unknown time is in the middle.
func pace(rtt time.Duration) int {
	switch {
	case rtt <= 0:
		return 2 // unknown: between the fast and the slow ones
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
