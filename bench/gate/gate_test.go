package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "busy" {
		spin(os.Stdin)
		return
	}
	os.Exit(m.Run())
}

// stream is what `go test -json` prints for one failed test, with the output
// given in its place.
func stream(pkg, test, output string) string {
	var b strings.Builder
	line := func(action, test, output string) {
		b.WriteString(`{"Action":"` + action + `","Package":"` + pkg + `"`)
		if test != "" {
			b.WriteString(`,"Test":"` + test + `"`)
		}
		if output != "" {
			b.WriteString(`,"Output":"` + output + `\n"`)
		}
		b.WriteString("}\n")
	}
	line("start", "", "")
	line("run", "TestGood", "")
	line("output", "TestGood", "=== RUN   TestGood")
	line("output", "TestGood", "noise of a test that passes")
	line("pass", "TestGood", "")
	if test != "" {
		line("run", test, "")
		line("output", test, "=== RUN   "+test)
		line("run", test+"/part", "")
		line("output", test+"/part", output)
		line("fail", test+"/part", "")
		line("output", test, "--- FAIL: "+test+" (0.00s)")
		line("fail", test, "")
	} else {
		line("output", "", output)
	}
	line("output", "", "FAIL")
	line("output", "", `FAIL\t`+pkg+`\t0.01s`)
	line("fail", "", "")
	return b.String()
}

// TestRules gives each rule a failure that it has to hold back.
func TestRules(t *testing.T) {
	for _, c := range []struct{ name, pkg, test, output, want string }{
		{"ordinary", "a", "TestOne", "    one_test.go:3: 1, want 2", ""},
		{"a word in the middle of a line", "a", "TestOne", "    one_test.go:3: panic: 2", ""},
		{"race", "a", "TestOne", "WARNING: DATA RACE", "data race"},
		{"race beside", "a", "TestOne", "    testing.go:1: race detected during execution of test", "data race"},
		{"goleak.VerifyTestMain", "a", "", "goleak: Errors on successful test run: found unexpected goroutines:",
			"leaked goroutines"},
		{"goleak.VerifyNone", "a", "TestOne", "    x.go:1: found unexpected goroutines:", "leaked goroutines"},
		{"synctest", "a", "TestOne", "panic: deadlock: main bubble goroutine has exited but blocked goroutines remain",
			"leaked goroutines"},
		{"time limit", "a", "TestOne", "panic: test timed out after 10m0s", "time limit of the package"},
		{"panic", "a", "TestOne", "panic: no [recovered]", "panic"},
		{"runtime", "a", "TestOne", "fatal error: concurrent map writes", "panic"},
		{"rows", "agentsite/store", "TestOne", "    x.go:1: 3 rows", "lost or doubled rows"},
		{"rows by name", "a", "TestFinish_ExactlyOnce", "    x.go:1: 3", "lost or doubled rows"},
		{"lie", "agentsite/internal/testing/evil", "TestLies", "    x.go:1: SUCCEEDED", "accepted lie"},
		{"no test", "a", "", "exit status 3", "no test that failed explains it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			r, err := readReport(strings.NewReader(stream(c.pkg, c.test, c.output)), &out)
			if err != nil {
				t.Fatal(err)
			}
			failures, final := failuresOf(r)
			switch {
			case c.want == "" && (len(final) > 0 || len(failures) != 1 || failures[0] != failure{c.pkg, c.test}):
				t.Errorf("failures %v, final %v, want the test alone", failures, final)
			case c.want != "" && (len(final) != 1 || !strings.HasSuffix(final[0], ": "+c.want)):
				t.Errorf("final %q, want %s", final, c.want)
			}
			if !strings.Contains(out.String(), c.output) || strings.Contains(out.String(), "noise") {
				t.Errorf("printed %q, want the output of the failed test and no other", out.String())
			}
		})
	}
}

// TestRules_NamePackages finds a package that was renamed and left in the list.
func TestRules_NamePackages(t *testing.T) {
	for _, r := range rules {
		for _, pkg := range r.packages {
			dir := filepath.Join("../..", strings.TrimPrefix(pkg, "agentsite/"))
			if _, err := os.Stat(dir); err != nil {
				t.Errorf("rule %q: %v", r.reason, err)
			}
		}
	}
}

// TestReport_UnfinishedTest is a test binary that ends in the middle of a test.
func TestReport_UnfinishedTest(t *testing.T) {
	text := `{"Action":"run","Package":"a","Test":"TestOne"}
{"Action":"run","Package":"a","Test":"TestTwo"}
{"Action":"fail","Package":"a","Test":"TestOne"}
{"Action":"output","Package":"a","Output":"FAIL\ta\t0.1s\n"}
{"Action":"fail","Package":"a"}
`
	r, err := readReport(strings.NewReader(text), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if failures, final := failuresOf(r); len(failures) != 0 || len(final) != 1 {
		t.Errorf("failures %v, final %v, want one final", failures, final)
	}
}

// TestReport_DetectorCrash is a test binary that the race detector ended: the package is run again, but not
// if a rule or another failure explains the end.
func TestReport_DetectorCrash(t *testing.T) {
	const crash = `{"Action":"run","Package":"a","Test":"TestOne"}
{"Action":"output","Package":"a","Test":"TestOne","Output":"ThreadSanitizer: CHECK failed: tsan_rtl.cpp:346\n"}
`
	const end = `{"Action":"output","Package":"a","Output":"FAIL\ta\t0.1s\n"}
{"Action":"fail","Package":"a"}
`
	for _, c := range []struct {
		name, between string
		failures      int
	}{
		{"alone", "", 1},
		{"beside a race", `{"Action":"output","Package":"a","Test":"TestOne","Output":"WARNING: DATA RACE\n"}` + "\n", 0},
		{"beside a failed test", `{"Action":"run","Package":"a","Test":"TestTwo"}` + "\n" +
			`{"Action":"fail","Package":"a","Test":"TestTwo"}` + "\n", 0},
	} {
		r, err := readReport(strings.NewReader(crash+c.between+end), io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		failures, final := failuresOf(r)
		if len(failures) != c.failures || len(final) != 1-c.failures {
			t.Errorf("%s: failures %v, final %v", c.name, failures, final)
		}
		if c.failures == 1 && failures[0] != (failure{pkg: "a"}) {
			t.Errorf("%s: %v is run again, want the package", c.name, failures[0])
		}
	}
}

// module writes a module with one test file for each package into a new folder.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module small\n\ngo 1.26\n"
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// Neither the project's build flags nor its coverage are those of the module.
	t.Setenv("GOFLAGS", "")
	return dir
}

const (
	good = `package good
import "testing"
func TestGood(t *testing.T) { t.Log("noise") }
`
	// once fails in the first process that runs it.
	once = `package once
import ("os"; "testing")
func TestOnce(t *testing.T) {
	t.Run("part", func(t *testing.T) {
		if _, err := os.Stat("seen"); err != nil {
			os.WriteFile("seen", nil, 0o644)
			t.Error("there was no file")
		}
	})
}
func TestGood(t *testing.T) {}
`
	always = `package always
import "testing"
func TestAlways(t *testing.T) { t.Error("this fails always") }
`
	leak = `package leak
import ("os"; "testing"; "testing/synctest")
func TestLeak(t *testing.T) {
	if _, err := os.Stat("seen"); err == nil { return }
	os.WriteFile("seen", nil, 0o644)
	synctest.Test(t, func(t *testing.T) { go func() { <-make(chan int) }() })
}
`
	race = `package race
import ("os"; "sync"; "testing")
func TestRace(t *testing.T) {
	if _, err := os.Stat("seen"); err == nil { return }
	os.WriteFile("seen", nil, 0o644)
	var n int
	var wg sync.WaitGroup
	for range 2 { wg.Go(func() { n++ }) }
	wg.Wait()
}
`
	// crash ends in the first process that runs it as the race detector ends a process.
	crash = `package crash
import ("os"; "testing")
func TestCrash(t *testing.T) {
	if _, err := os.Stat("seen"); err == nil { return }
	os.WriteFile("seen", nil, 0o644)
	os.Stderr.WriteString("ThreadSanitizer: CHECK failed: tsan_rtl.cpp:346\\n")
	os.Exit(66)
}
`
	broken = `package broken
import "testing"
func TestBroken(t *testing.T) { undefined() }
`
)

func TestGate(t *testing.T) {
	for _, c := range []struct {
		name     string
		files    map[string]string
		flags    []string
		fails    bool
		want     []string // lines or parts of lines, in order
		wantLast string
	}{
		{
			name:     "all pass",
			files:    map[string]string{"good/x_test.go": good},
			want:     []string{"ok  \tsmall/good\t", "1 packages passed, 0 failed"},
			wantLast: "1 packages passed",
		},
		{
			name:  "one fails once",
			files: map[string]string{"good/x_test.go": good, "once/x_test.go": once},
			want: []string{"there was no file", "again, alone: small/once.TestOnce", "ok  \tsmall/once\t",
				"1 packages passed, 1 failed at first"},
			wantLast: "FLAKY small/once.TestOnce",
		},
		{
			name:  "one fails once, another always",
			files: map[string]string{"once/x_test.go": once, "always/x_test.go": always},
			fails: true,
			want: []string{"this fails always", "small/always.TestAlways did not pass", "FAIL\tsmall/always\t",
				"2 failed"},
			wantLast: "FAIL",
		},
		{
			name:     "the race detector fails",
			files:    map[string]string{"crash/x_test.go": crash},
			want:     []string{"again, alone: small/crash", "ok  \tsmall/crash\t", "1 failed at first"},
			wantLast: "FLAKY small/crash",
		},
		{
			name:     "a leak is not run again, though it would pass",
			files:    map[string]string{"leak/x_test.go": leak},
			fails:    true,
			want:     []string{"not run again: small/leak", "leaked goroutines", "FAIL\tsmall/leak\t"},
			wantLast: "FAIL",
		},
		{
			// Only whole, as it compiles the standard library for the race detector.
			name:     "a race is not run again, though it would pass",
			files:    map[string]string{"race/x_test.go": race},
			flags:    []string{"-race"},
			fails:    true,
			want:     []string{"not run again: small/race.TestRace: data race", "FAIL\tsmall/race\t"},
			wantLast: "FAIL",
		},
		{
			name:     "a package does not build",
			files:    map[string]string{"broken/x_test.go": broken},
			fails:    true,
			want:     []string{"undefined: undefined", "not run again: small/broken", "FAIL\tsmall/broken [build failed]"},
			wantLast: "FAIL",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.flags != nil && os.Getenv("AGENTSITE_TEST_FULL") == "" {
				t.Skip("AGENTSITE_TEST_FULL is not set")
			}
			dir := module(t, c.files)
			var out bytes.Buffer
			g := gate{dir: dir, flakyFile: filepath.Join(dir, "flaky"), out: &out, errout: io.Discard}
			err := g.run(t.Context(), append(c.flags, "-shuffle=on", "./..."))
			if (err != nil) != c.fails {
				t.Errorf("error %v, want one: %v", err, c.fails)
			}
			rest := out.String()
			for _, want := range c.want {
				_, after, ok := strings.Cut(rest, want)
				if !ok {
					t.Fatalf("%q is missing in, or out of order:\n%s", want, out.String())
				}
				rest = after
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if last := lines[len(lines)-1]; !strings.HasPrefix(last, c.wantLast) {
				t.Errorf("the last line is %q, want %q", last, c.wantLast)
			}
			kept, _ := os.ReadFile(g.flakyFile)
			if want := strings.HasPrefix(c.wantLast, "FLAKY"); (string(kept) == c.wantLast+"\n") != want {
				t.Errorf("the file of flaky tests holds %q", kept)
			}
		})
	}
}

// TestGate_FlakyTestsOfEarlierRunsCount fills the file with all that may be.
func TestGate_FlakyTestsOfEarlierRunsCount(t *testing.T) {
	dir := module(t, map[string]string{"once/x_test.go": once})
	file := filepath.Join(dir, "flaky")
	if err := os.WriteFile(file, []byte("FLAKY a.A\nFLAKY a.B\nFLAKY a.C\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	g := gate{dir: dir, flakyFile: file, out: &out, errout: io.Discard}
	if err := g.run(t.Context(), []string{"./..."}); err == nil {
		t.Errorf("a fourth flaky test passes:\n%s", out.String())
	}
}

func TestGate_FailsWithoutPackages(t *testing.T) {
	dir := module(t, map[string]string{"good/x_test.go": good})
	g := gate{dir: dir, out: io.Discard, errout: io.Discard}
	if err := g.run(t.Context(), []string{"-nonsense", "./..."}); err == nil {
		t.Error("go test that did not run passes")
	}
}

func TestSplitArgs(t *testing.T) {
	flags, packages := splitArgs([]string{"-race", "-count=5", "./a", "./b"})
	if !slices.Equal(flags, []string{"-race", "-count=5"}) || !slices.Equal(packages, []string{"./a", "./b"}) {
		t.Errorf("flags %q, packages %q", flags, packages)
	}
}

func TestSteady(t *testing.T) {
	dir := module(t, map[string]string{"good/x_test.go": good, "once/x_test.go": once})
	t.Chdir(dir)
	var out bytes.Buffer
	s := steady{rounds: 2, seed: 7, busy: 1, timeout: steadyTimeout, dir: "out", packages: []string{"./..."}, out: &out}
	if err := s.run(t.Context()); err == nil {
		t.Errorf("no error, want one for the first round:\n%s", out.String())
	}
	for _, want := range []string{
		"2 test binaries", "FAIL small/once.TestOnce/part in round 1, seed 7 ",
		"round 2 of 2: seed 8 GOMAXPROCS=1, 0 failed", "2 rounds, 1 failures",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
	kept, err := os.ReadFile("out/01-small-once.txt")
	if err != nil || !strings.Contains(string(kept), "there was no file") {
		t.Errorf("kept %q, %v", kept, err)
	}
}

func TestFailedNames(t *testing.T) {
	for _, c := range []struct {
		output string
		want   []string
	}{
		{"--- FAIL: TestA (0.1s)\n    --- FAIL: TestA/b (0.1s)\n--- FAIL: TestC (0.1s)\n", []string{"TestA/b", "TestC"}},
		{"panic: test timed out after 1s\n\trunning tests:\n\t\tTestA (1s)\n", []string{"TestA"}},
		{"goleak: Errors on successful test run\n", []string{"?"}},
	} {
		if got := failedNames(c.output); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.output, got, c.want)
		}
	}
}
