package task_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"agentsite/internal/fault"
	"agentsite/internal/task"
)

func TestChain_ReadsWhatItWrites(t *testing.T) {
	t.Parallel()
	for _, c := range []task.Chain{nil, {"a.example/x"}, {"a.example:8443/x-_9", "[::1]:8080/y", "a.example:8443/x-_9"}} {
		got, err := task.ParseChain(c.String())
		if err != nil || !slices.Equal(got, c) {
			t.Errorf("stored %q: %v %v", c, got, err)
		}
		var lines []string
		if f := c.Field(); f != "" {
			lines = []string{f}
		}
		if got, err = task.ParseField(lines); err != nil || !slices.Equal(got, c) {
			t.Errorf("sent %q: %v %v", c, got, err)
		}
	}
	if got, err := task.ParseField([]string{`"a/b" ,"c/d"`, ` "e/f"`}); err != nil || len(got) != 3 {
		t.Error(got, err)
	}
	long := `"` + strings.Repeat("a", 319) + `/b"`
	for _, bad := range []string{"", "a/b", `"a/b`, `a/b"`, `"ab"`, `"/b"`, `"a/"`, `"a/b",`, `"a/b" "c/d"`, `"a/ b"`, `"a/\"b"`, "\"a/b\x00\"", `"ä/b"`, long, strings.Repeat(`"a/b",`, 32) + `"a/b"`} {
		if got, err := task.ParseField([]string{bad}); err == nil {
			t.Errorf("%.40q is read as %v", bad, got)
		}
	}
}

func TestChain_EnterStopsCirclesAndLongWays(t *testing.T) {
	t.Parallel()
	c := task.Chain{"a/1", "b/2"}
	if err := c.CheckEntry("c/3", "carl"); err != nil {
		t.Error(err)
	}
	err := c.CheckEntry("b/2", "bert")
	if !errors.Is(err, task.ErrLoop) || !strings.HasPrefix(fault.As(err).Safe, "bert was not asked") {
		t.Error(err)
	}
	// Another agent of the same portal, or the same mark of another portal, is
	// somebody else.
	if c.CheckEntry("b/1", "x") != nil || c.CheckEntry("a/2", "x") != nil {
		t.Error("names are mixed up")
	}
	for len(c) < task.MaxChain-1 {
		c = c.AppendHop(task.Hop("x/" + strings.Repeat("y", len(c))))
	}
	if err := c.CheckEntry("c/3", "carl"); err != nil {
		t.Error("too early:", err)
	}
	if err := c.AppendHop("z/z").CheckEntry("c/3", "carl"); !errors.Is(err, task.ErrLoop) {
		t.Error("no end:", err)
	}
}

func TestChain_WithSharesNothing(t *testing.T) {
	t.Parallel()
	c := make(task.Chain, 1, 4)
	c[0] = "a/1"
	b, d := c.AppendHop("b/2"), c.AppendHop("d/3")
	if b[1] != "b/2" || d[1] != "d/3" {
		t.Error(b, d)
	}
}

func FuzzParseField(f *testing.F) {
	f.Add(`"a.example/x", "[::1]:8080/y"`)
	f.Add(`"a/b",`)
	f.Fuzz(func(t *testing.T, s string) {
		c, err := task.ParseField([]string{s})
		if err != nil {
			return
		}
		again, err := task.ParseField([]string{c.Field()})
		stored, serr := task.ParseChain(c.String())
		if err != nil || serr != nil || !slices.Equal(c, again) || !slices.Equal(c, stored) {
			t.Fatalf("%q: %q %v, %q %v", c, again, err, stored, serr)
		}
	})
}
