// Command evil shows that the lies of peering/evil are stopped by the checks
// that are meant to stop them: it takes one check at a time out of the product,
// tells the lies, and demands that one of them succeeds then. Nothing of the
// tree is changed: go test -overlay reads the changed files from elsewhere.
//
//	go run ./bench/evil [-only NAME,…] [-list] [-flood]
//
// It needs a minute for each check on two cores.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

// change is one fragment of a file that is replaced. It must be there once.
type change struct{ file, from, to string }

// mutant is the product without a check.
type mutant struct {
	name string
	// lies are those to tell, by the beginnings of their names, with commas.
	lies    string
	changes []change
}

func main() {
	only := flag.String("only", "", "beginnings of the names of checks, with commas; empty for all")
	calm := flag.Bool("flood", false, "measure the flood only")
	list := flag.Bool("list", false, "look whether the checks are where they should be, and stop")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if *calm {
		if err := flood(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "evil:", err)
			os.Exit(1)
		}
		return
	}
	if err := run(ctx, strings.Split(*only, ","), *list); err != nil {
		fmt.Fprintln(os.Stderr, "evil:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only []string, list bool) error {
	dir, err := os.MkdirTemp("", "evil-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, m := range mutants {
		if _, err := m.overlay(dir); err != nil {
			return err
		}
	}
	if list {
		fmt.Printf("%d checks are where they should be\n", len(mutants))
		return nil
	}
	fmt.Printf("%-52s %-44s %-12s %s\n", "check that is taken out", "lies", "", "what they achieve")
	bad, told := 0, 0
	for _, m := range mutants {
		if !chosen(m.name, only) {
			continue
		}
		began := time.Now()
		verdict, what, err := m.tell(ctx, dir)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		told++
		if verdict != "succeeds" {
			bad++
		}
		fmt.Printf("%-52s %-44.44s %-12s %.110s (%.0f s)\n", m.name, m.lies, verdict, what, time.Since(began).Seconds())
	}
	fmt.Printf("%d checks, %d of them missed by no lie\n", told, bad)
	if only[0] == "" {
		if err := flood(ctx); err != nil {
			return err
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d checks are taken out and nothing succeeds", bad)
	}
	return nil
}

// maxRatio is how much longer the slowest hundredth of honest requests may take
// while a portal floods.
const maxRatio = 2

// flood measures what honest ones feel of a flood. It needs a quiet machine: the
// flood is made on the same one.
func flood(ctx context.Context) error {
	test := exec.CommandContext(ctx, "go", "test", "-count=1", "-run", "TestHonest_WhileItFloods", "./peering/evil")
	test.Env = append(os.Environ(), "EVIL_FLOOD=15")
	out, err := test.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, "FLOOD ") {
			continue
		}
		fmt.Print(line)
		for part := range strings.SplitSeq(line, "ratio ") {
			var r float64
			if n, _ := fmt.Sscanf(part, "%g", &r); n == 1 && r > maxRatio {
				return fmt.Errorf("honest requests take %.2f times as long, %d is allowed", r, maxRatio)
			}
		}
		return err
	}
	return fmt.Errorf("nothing was measured: %w\n%s", err, out)
}

func chosen(name string, only []string) bool {
	for _, o := range only {
		if strings.HasPrefix(name, o) {
			return true
		}
	}
	return false
}

// overlay writes the changed files and returns the file that names them.
func (m *mutant) overlay(dir string) (string, error) {
	files := make(map[string][]byte)
	for _, c := range m.changes {
		b := files[c.file]
		if b == nil {
			var err error
			if b, err = os.ReadFile(c.file); err != nil {
				return "", err
			}
		}
		if n := bytes.Count(b, []byte(c.from)); n != 1 {
			return "", fmt.Errorf("%s: %s has %d times\n%s", m.name, c.file, n, c.from)
		}
		files[c.file] = bytes.Replace(b, []byte(c.from), []byte(c.to), 1)
	}
	var o struct{ Replace map[string]string }
	o.Replace = make(map[string]string)
	for name, b := range files {
		abs, err := filepath.Abs(name)
		if err != nil {
			return "", err
		}
		at := filepath.Join(dir, strings.ReplaceAll(m.name+"-"+name, "/", "_"))
		if err := os.WriteFile(at, b, 0o600); err != nil {
			return "", err
		}
		o.Replace[abs] = at
	}
	b, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	at := filepath.Join(dir, strings.ReplaceAll(m.name, "/", "_")+".json")
	return at, os.WriteFile(at, b, 0o600)
}

// tell builds the product without the check and tells the lies.
func (m *mutant) tell(ctx context.Context, dir string) (verdict, what string, err error) {
	at, err := m.overlay(dir)
	if err != nil {
		return "", "", err
	}
	bin := filepath.Join(dir, "evil.test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", at, "-o", bin, "./peering/evil")
	if out, err := build.CombinedOutput(); err != nil {
		return "no build", lastLines(string(out)), ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	test := exec.CommandContext(ctx, bin, "-test.run", "TestLies", "-test.v")
	test.Dir = "peering/evil"
	test.Env = append(os.Environ(), "EVIL="+m.lies, "EVIL_LATE=12s")
	out, err := test.CombinedOutput()
	if ctx.Err() != nil {
		return "", "", ctx.Err()
	}
	for line := range strings.Lines(string(out)) {
		if _, said, ok := strings.Cut(line, "SUCCEEDED: "); ok {
			return "succeeds", strings.TrimSpace(said), nil
		}
	}
	if err != nil {
		return "fails", lastLines(string(out)), nil
	}
	return "is stopped", "all are stopped all the same", nil
}

func lastLines(s string) string {
	s = strings.TrimSpace(s)
	return strings.ReplaceAll(s[max(0, len(s)-300):], "\n", " | ")
}
