package main

import (
	"go/format"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentsite/internal/testing/evil"
)

// TestFragments names every fragment that is not exactly once in its file, so that a rename shows all
// entries to change at once.
func TestFragments(t *testing.T) {
	t.Parallel()
	for _, c := range checks {
		for _, ch := range c.changes {
			b, err := os.ReadFile(filepath.Join("../..", ch.file))
			if err != nil {
				t.Error(err)
				continue
			}
			if n := strings.Count(string(b), ch.from); n != 1 {
				t.Errorf("%s: %s has %d times %q", c.name, ch.file, n, ch.from)
			}
		}
	}
}

// TestChecks demands that every check is where it should be, that without them
// there is Go still, that every lie is stopped by checks that there are, and
// that no check is there for nothing.
func TestChecks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := overlay("../..", dir, checks, false); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err == nil {
			_, err = format.Source(b)
		}
		if err != nil {
			t.Errorf("%s: %v", filepath.Base(name), err)
		}
		if strings.Contains(string(b), "OFF") {
			t.Errorf("%s: OFF is left", filepath.Base(name))
		}
	}
	unused := make(map[string]bool)
	for _, c := range checks {
		if unused[c.name] || strings.Contains(c.name, "|") {
			t.Errorf("%s is there twice, or has a bar", c.name)
		}
		unused[c.name] = true
	}
	known := maps.Clone(unused)
	for _, l := range evil.All() {
		for _, name := range l.Stops {
			if !known[name] {
				t.Errorf("%s is stopped by %q, which is not there", l.Name, name)
			}
			delete(unused, name)
		}
	}
	if len(unused) > 0 {
		t.Errorf("no lie is stopped by %q", slices.Sorted(maps.Keys(unused)))
	}
}

func TestChange_With(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		change
		want string
	}{
		{not("", "if a || b {"), "if !x && (a || b) {"},
		{not("", "case a > 1:"), "case !x && (a > 1):"},
		{not("", "if n := f(); n > 1 {"), "if n := f(); !x && (n > 1) {"},
		{change{"", "f(a)", "f(OFF || a)"}, "f(x || a)"},
	} {
		if got := c.with("x"); got != c.want {
			t.Errorf("%s: %s, not %s", c.from, got, c.want)
		}
	}
}
