package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// steady runs the tests of packages many times in shuffled order, on a machine that other processes
// keep busy, and in every second round with GOMAXPROCS=1, to find the tests that sometimes fail. Every
// test binary is built once.
type steady struct {
	rounds   int
	full     bool
	busy     int // number of processes that compete with the tests
	seed     int64
	timeout  time.Duration
	dir      string // folder for the output of test binaries that failed
	packages []string
	out      io.Writer
}

// steadyTimeout is the time limit of a test binary. It is long because the
// processor is shared with the busy processes.
const steadyTimeout = 20 * time.Minute

// testBinary is the compiled test of a package: its import path, its source folder, and the binary.
type testBinary struct{ pkg, dir, file string }

// run builds the tests and runs all rounds. It returns errFailed if any test failed in any round.
func (s *steady) run(ctx context.Context) error {
	if s.seed == 0 {
		s.seed = time.Now().Unix()
	}
	if err := os.RemoveAll(s.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	built, err := os.MkdirTemp("", "steady")
	if err != nil {
		return err
	}
	defer os.RemoveAll(built)
	began := time.Now()
	binaries, err := s.build(ctx, built)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%d test binaries, built in %.0f s\n", len(binaries), time.Since(began).Seconds())
	end, err := startBusy(s.busy)
	if err != nil {
		return err
	}
	defer end()

	var failed []string
	for round := 1; round <= s.rounds; round++ {
		began, seed, limit := time.Now(), s.seed+int64(round-1), ""
		if round%2 == 0 {
			limit = "GOMAXPROCS=1"
		}
		lines := s.round(ctx, round, seed, limit, binaries)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		fmt.Fprintf(s.out, "round %d of %d: seed %d %s, %d failed, %.0f s\n",
			round, s.rounds, seed, limit, len(lines), time.Since(began).Seconds())
		failed = append(failed, lines...)
	}
	if len(failed) == 0 {
		fmt.Fprintf(s.out, "%d rounds, 0 failures\n", s.rounds)
		return nil
	}
	fmt.Fprintf(s.out, "%d rounds, %d failures:\n%s\n", s.rounds, len(failed), strings.Join(failed, "\n"))
	return errFailed
}

// build compiles the tests of the packages into the folder. The loop is needed
// because `go test -c` refuses two packages whose last names are the same.
func (s *steady) build(ctx context.Context, into string) ([]testBinary, error) {
	list := command(ctx, "go", append([]string{"list", "-f",
		"{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}"}, s.packages...)...)
	list.Stderr = os.Stderr
	text, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var binaries []testBinary
	for line := range strings.Lines(string(text)) {
		pkg, dir, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			continue
		}
		file := filepath.Join(into, strings.ReplaceAll(pkg, "/", "-")+".test")
		binaries = append(binaries, testBinary{pkg: pkg, dir: dir, file: file})
	}
	if len(binaries) == 0 {
		return nil, errors.New("no package has tests")
	}
	errs := make([]error, len(binaries))
	inParallel(len(binaries), func(i int) {
		b := binaries[i]
		out, err := command(ctx, "go", "test", "-c", "-vet=off", "-o", b.file, b.pkg).CombinedOutput()
		if err != nil {
			errs[i] = fmt.Errorf("build the test of %s: %w\n%s", b.pkg, err, out)
		}
	})
	return binaries, errors.Join(errs...)
}

// round runs each binary once and returns a line for each test that failed.
func (s *steady) round(ctx context.Context, round int, seed int64, limit string, binaries []testBinary) []string {
	lines := make([][]string, len(binaries))
	var printing sync.Mutex
	inParallel(len(binaries), func(i int) {
		if ctx.Err() != nil {
			return
		}
		b := binaries[i]
		cmd := command(ctx, b.file, fmt.Sprintf("-test.shuffle=%d", seed), "-test.paniconexit0",
			"-test.timeout="+s.timeout.String())
		cmd.Dir = b.dir
		cmd.Env = cmd.Environ() // sets PWD to cmd.Dir, as go test does
		if limit != "" {
			cmd.Env = append(cmd.Env, limit)
		}
		if s.full {
			cmd.Env = append(cmd.Env, "AGENTSITE_TEST_FULL=1")
		}
		out, err := cmd.CombinedOutput()
		if err == nil || ctx.Err() != nil {
			return
		}
		kept := filepath.Join(s.dir, fmt.Sprintf("%02d-%s.txt", round, strings.TrimSuffix(filepath.Base(b.file), ".test")))
		if err := os.WriteFile(kept, out, 0o644); err != nil {
			kept = "not kept: " + err.Error()
		}
		for _, test := range failedNames(string(out)) {
			line := fmt.Sprintf("FAIL %s.%s in round %d, seed %d %s (%s): %s", b.pkg, test, round, seed, limit, err, kept)
			lines[i] = append(lines[i], line)
		}
		printing.Lock()
		defer printing.Unlock()
		fmt.Fprintln(s.out, strings.Join(lines[i], "\n"))
	})
	return slices.Concat(lines...)
}

var (
	failedLine = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	// runningLine matches a line in the list of running tests that package testing prints after a
	// timeout.
	runningLine = regexp.MustCompile(`(?m)^\t+(Test\S+) \([^)]+\)$`)
)

// failedNames returns the failed tests named in the output of a test binary, without those that failed
// only because of a subtest. It returns "?" if the output names none.
func failedNames(output string) []string {
	var names []string
	matches := failedLine.FindAllStringSubmatch(output, -1)
	if len(matches) == 0 && strings.Contains(output, "panic: test timed out") {
		matches = runningLine.FindAllStringSubmatch(output, -1)
	}
	for _, m := range matches {
		names = append(names, m[1])
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(names, func(other string) bool { return strings.HasPrefix(other, name+"/") })
	})
	if len(names) == 0 {
		return []string{"?"}
	}
	return names
}

// inParallel calls do with 0 to n-1, as many at a time as there are processors.
func inParallel(n int, do func(i int)) {
	var wg sync.WaitGroup
	places := make(chan struct{}, runtime.NumCPU())
	for i := range n {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			do(i)
		})
	}
	wg.Wait()
}

// startBusy starts the busy processes and returns a function that ends them.
// Each ends when its input does, so also when this process is killed.
func startBusy(n int) (end func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var ends []func()
	end = func() {
		for _, end := range ends {
			end()
		}
	}
	for range n {
		// The process group of its own keeps the busy process from being interrupted together with the
		// tests.
		cmd := command(context.Background(), self, "busy")
		cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
		input, err := cmd.StdinPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			end()
			return nil, fmt.Errorf("start a busy process: %w", err)
		}
		ends = append(ends, func() {
			input.Close()
			_ = cmd.Wait() // The exit status means nothing: the process is ended by closing its input.
		})
	}
	return end, nil
}

// spin uses one processor fully until it reads the end of in.
func spin(in io.Reader) {
	var ended atomic.Bool
	go func() {
		_, _ = io.Copy(io.Discard, in)
		ended.Store(true)
	}()
	for !ended.Load() {
	}
}
