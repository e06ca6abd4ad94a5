// Command evil shows that each lie in internal/testing/evil is stopped by the checks that the lie
// names. It tells all lies to the product, which must refuse them. Then it tells each lie to a build of
// the product without the checks that the lie names, where the lie must reach its goal. A check is
// switched off by making its condition false. When each of several checks stops a lie alone, all of
// them are switched off together.
//
//	go run ./bench/evil [-only NAME,…] [-apart] [-depth] [-product=false] [-list] [-flood]
//
// The source tree is not changed: go test -overlay reads the changed files from a temporary folder. One
// build contains switches for all checks, and an environment variable selects the checks that are off,
// so it is compiled once. With -apart it is compiled for each set of checks, with the changes of these
// only.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentsite/internal/testing/evil"
)

func main() {
	var o options
	only := flag.String("only", "", "beginnings of the names of lies or checks, with commas; empty for all")
	calm := flag.Bool("flood", false, "measure the flood only")
	list := flag.Bool("list", false, "say what stops which lies, and stop")
	flag.BoolVar(&o.apart, "apart", false, "compile for each lot of checks anew; some minutes each")
	flag.BoolVar(&o.depth, "depth", false, "show too that of several checks that stop a lie each does so alone")
	flag.BoolVar(&o.product, "product", true, "tell the lies to the product first")
	kind := flag.String("storm", "", "be the flood: one or many")
	portal, to, as := flag.String("portal", "", "whom a flood is made for"), flag.String("to", "", "where it goes"), flag.String("as", "", "in whose name")
	sink := flag.Bool("sink", false, "be the server that refuses all")
	flag.Parse()
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := error(nil)
	switch {
	case *sink:
		err = serveSink(ctx)
	case *kind != "":
		err = storm(ctx, *kind, *portal, *to, *as)
	case *calm:
		err = flood(ctx)
	case *list:
		for _, l := range o.lots() {
			fmt.Printf("%s\n\t%s\n", strings.Join(l.checks, " + "), strings.Join(l.names(), "\n\t"))
		}
	default:
		if err = run(ctx, o); err == nil && o.only == nil {
			err = flood(ctx)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "evil:", err)
		os.Exit(1)
	}
}

type options struct {
	only                  []string
	apart, product, depth bool
}

// chosen reports whether the options select the lie.
func (o options) chosen(l evil.Lie) bool {
	begins := func(name string) bool {
		return slices.ContainsFunc(o.only, func(s string) bool { return strings.HasPrefix(name, s) })
	}
	return o.only == nil || begins(l.Name) || slices.ContainsFunc(l.Stops, begins)
}

// lot is the lies that are stopped by the same checks.
type lot struct {
	checks []string
	lies   []evil.Lie
}

func (l lot) names() []string {
	var out []string
	for _, lie := range l.lies {
		out = append(out, lie.Name)
	}
	return out
}

// lots returns the selected lies in groups by the checks that stop them, without the lies whose checks
// cannot be shown.
func (o options) lots() (list []lot) {
	for _, l := range evil.All() {
		if !o.chosen(l) || l.Unshown != "" {
			continue
		}
		i := slices.IndexFunc(list, func(o lot) bool { return slices.Equal(o.checks, l.Stops) })
		if i < 0 {
			i, list = len(list), append(list, lot{checks: l.Stops})
		}
		list[i].lies = append(list[i].lies, l)
	}
	return list
}

func run(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp("", "evil-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	t := table{refused: make(map[string]bool), won: make(map[string]bool), why: make(map[string]string)}
	if o.product {
		if err := t.tellAll(ctx, o, dir); err != nil {
			return err
		}
	}
	bin := ""
	if !o.apart {
		if bin, err = build(ctx, dir, checks, false); err != nil {
			return err
		}
	}
	for _, l := range o.lots() {
		began := time.Now()
		if o.apart {
			var off []check
			for _, c := range checks {
				if slices.Contains(l.checks, c.name) {
					off = append(off, c)
				}
			}
			if bin, err = build(ctx, dir, off, true); err != nil {
				return err
			}
		}
		if err := t.tell(ctx, bin, l); err != nil {
			return err
		}
		fmt.Printf("%3.0f s  without %s\n", time.Since(began).Seconds(), strings.Join(l.checks, " + "))
		for _, name := range l.names() {
			if t.won[name] {
				fmt.Printf("       succeeds: %s\n", name)
			} else {
				fmt.Printf("       FAILS: %s: %s\n", name, t.why[name])
			}
		}
	}
	if o.depth && !o.apart {
		if err := t.each(ctx, bin, o.lots()); err != nil {
			return err
		}
	}
	return t.print(o)
}

// build compiles the tests of the lies and returns the path of the program. The checks in without can
// be switched off in it, or are off in any case when always is set.
func build(ctx context.Context, dir string, without []check, always bool) (string, error) {
	args := []string{"test", "-c", "-vet=off", "-o", filepath.Join(dir, "evil.test")}
	if without != nil {
		at, err := overlay(".", dir, without, always)
		if err != nil {
			return "", err
		}
		args = append(args, "-overlay", at)
	}
	began := time.Now()
	out, err := exec.CommandContext(ctx, "go", append(args, "./internal/testing/evil")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	fmt.Printf("%3.0f s  to compile\n", time.Since(began).Seconds())
	return filepath.Join(dir, "evil.test"), nil
}

// execute runs the compiled tests whose names match, for the given lies only, and returns their output.
func execute(ctx context.Context, bin, match string, lies []string, env ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, bin, "-test.run", match, "-test.parallel", "8")
	c.Dir = "internal/testing/evil"
	c.Env = append(append(os.Environ(), "EVIL="+strings.Join(lies, "|")), env...)
	out, err := c.CombinedOutput()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return "", err
	}
	return string(out), nil
}
