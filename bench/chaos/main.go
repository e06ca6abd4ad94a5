// Chaos shows that nothing a portal acknowledged is lost. It runs the real
// binary, lets several people talk on it, takes it down at a random moment,
// starts it again on what is left, and compares what everybody knows with
// what is there. It sees the portal only from outside: over HTTP, by the
// commands of the binary and by signals; it imports nothing of it.
//
//	chaos kill  -rounds N -seed S -binary PATH [-data DIR]
//	chaos power -rounds N -seed S -binary PATH -powerloss PATH
//
// kill ends the process with SIGKILL, now and then with SIGTERM (which has to
// drain), now and then twice. power runs it on a folder of bench/powerloss and
// goes on with what a power cut would have left of it: with what was fsynced
// alone, or with some of the rest besides.
//
// The checks are in check.go. Every failure prints the command that tries the
// same again and ends with status 1; timing is the machine's, so that a seed
// repeats what is done, not when exactly it ends.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

type config struct {
	mode      string
	rounds    int
	seed      uint64
	binary    string
	powerloss string
	data      string
	temp      string
	fresh     bool
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

// errBroken is the end of a run in which a promise was broken; it has been
// printed.
var errBroken = errors.New("a promise was broken")

func parse(args []string) (config, error) {
	var c config
	fs := flag.NewFlagSet("chaos", flag.ContinueOnError)
	fs.IntVar(&c.rounds, "rounds", 10, "how `MANY` times the portal is taken down")
	fs.Uint64Var(&c.seed, "seed", uint64(time.Now().UnixNano()%1_000_000), "what decides what is done")
	fs.StringVar(&c.binary, "binary", "", "`PATH` of agentsite")
	fs.StringVar(&c.powerloss, "powerloss", "", "`PATH` of bench/powerloss, built (power)")
	fs.StringVar(&c.data, "data", "", "empty `DIR` for the data (kill); default a temporary one")
	fs.StringVar(&c.temp, "temp", "", "`DIR` in which a temporary folder is made")
	fs.BoolVar(&c.fresh, "fresh", true, "begin on the power-loss folder itself, not on a plain one (power)")
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
	case c.mode != "kill" && c.mode != "power":
		return c, errors.New("say kill or power")
	case c.binary == "":
		return c, errors.New("name the portal's binary with -binary")
	case c.mode == "power" && c.powerloss == "":
		return c, errors.New("name the built bench/powerloss with -powerloss")
	case c.mode == "power" && c.data != "":
		return c, errors.New("-data is for kill")
	case c.rounds < 1 || c.rounds > 10_000:
		return c, errors.New("-rounds: 1 to 10000")
	}
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

// again is the command that repeats the first rounds of c.
func (c config) again(rounds int) string {
	s := fmt.Sprintf("chaos -seed %d %s -rounds %d -binary %s", c.seed, c.mode, rounds, c.binary)
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
	if cfg.mode == "power" {
		one = w.powerRounds
	}
	found, err := one(out)
	if f, ok := errors.AsType[failure](err); ok {
		found, err = append(found, f.violation), nil
	}
	for _, t := range troubles(w.log) {
		found = append(found, violation{misbehaved, "in the portal's log: " + t})
	}
	if err == nil && len(found) == 0 && w.acknowledged() == 0 {
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
	fmt.Fprintf(out, "%d kills, %d SIGTERMs, %d power cuts that took %d kB not fsynced; %d answers, %d agents, %d messages told to live readers, %d old client_ids sent again, %d outcomes unknown\n",
		s.kills, s.terms, s.cuts, s.lostBytes/1e3, s.answers, s.agents, s.seen, s.reacked, s.learned)
	if len(found) > 0 || err != nil {
		fmt.Fprintf(out, "again: %s\nkept: %s\n", cfg.again(max(1, s.rounds)), w.work)
		err = errBroken
	} else {
		os.RemoveAll(w.work)
	}
	fmt.Fprintf(out, "chaos %s: %d rounds, %d messages acknowledged, %d lost, %d duplicated, slowest restart %d ms\n",
		cfg.mode, s.rounds, w.acknowledged(), counts[lost], counts[duplicated], s.slowest.Milliseconds())
	return err
}

// source is the randomness of one round.
func (w *world) source() *rand.Rand {
	return rand.New(rand.NewPCG(w.cfg.seed, uint64(w.stats.rounds)))
}

// restart starts the portal after it was taken down, and takes the time.
func (w *world) restart(data string) (*portal, error) {
	p, err := startReady(w.cfg.binary, data, w.log)
	if err != nil {
		return nil, err
	}
	w.stats.slowest = max(w.stats.slowest, p.took)
	if p.took > w.cfg.within {
		p.kill()
		return nil, violationf(misbehaved, "the restart took %s, more than %s", p.took, w.cfg.within)
	}
	return p, nil
}

func (w *world) report(out io.Writer, what string, p *portal, before int) {
	if w.cfg.verbose {
		fmt.Fprintf(out, "round %d: %s, %d acknowledged, ready again in %d ms\n", w.stats.rounds, what, w.acknowledged()-before, p.took.Milliseconds())
	}
}

func (w *world) killRounds(out io.Writer) ([]violation, error) {
	p, err := startReady(w.cfg.binary, w.data, w.log)
	if err != nil {
		return nil, err
	}
	defer func() { p.kill() }()
	if err := w.populate(w.data); err != nil {
		return nil, err
	}
	for w.stats.rounds < w.cfg.rounds {
		if w.stats.rounds%generation == 0 {
			if err := w.newRooms(context.Background(), p.url); err != nil {
				return nil, err
			}
		}
		w.stats.rounds++
		rng, before := w.source(), w.acknowledged()
		stop := w.load(p.url, rng)
		time.Sleep(time.Duration(20+rng.IntN(781)) * time.Millisecond)
		what := "SIGKILL"
		if rng.IntN(6) == 0 {
			what = "SIGTERM"
			w.stats.terms++
			err = p.stop() // the load goes on while it drains
		} else {
			w.stats.kills++
			p.kill()
		}
		stop()
		if err == nil && what == "SIGTERM" {
			err = verify(w.cfg.binary, w.data)
		}
		if err != nil {
			return nil, err
		}
		if rng.IntN(4) == 0 {
			// Once more, while it starts.
			half, _, err := start(w.cfg.binary, w.data, w.log)
			if err != nil {
				return nil, err
			}
			time.Sleep(time.Duration(rng.IntN(40)) * time.Millisecond)
			half.kill()
			what += ", and SIGKILL at start"
			w.stats.kills++
		}
		again, err := w.restart(w.data)
		if err != nil {
			return nil, err
		}
		p = again
		w.report(out, what, p, before)
		last := w.stats.rounds == w.cfg.rounds
		if found := w.check(p.url, rng, last); len(found) > 0 {
			return found, nil
		}
		w.again(p.url, rng)
	}
	// What was said again just now is looked at, too.
	if found := w.check(p.url, w.source(), false); len(found) > 0 {
		return found, nil
	}
	if err := p.stop(); err != nil {
		return nil, err
	}
	return nil, verify(w.cfg.binary, w.data)
}

func (w *world) powerRounds(out io.Writer) (found []violation, err error) {
	from := "" // nothing is on the disk at first
	if !w.cfg.fresh {
		p, err := startReady(w.cfg.binary, w.data, w.log)
		if err != nil {
			return nil, err
		}
		err = w.populate(w.data)
		if err = errors.Join(err, p.stop()); err != nil {
			return nil, err
		}
		from = w.data
	} else if err := w.firstStarts(); err != nil {
		return nil, err
	}
	for w.stats.rounds < w.cfg.rounds {
		image := filepath.Join(w.work, fmt.Sprintf("image-%d", w.stats.rounds+1))
		what, before, err := w.cutOnce(from, image)
		if err != nil {
			return nil, err
		}
		kept := image + "-as-cut" // the portal changes the image
		if err := copyFolder(image, kept); err != nil {
			return nil, err
		}
		p, err := w.restart(image)
		if err != nil {
			return nil, err
		}
		w.report(out, what, p, before)
		rng, last := w.source(), w.stats.rounds == w.cfg.rounds
		found = w.check(p.url, rng, last)
		if len(found) == 0 {
			w.again(p.url, rng)
			found = w.check(p.url, rng, false)
		}
		if rng.IntN(3) > 0 {
			p.kill() // its log goes on growing in the next round
		} else {
			err = p.stop()
		}
		if err != nil || len(found) > 0 {
			return found, err
		}
		if err := verify(w.cfg.binary, image); err != nil {
			return nil, err
		}
		os.RemoveAll(kept)
		if from != "" {
			os.RemoveAll(from)
		}
		from = image
	}
	return nil, nil
}

// firstStarts cuts the power while a portal makes its folder, and soon after:
// the next start finds its way whatever is there.
func (w *world) firstStarts() error {
	rng := w.source()
	for n := range min(10, w.cfg.rounds) {
		f, err := mountPower(w.cfg.powerloss, "", w.work)
		if err != nil {
			return err
		}
		p, ready, err := start(w.cfg.binary, f.at, w.log)
		if err != nil {
			f.close()
			return err
		}
		if n%2 == 0 {
			select { // just when it is ready
			case <-ready:
			case <-p.exited:
			case <-time.After(readyTimeout):
			}
		} else {
			time.Sleep(time.Duration(rng.IntN(80)) * time.Millisecond)
		}
		image, keep := filepath.Join(w.work, fmt.Sprintf("first-%d", n)), 0.0
		if n%4 > 1 {
			keep = rng.Float64()
		}
		_, err = f.cut(image, keep, rng.Uint64())
		p.kill()
		f.close()
		if err != nil {
			return err
		}
		w.stats.cuts++
		if p, err = w.restart(image); err != nil {
			if f, ok := errors.AsType[failure](err); ok {
				return violationf(f.kind, "after a power cut at its first start (%s, as the next start left it): %s", image, f.text)
			}
			return err
		}
		if err := errors.Join(p.stop(), verify(w.cfg.binary, image)); err != nil {
			return err
		}
		os.RemoveAll(image)
	}
	return nil
}

// cutOnce runs a portal on a folder that loses its power, and leaves in image
// what remains.
func (w *world) cutOnce(from, image string) (what string, before int, err error) {
	f, err := mountPower(w.cfg.powerloss, from, w.work)
	if err != nil {
		return "", 0, err
	}
	defer f.close()
	p, err := startReady(w.cfg.binary, f.at, w.log)
	if err != nil {
		return "", 0, err
	}
	defer p.kill()
	if w.people == nil {
		if err := w.populate(f.at); err != nil {
			return "", 0, err
		}
	}
	if w.stats.rounds%generation == 0 {
		if err := w.newRooms(context.Background(), p.url); err != nil {
			return "", 0, err
		}
	}
	w.stats.rounds++
	w.stats.cuts++
	rng := w.source()
	keep := 0.0
	if rng.IntN(2) == 0 {
		keep = 0.1 + 0.8*rng.Float64()
	}
	before = w.acknowledged()
	stop := w.load(p.url, rng)
	time.Sleep(time.Duration(20+rng.IntN(781)) * time.Millisecond)
	cut := time.Now()
	lostBytes, err := f.cut(image, keep, rng.Uint64())
	p.kill()
	stop()
	w.forget(cut)
	w.stats.lostBytes += lostBytes
	return strings.TrimSpace(fmt.Sprintf("power cut, %d kB not fsynced, of which %.0f %% kept", lostBytes/1000, keep*100)), before, err
}
