package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// event is a line of `go test -json`; see `go doc test2json`.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64
}

// report is the result of one run of `go test`.
type report struct {
	packages map[string]*suite
	failed   []*suite // packages that failed, in the order in which they ended
	passed   int      // number of packages that passed
}

// suite is the result of the tests of one package.
type suite struct {
	name    string
	tests   map[string]*outcome // tests that have not passed, by full name
	begun   []*outcome          // all tests, in the order in which they began
	passed  map[string]bool     // names of top-level tests that passed
	output  strings.Builder     // output of the package outside its tests
	closing string              // last line of the output: ok or FAIL with the package, "" if none
}

// outcome is the result of a test or subtest that has not passed so far.
type outcome struct {
	name   string
	failed bool
	output strings.Builder
}

// readReport reads the output of `go test -json` to its end, and prints the
// closing line of each package that passed and the output of each failure.
// The closing line of a package that failed is left to the caller, as it is
// unknown whether the failure repeats.
func readReport(in io.Reader, out io.Writer) (*report, error) {
	r := &report{packages: make(map[string]*suite)}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return nil, err
		}
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil || e.Action == "" {
				fmt.Fprint(out, string(line)) // a line that test2json did not write, such as a build error
			} else {
				r.add(e, out)
			}
		}
		if err == io.EOF {
			return r, nil
		}
	}
}

func (r *report) add(e event, out io.Writer) {
	if e.Action == "build-output" {
		fmt.Fprint(out, e.Output)
	}
	if e.Package == "" {
		return
	}
	s := r.packages[e.Package]
	if s == nil {
		s = &suite{name: e.Package, tests: make(map[string]*outcome), passed: make(map[string]bool)}
		r.packages[e.Package] = s
	}
	if e.Test != "" {
		s.addTest(e)
		return
	}
	switch e.Action {
	case "output":
		if strings.HasPrefix(e.Output, "ok  \t") || strings.HasPrefix(e.Output, "FAIL\t") {
			s.closing = e.Output
		} else if e.Output != "PASS\n" && e.Output != "FAIL\n" {
			s.output.WriteString(e.Output)
		}
	case "pass":
		r.passed++
		fmt.Fprint(out, s.closing)
	case "fail":
		r.failed = append(r.failed, s)
		if s.closing == "" {
			s.closing = fmt.Sprintf("FAIL\t%s\t%.3fs\n", s.name, e.Elapsed)
		}
		fmt.Fprint(out, s.text())
	}
}

func (s *suite) addTest(e event) {
	t := s.tests[e.Test]
	if t == nil {
		t = &outcome{name: e.Test}
		s.tests[e.Test] = t
		s.begun = append(s.begun, t)
	}
	switch e.Action {
	case "output":
		if !strings.HasPrefix(e.Output, "=== ") {
			t.output.WriteString(e.Output)
		}
	case "pass", "skip":
		if !strings.Contains(e.Test, "/") && e.Action == "pass" {
			s.passed[e.Test] = true
		}
		t.output.Reset()
		delete(s.tests, e.Test)
	case "fail":
		t.failed = true
	}
}

// text returns the output of all tests of the package that did not pass, followed by the output of the
// package itself.
func (s *suite) text() string {
	var b strings.Builder
	for _, t := range s.begun {
		b.WriteString(t.output.String())
	}
	b.WriteString(s.output.String())
	return b.String()
}

// failedTests returns the top-level tests that failed. It returns false if
// they do not explain why the package failed: a test did not end, or none
// failed.
func (s *suite) failedTests() (names []string, explained bool) {
	explained = true
	for _, t := range s.begun {
		if s.tests[t.name] != t {
			continue // the test has passed
		}
		switch top := !strings.Contains(t.name, "/"); {
		case !t.failed:
			explained = false
		case top:
			names = append(names, t.name)
		}
	}
	return names, explained && len(names) > 0
}
