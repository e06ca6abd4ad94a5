// Command goals measures the work of the portal for teams: everything but models and agents. Both are scripted here and
// answer at once, so that the time between two turns is that of the state machine and of the database.
//
//	go run ./bench/goals                        all rows: about a minute
//	go run ./bench/goals -goals 50 -long 200    less of each
//
// With -set it works on the set of goals with the agents of a demo of three portals: one agent alone, a team by rules,
// by a scripted model, and by the model of -llm-url.
//
//	go run ./bench/goals -set BINARY [-llm-url URL -llm-model NAME]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"slices"
	"time"

	"agentsite/bench/proc"
	"agentsite/bench/report"
	"agentsite/internal/ident"
	"agentsite/internal/team"
	"agentsite/store"
)

func main() {
	goals := flag.Int("goals", 200, "goals at the same time")
	long := flag.Int("long", 1000, "turns of the long goal")
	binary := flag.String("set", "", "work on the set of goals with a demo of the `BINARY` of agentsite")
	url := flag.String("llm-url", "", "base `URL` of an OpenAI-compatible server, with -set")
	model := flag.String("llm-model", "", "its model")
	verbose := flag.Bool("v", false, "print the goals that are not solved, with -set")
	most := flag.Int("most", 100, "goals of the set")
	flag.Parse()
	if *binary != "" {
		if err := measureSet(context.Background(), *binary, *url, *model, *most, *verbose, os.Stdout); err != nil {
			log.Fatal(err)
		}
		return
	}
	if err := run(context.Background(), *goals, *long); err != nil {
		log.Fatal(err)
	}
}

// The bars of the rows.
const (
	maxOverhead = 5 * time.Millisecond
	leastRate   = 500
	// maxGrowth is the most that a turn at the end of a long goal may cost, as a share of one at its beginning.
	maxGrowth = 1.5
)

func run(ctx context.Context, goals, long int) error {
	dir, err := os.MkdirTemp("", "goals")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	db, err := store.Open(ctx, dir, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer db.Close()
	p := newPuppets(long)
	s := team.New(team.Ports{Speaker: p, Store: db.Teams, Directory: p, Conversations: p, People: p},
		team.Config{Running: goals + 1})
	ctx, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	defer func() { stop(); <-done }()
	t := report.Table{Out: os.Stdout}
	if err := measureLong(ctx, s, p, long, &t); err != nil {
		return err
	}
	if err := measureMany(ctx, s, p, goals, &t); err != nil {
		return err
	}
	if missed := t.Print(); missed > 0 {
		return fmt.Errorf("%d bars are missed", missed)
	}
	return nil
}

var ada = ident.Actor{Kind: ident.Person, ID: ident.NewID(), Name: "ada"}

// finish gives a goal and waits until it has ended.
func finish(ctx context.Context, s *team.Service, text string, turns int) error {
	g, _, err := s.Start(ctx, ada, team.Draft{Goal: text, Members: names, MaxTurns: &turns})
	if err != nil {
		return err
	}
	w, err := s.Watch(ctx, ada, g.ID, 0)
	if err != nil {
		return err
	}
	defer w.Close()
	for {
		if _, err = w.Next(ctx); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
	}
	v, err := s.Get(ctx, ada, g.ID)
	if err == nil && v.Goal.State != "concluded" {
		err = fmt.Errorf("the goal %q is %s: %s", text, v.Goal.State, v.Reason)
	}
	return err
}

// measureLong measures the time between turns of one goal.
func measureLong(ctx context.Context, s *team.Service, p *puppets, turns int, t *report.Table) error {
	rounds, err := proc.Measure(3, func() ([]time.Duration, error) {
		err := finish(ctx, s, "long", turns)
		return p.takeGaps(), err
	})
	if err != nil {
		return err
	}
	var times []time.Duration
	var growths []float64
	for _, list := range rounds.List {
		growths = append(growths, growthOf(list))
		times = append(times, list...)
	}
	growth := report.Median(growths)
	p99 := report.Percentile(times, 0.99)
	t.Add(report.Line{What: "overhead of a turn", P50: report.Millis(report.Percentile(times, 0.5)),
		P99: report.Millis(p99), Others: rounds.Share(), Doubt: rounds.Doubt,
		Bar: "p99 ≤ " + report.Millis(maxOverhead), Absolute: true, Judged: true,
		Met: p99 <= maxOverhead})
	t.Add(report.Line{What: fmt.Sprintf("the last of %d turns by the first ones", turns),
		Portal: fmt.Sprintf("%.2f", growth), Bar: fmt.Sprintf("≤ %.1f", maxGrowth), Judged: true,
		Met: growth <= maxGrowth})
	return nil
}

// growthOf returns the cost of a turn in the last tenth of a goal, by that in the first.
func growthOf(times []time.Duration) float64 {
	tenth := len(times) / 10
	first, last := slices.Clone(times[:tenth]), slices.Clone(times[len(times)-tenth:])
	return float64(report.Percentile(last, 0.5)) / float64(report.Percentile(first, 0.5))
}

// measureMany measures goals of five agents at the same time.
func measureMany(ctx context.Context, s *team.Service, p *puppets, goals int, t *report.Table) error {
	began := time.Now()
	ended := make(chan error, goals)
	took := make(chan time.Duration, goals)
	for range goals {
		go func() {
			err := finish(ctx, s, "many", shortTurns+1)
			took <- time.Since(began)
			ended <- err
		}()
	}
	var times []time.Duration
	for range goals {
		if err := <-ended; err != nil {
			return err
		}
		times = append(times, <-took)
	}
	all := time.Since(began)
	turns := len(p.takeGaps())
	rate := float64(turns) / all.Seconds()
	t.Add(report.Line{What: fmt.Sprintf("%d goals of five agents at once, turns a second", goals),
		Portal: fmt.Sprintf("%.0f", rate), P50: report.Millis(report.Percentile(times, 0.5)),
		P99: report.Millis(report.Percentile(times, 0.99)), Bar: fmt.Sprintf("≥ %d", leastRate),
		Absolute: true, Judged: true,
		Met: rate >= leastRate})
	return nil
}
