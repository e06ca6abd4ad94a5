package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"agentsite/bench/ranking"
	"agentsite/internal/hub"
)

// worst prints the queries with the lowest nDCG@10 of the portal, each with its first results, to show
// where tuning may help.
func worst(w io.Writer, j *judged, e ranking.Engine) error {
	type row struct {
		query
		score float64
		ids   []string
	}
	var rows []row
	for _, q := range j.queries {
		one := *j
		one.queries = []query{q}
		got, err := evaluate(&one, e)
		if err != nil {
			return err
		}
		ids, err := e.Top(q.text)
		if err != nil {
			return err
		}
		rows = append(rows, row{q, got[""], ids})
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.score, b.score) })
	for _, r := range rows[:15] {
		fmt.Fprintf(w, "%.2f %s: %s\n", r.score, r.kind, r.text)
		for _, id := range r.ids[:min(3, len(r.ids))] {
			i := slices.IndexFunc(j.agents, func(a hub.Agent) bool { return a.ID == id })
			a := j.agents[i]
			fmt.Fprintf(w, "     %d %s | %s | %s\n", j.grade(&r.query, id, j.does[i]), a.Name, a.Title, a.Description)
		}
	}
	fmt.Fprintln(w)
	return nil
}
