// Chaos shows that a portal loses nothing that it acknowledged. It runs the real binary, lets several
// people and an agent exchange messages, ends the portal at a random moment, starts it again on the
// remaining data, and compares the acknowledged requests with the data. It uses the portal from outside
// only: over HTTP, by the commands of the binary and by signals; of the portal's packages it imports only
// the client of programs that dial in.
//
//	chaos kill   -rounds N -seed S -binary PATH [-data DIR] [-postgres]
//	chaos server -rounds N -seed S -binary PATH
//	chaos power  -rounds N -seed S -binary PATH -powerloss PATH
//	chaos acts   -rounds N -seed S -binary PATH [-tasks N] [-postgres]
//	chaos goals  -rounds N -seed S -binary PATH [-postgres]
//
// With -postgres the data is on a PostgreSQL server of its own. Mode server kills all processes of that
// server instead of the portal, which has to go on when the server is back.
//
// Mode kill ends the process with SIGKILL, sometimes with SIGTERM (then the portal must drain),
// sometimes twice. Mode power runs the portal on a folder of bench/powerloss and continues with the
// data that a power cut would have left: the data that was flushed with fsync alone, or that and some
// of the rest.
//
// Mode acts kills the portal while tasks of all kinds are under way whose agents call tools: each must end in one
// state, and no call with an unknown outcome is made again.
//
// Mode goals kills the portal after each event of a goal of a team in turn: the goal must end with the same transcript.
//
// The checks are in check.go, those of mode acts in acts.go, those of mode goals in goals.go. Every failure prints the command that repeats the run, and the program
// ends with status 1. A seed repeats the same actions, but not their exact timing.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

type config struct {
	mode      string
	rounds    int
	tasks     int
	seed      uint64
	binary    string
	powerloss string
	data      string
	temp      string
	fresh     bool
	postgres  bool
	within    time.Duration
	verbose   bool
}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		if !errors.Is(err, errBroken) {
			fmt.Fprintln(os.Stderr, "chaos:", err)
		}
		os.Exit(1)
	}
}

// errBroken is the result of a run in which the portal broke a promise. The violations are printed
// already.
var errBroken = errors.New("a promise was broken")

func parse(args []string) (config, error) {
	var c config
	fs := flag.NewFlagSet("chaos", flag.ContinueOnError)
	fs.IntVar(&c.rounds, "rounds", 10, "how `MANY` times the portal is taken down")
	fs.IntVar(&c.tasks, "tasks", 100, "how `MANY` tasks are under way in each round (acts)")
	fs.Uint64Var(&c.seed, "seed", uint64(time.Now().UnixNano()%1_000_000), "what decides what is done")
	fs.StringVar(&c.binary, "binary", "", "`PATH` of agentsite")
	fs.StringVar(&c.powerloss, "powerloss", "", "`PATH` of bench/powerloss, built (power)")
	fs.StringVar(&c.data, "data", "", "empty `DIR` for the data (kill); default a temporary one")
	fs.StringVar(&c.temp, "temp", "", "`DIR` in which a temporary folder is made")
	fs.BoolVar(&c.fresh, "fresh", true, "begin on the power-loss folder itself, not on a plain one (power)")
	fs.BoolVar(&c.postgres, "postgres", false, "keep the data on a PostgreSQL server (kill)")
	fs.DurationVar(&c.within, "within", 10*time.Second, "the longest a restart may take")
	fs.BoolVar(&c.verbose, "v", false, "print a line a round")
	for rest := args; ; {
		if err := fs.Parse(rest); err != nil {
			return c, err
		}
		if rest = fs.Args(); len(rest) == 0 {
			break
		}
		if c.mode != "" {
			return c, fmt.Errorf("what is %q?", rest[0])
		}
		c.mode, rest = rest[0], rest[1:]
	}
	switch {
	case c.mode != "kill" && c.mode != "power" && c.mode != "server" && c.mode != "acts" && c.mode != "goals":
		return c, errors.New("say kill, server, power, acts or goals")
	case c.mode == "power" && c.postgres:
		return c, errors.New("-postgres is for kill")
	case c.binary == "":
		return c, errors.New("name the portal's binary with -binary")
	case c.mode == "power" && c.powerloss == "":
		return c, errors.New("name the built bench/powerloss with -powerloss")
	case c.mode == "power" && c.data != "":
		return c, errors.New("-data is for kill")
	case c.rounds < 1 || c.rounds > 10_000:
		return c, errors.New("-rounds: 1 to 10000")
	}
	c.postgres = c.postgres || c.mode == "server"
	for _, p := range []*string{&c.binary, &c.powerloss} {
		if *p == "" {
			continue
		}
		path, err := exec.LookPath(*p)
		if err != nil {
			return c, err
		}
		if *p, err = filepath.Abs(path); err != nil {
			return c, err
		}
	}
	return c, nil
}

// again returns the command line that repeats the first rounds of c.
func (c config) again(rounds int) string {
	s := fmt.Sprintf("chaos -seed %d %s -rounds %d -binary %s", c.seed, c.mode, rounds, c.binary)
	if c.postgres && c.mode != "server" {
		s += " -postgres"
	}
	if c.mode == "acts" {
		s += fmt.Sprintf(" -tasks %d", c.tasks)
	}
	if c.mode == "power" {
		s += " -powerloss " + c.powerloss
		if !c.fresh {
			s += " -fresh=false"
		}
	}
	return s
}

func run(args []string, out io.Writer) error {
	cfg, err := parse(args)
	if err != nil {
		return err
	}
	w, err := newWorld(cfg)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\n", cfg.again(cfg.rounds))
	one := w.killRounds
	switch cfg.mode {
	case "power":
		one = w.powerRounds
	case "server":
		one = w.serverRounds
	case "acts":
		one = w.actRounds
	case "goals":
		one = w.goalRounds
	}
	if cfg.postgres {
		if w.server, err = startServer(); err != nil {
			return err
		}
		defer w.server.Stop()
	}
	found, err := one(out)
	if f, ok := errors.AsType[failure](err); ok {
		found, err = append(found, f.violation), nil
	}
	for _, t := range troubles(w.log, cfg.mode == "server") {
		found = append(found, violation{misbehaved, "in the portal's log: " + t})
	}
	if err == nil && len(found) == 0 && w.acknowledged()+w.stats.posted == 0 {
		err = errors.New("nothing was acknowledged, so nothing was shown")
	}
	counts := make(map[string]int)
	for i, v := range found {
		if counts[v.kind]++; i < 40 {
			fmt.Fprintf(out, "FAIL %s\n", v)
		} else if i == 40 {
			fmt.Fprintf(out, "FAIL … and %d more\n", len(found)-i)
		}
	}
	if err != nil {
		fmt.Fprintf(out, "FAIL %v\n", err)
	}
	s := w.stats
	fmt.Fprintf(out, "%d kills, %d of the server, %d SIGTERMs, %d power cuts that took %d kB not fsynced; %d answers, %d agents, %d messages told to live readers, %d old client_ids sent again, %d outcomes unknown\n",
		s.kills, s.serverKills, s.terms, s.cuts, s.lostBytes/1e3, s.answers, s.agents, s.seen, s.reacked, s.learned)
	if len(found) > 0 || err != nil {
		fmt.Fprintf(out, "again: %s\nkept: %s\n", cfg.again(max(1, s.rounds)), w.work)
		err = errBroken
	} else {
		os.RemoveAll(w.work)
	}
	fmt.Fprintf(out, "chaos %s: %d rounds, %d messages acknowledged, %d lost, %d duplicated, slowest restart %d ms\n",
		cfg.mode, s.rounds, w.acknowledged()+s.posted, counts[lost], counts[duplicated], s.slowest.Milliseconds())
	return err
}
