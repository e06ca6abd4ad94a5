// Command relevance measures how well the search finds the agents that people mean. It generates two
// sets of agents from templates, with paraphrases and distractors, and queries as people type them. The
// relevance of an agent follows from the task for which it was generated, never from its words. One set
// is for tuning. The other, with other functions, domains and sentences, gives the figures: nDCG@10 of
// the portal's index and, for comparison, of SQLite's FTS5 with bm25.
//
//	go run ./bench/relevance
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"agentsite/bench/ranking"
	"agentsite/internal/hub"
)

// Seeds of the two sets. Another seed gives other figures.
const (
	devSeed  = 3
	heldSeed = 4
)

func main() {
	verbose := flag.Bool("v", false, "show the queries the portal does worst on, of the tuning set")
	flag.Parse()
	if err := report(os.Stdout, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "relevance:", err)
		os.Exit(1)
	}
}

// report prints nDCG@10 of all engines on both sets, and with verbose also the worst queries.
func report(w io.Writer, verbose bool) error {
	for _, set := range []struct {
		name string
		v    *vocabulary
		p    *plain
		seed uint64
	}{{"tuning set", &dev, &devPlain, devSeed}, {"held-out set", &held, &heldPlain, heldSeed}} {
		j := build(set.v, set.p, set.seed)
		fmt.Fprintf(w, "%s: %d agents, %d queries, nDCG@%d\n\n| engine | all | %s |\n|---|%s\n", set.name, len(j.agents), len(j.queries), ranking.Depth,
			strings.Join(queryKinds, " | "), strings.Repeat("---|", len(queryKinds)+1))
		db, engines, err := ranking.FTS5(j.agents)
		if err != nil {
			return err
		}
		defer db.Close()
		x, err := ranking.Index(j.agents)
		if err != nil {
			return err
		}
		var ours []ranking.Engine
		for _, mode := range hub.Modes {
			ours = append(ours, ranking.Portal(x, mode))
		}
		for _, e := range append(ours, engines...) {
			got, err := evaluate(j, e)
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "| %s | **%.3f** |", e.Name, got[""])
			for _, k := range queryKinds {
				fmt.Fprintf(w, " %.3f |", got[k])
			}
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w)
		none := 0
		for _, text := range set.p.unfit {
			ids, err := ours[0].Top(text)
			if err != nil {
				return err
			}
			if len(ids) == 0 {
				none++
			} else if verbose && set.v == &dev {
				fmt.Fprintf(w, "found something for %q\n", text)
			}
		}
		fmt.Fprintf(w, "nothing fits: %d of %d queries that no agent can answer\n\n", none, len(set.p.unfit))
		if verbose && set.v == &dev {
			if err := worst(w, j, ours[0]); err != nil {
				return err
			}
		}
	}
	return nil
}
