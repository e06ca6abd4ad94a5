// Command recruit measures how well agents are found by what a person needs: 625 needs and 1,500 agents, as
// in the paper of the Internet of Agents (arXiv 2407.07061), in which 41.4 % of the regular tasks found the
// right agent first and 64.9 % among ten; 59.7 % and 81.8 % of the nested ones. An agent is right if it has
// the capability that the need asks for. A nested goal has two or three parts, each searched for by itself.
//
// The first half of each table was used to choose weights, the second was not.
//
//	go run ./bench/recruit
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"

	"agentsite/bench/ranking"
	"agentsite/internal/hub"
)

// agentSeed makes the agents. Another seed gives other figures.
const agentSeed = 7

func main() {
	verbose := flag.Bool("v", false, "show the needs of the development half for which the right agent is not found")
	flag.Parse()
	if err := report(os.Stdout, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "recruit:", err)
		os.Exit(1)
	}
}

// world is the agents, and the engines that search them.
type world struct {
	right   map[string]string // by id of an agent, its capability
	titles  map[string]string
	engines []ranking.Engine
	auto    ranking.Engine
}

func report(w io.Writer, verbose bool) error {
	list, err := readCapabilities()
	if err != nil {
		return err
	}
	needs, goals, unfit, err := readNeeds()
	if err != nil {
		return err
	}
	agents, owns := buildAgents(list, agentSeed)
	x, err := ranking.Index(agents)
	if err != nil {
		return err
	}
	db, others, err := ranking.FTS5(agents)
	if err != nil {
		return err
	}
	defer db.Close()
	v := &world{right: make(map[string]string), titles: make(map[string]string), auto: ranking.Portal(x, hub.ModeAuto)}
	for i, a := range agents {
		v.right[a.ID], v.titles[a.ID] = list[owns[i]].id, a.Title
	}
	v.engines = append([]ranking.Engine{ranking.Portal(x, hub.ModeWords), ranking.Portal(x, hub.ModeMeaning), v.auto,
		ranking.Recruiter(x)}, others...)
	fmt.Fprintf(w, "%d agents, seed %d\n\n", len(agents), agentSeed)
	var dev, held [2][]need
	for i, n := range needs {
		if isDevelopment(i) {
			dev[0] = append(dev[0], n)
		} else {
			held[0] = append(held[0], n)
		}
	}
	for i, g := range goals {
		if isDevelopment(i) {
			dev[1] = append(dev[1], g.Parts...)
		} else {
			held[1] = append(held[1], g.Parts...)
		}
	}
	for _, half := range []struct {
		name  string
		needs [2][]need
		show  bool
	}{{"development half", dev, verbose}, {"held-out half", held, false}} {
		for k, kind := range []string{"regular", "nested"} {
			if err := v.table(w, half.name+", "+kind, half.needs[k], half.show); err != nil {
				return err
			}
		}
		if err := v.kinds(w, half.needs[0]); err != nil {
			return err
		}
	}
	for k, kind := range []string{"regular", "nested"} {
		if err := v.table(w, "all, "+kind, slices.Concat(dev[k], held[k]), false); err != nil {
			return err
		}
	}
	return v.unfit(w, unfit, verbose)
}

// table prints how often each engine finds a right agent for the needs.
func (v *world) table(w io.Writer, name string, needs []need, show bool) error {
	fmt.Fprintf(w, "%s: %d needs\n\n| engine | first | among ten | MRR |\n|---|---|---|---|\n", name, len(needs))
	for _, e := range v.engines {
		s, err := v.measure(e, needs)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "| %s | %.1f %% | %.1f %% | %.3f |\n", e.Name, 100*s.first, 100*s.ten, s.mrr)
	}
	fmt.Fprintln(w)
	if !show {
		return nil
	}
	for _, n := range needs {
		ids, err := v.auto.Top(n.Text)
		if err != nil {
			return err
		}
		if place := v.placeOf(n, ids); place != 0 {
			fmt.Fprintf(w, "%2d %s %s", place+1, n.Capability, n.Text)
			for _, id := range ids[:min(len(ids), 3)] {
				fmt.Fprintf(w, " | %s", v.titles[id])
			}
			fmt.Fprintln(w)
		}
	}
	fmt.Fprintln(w)
	return nil
}

// kinds prints how often the portal is right for each kind of need.
func (v *world) kinds(w io.Writer, needs []need) error {
	for _, k := range []struct {
		name string
		is   func(n need) bool
	}{
		{"named, English", func(n need) bool { return !n.Plain && n.Lang == "en" }},
		{"named, Chinese", func(n need) bool { return !n.Plain && n.Lang == "zh" }},
		{"plain, English", func(n need) bool { return n.Plain && n.Lang == "en" }},
		{"plain, Chinese", func(n need) bool { return n.Plain && n.Lang == "zh" }},
	} {
		list := slices.DeleteFunc(slices.Clone(needs), func(n need) bool { return !k.is(n) })
		s, err := v.measure(v.auto, list)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s: %d needs, first %.1f %%, among ten %.1f %%, nothing found %.1f %%\n", k.name, len(list),
			100*s.first, 100*s.ten, 100*s.none)
	}
	fmt.Fprintln(w)
	return nil
}

// score is a share of needs for which a right agent is first or among ten, the mean of 1/place, and the share for
// which nothing is found.
type score struct{ first, ten, mrr, none float64 }

func (v *world) measure(e ranking.Engine, needs []need) (s score, err error) {
	for _, n := range needs {
		ids, err := e.Top(n.Text)
		if err != nil {
			return s, err
		}
		place := v.placeOf(n, ids)
		if place == 0 {
			s.first++
		}
		if place >= 0 {
			s.ten++
			s.mrr += 1 / float64(place+1)
		}
		if len(ids) == 0 {
			s.none++
		}
	}
	all := float64(max(len(needs), 1))
	return score{s.first / all, s.ten / all, s.mrr / all, s.none / all}, nil
}

// placeOf returns the place of the first right agent, counted from 0; -1 if there is none.
func (v *world) placeOf(n need, ids []string) int {
	return slices.IndexFunc(ids, func(id string) bool { return v.right[id] == n.Capability })
}

// unfit prints for how many of the queries that no agent can answer the portal finds nothing.
func (v *world) unfit(w io.Writer, list []string, verbose bool) error {
	var none, all [2]int
	for i, text := range list {
		ids, err := v.auto.Top(text)
		if err != nil {
			return err
		}
		half := 1
		if isDevelopment(i) {
			half = 0
		}
		all[half]++
		if len(ids) == 0 {
			none[half]++
		} else if verbose && half == 0 {
			fmt.Fprintf(w, "found for %q: %s\n", text, v.titles[ids[0]])
		}
	}
	fmt.Fprintf(w, "nothing fits, of queries that no agent can answer: %d of %d in the development half, %d of %d held out\n",
		none[0], all[0], none[1], all[1])
	return nil
}
