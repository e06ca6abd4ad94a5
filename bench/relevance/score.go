package main

import (
	"math"
	"slices"

	"agentsite/bench/ranking"
)

// gain returns the discounted gain of a result with a grade at a place, counted from 0, as nDCG defines
// it.
func gain(grade, place int) float64 {
	return (math.Exp2(float64(grade)) - 1) / math.Log2(float64(place)+2)
}

// ndcg returns the discounted gain of the first ten results, divided by the greatest possible one. all
// are the grades of all agents. It is 0 if no agent is relevant.
func ndcg(got, all []int) float64 {
	sum := func(grades []int) float64 {
		s := 0.0
		for i, g := range grades[:min(len(grades), ranking.Depth)] {
			s += gain(g, i)
		}
		return s
	}
	best := slices.Clone(all)
	slices.SortFunc(best, func(a, b int) int { return b - a })
	if most := sum(best); most > 0 {
		return sum(got) / most
	}
	return 0
}

// evaluate returns the mean nDCG@10 of an engine for each kind of query; the key "" is the mean of all
// queries.
func evaluate(j *judged, e ranking.Engine) (map[string]float64, error) {
	byID := make(map[string]does, len(j.agents))
	for i, a := range j.agents {
		byID[a.ID] = j.does[i]
	}
	sums, counts := make(map[string]float64), make(map[string]int)
	for i := range j.queries {
		q := &j.queries[i]
		ids, err := e.Top(q.text)
		if err != nil {
			return nil, err
		}
		var got, all []int
		for _, id := range ids {
			got = append(got, j.grade(q, id, byID[id]))
		}
		for a, is := range j.does {
			all = append(all, j.grade(q, j.agents[a].ID, is))
		}
		for _, k := range []string{"", q.kind} {
			sums[k] += ndcg(got, all)
			counts[k]++
		}
	}
	for k, n := range counts {
		sums[k] /= float64(n)
	}
	return sums, nil
}
