package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// gate runs `go test` and decides about failures by rules.go.
type gate struct {
	dir string // folder of the module; "" means the current folder
	// flakyFile is the file with the names of flaky tests of earlier runs of the same gate, one a line;
	// they count toward maxRepeated, and new ones are appended. With "" no names are kept.
	flakyFile   string
	out, errout io.Writer
}

// failure identifies a failed top-level test, or a whole package if test is "".
type failure struct{ pkg, test string }

func (f failure) String() string {
	if f.test == "" {
		return f.pkg
	}
	return f.pkg + "." + f.test
}

// run runs `go test` with args. It returns errFailed if a test failed and
// either must not be run again or failed again.
func (g *gate) run(ctx context.Context, args []string) error {
	began := time.Now()
	first, err := g.goTest(ctx, args)
	if err != nil {
		return err
	}
	flaky, err := g.repeat(ctx, first, args)
	if err != nil {
		return err
	}
	result := "passed"
	for _, s := range first.failed {
		if len(flaky) > 0 {
			fmt.Fprintf(g.out, "ok  \t%s\t(after a repetition)\n", s.name)
		} else {
			fmt.Fprint(g.out, s.closing)
			result = "FAIL"
		}
	}
	fmt.Fprintf(g.out, "%d packages passed, %d failed at first, %.0f s\n",
		first.passed, len(first.failed), time.Since(began).Seconds())
	if result == "FAIL" {
		fmt.Fprintln(g.out, result)
		return errFailed
	}
	for _, f := range flaky {
		fmt.Fprintln(g.out, "FLAKY", f)
	}
	return g.remember(flaky)
}

// goTest runs `go test -json` once and parses its output. It returns an error if the command failed
// although no package did.
func (g *gate) goTest(ctx context.Context, args []string) (*report, error) {
	cmd := command(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cmd.Dir, cmd.Stderr = g.dir, g.errout
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r, readErr := readReport(stdout, g.out)
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case readErr != nil:
		return nil, fmt.Errorf("read go test -json: %w", readErr)
	case err == nil && len(r.failed) > 0:
		return nil, errors.New("go test ended with 0 although packages failed")
	case err != nil && len(r.failed) == 0:
		return nil, fmt.Errorf("go test: %w", err)
	case err != nil && !isExit(err):
		return nil, fmt.Errorf("go test: %w", err)
	}
	return r, nil
}

func isExit(err error) bool {
	_, ok := errors.AsType[*exec.ExitError](err)
	return ok
}

// repeat runs each failed test of first again, alone, if the rules allow it
// for all of them. It returns the tests if all pass then, and none otherwise.
func (g *gate) repeat(ctx context.Context, first *report, args []string) ([]failure, error) {
	if len(first.failed) == 0 {
		return nil, nil
	}
	failures, final := failuresOf(first)
	for _, line := range final {
		fmt.Fprintln(g.out, "not run again:", line)
	}
	if len(final) > 0 {
		return nil, nil
	}
	known, err := g.remembered()
	if err != nil {
		return nil, err
	}
	if len(failures)+known > maxRepeated {
		fmt.Fprintf(g.out, "not run again: %d tests failed, %d before; at most %d may\n",
			len(failures), known, maxRepeated)
		return nil, nil
	}
	flags, _ := splitArgs(args)
	for _, f := range failures {
		fmt.Fprintf(g.out, "again, alone: %s\n", f)
		// When a flag is given twice, go test uses the last one.
		args := append(slices.Clone(flags), "-count=1")
		if f.test != "" {
			args = append(args, "-run=^"+f.test+"$")
		}
		again, err := g.goTest(ctx, append(args, f.pkg))
		if err != nil {
			return nil, err
		}
		s := again.packages[f.pkg]
		if len(again.failed) > 0 || s == nil || f.test != "" && !s.passed[f.test] {
			fmt.Fprintf(g.out, "%s did not pass when it was run alone either\n", f)
			return nil, nil
		}
	}
	return failures, nil
}

// failuresOf returns the failed tests, and a line for each failure that must
// not be run again.
func failuresOf(r *report) (failures []failure, final []string) {
	for _, s := range r.failed {
		tests, explained := s.failedTests()
		text := s.text()
		if !explained {
			reason := neverRepeated(s.name, "", text)
			if reason == "" && len(tests) == 0 && detectorCrash.MatchString(text) {
				failures = append(failures, failure{pkg: s.name})
				continue
			}
			if reason == "" {
				reason = "no test that failed explains it"
			}
			final = append(final, s.name+": "+reason)
			continue
		}
		for _, name := range tests {
			f := failure{pkg: s.name, test: name}
			if reason := neverRepeated(s.name, name, text); reason != "" {
				final = append(final, f.String()+": "+reason)
			}
			failures = append(failures, f)
		}
	}
	return failures, final
}

// remembered returns the number of flaky tests of earlier runs, 0 when there is no file.
func (g *gate) remembered() (int, error) {
	if g.flakyFile == "" {
		return 0, nil
	}
	text, err := os.ReadFile(g.flakyFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	return strings.Count(string(text), "\n"), nil
}

// remember appends the names of flaky tests to flakyFile.
func (g *gate) remember(flaky []failure) error {
	if g.flakyFile == "" || len(flaky) == 0 {
		return nil
	}
	file, err := os.OpenFile(g.flakyFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	for _, f := range flaky {
		if _, err := fmt.Fprintln(file, "FLAKY", f); err != nil {
			file.Close()
			return err
		}
	}
	return file.Close()
}
