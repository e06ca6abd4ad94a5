package task_test

import (
	"strings"
	"testing"
	"time"

	"agentsite/internal/task"
)

func TestBudget_ReadsWhatItWrites(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_800_000_000_000).UTC()
	for _, b := range []task.Budget{{}, {Calls: 3, Until: now.Add(time.Minute), Bytes: 1000}, {Until: now}} {
		got, err := task.ParseBudget(b.String())
		if err != nil || got != b {
			t.Errorf("stored %q: %+v %v", b.String(), got, err)
		}
		var lines []string
		if f := b.Field(now); f != "" {
			lines = []string{f}
		}
		if got, err = task.ParseBudgetField(lines, now); err != nil || got != b {
			t.Errorf("sent %q: %+v %v", lines, got, err)
		}
	}
	got, err := task.ParseBudgetField([]string{"seconds=9999999, more=x", " bytes=99999999999999 ,calls=100000"}, now)
	if want := (task.Budget{Calls: task.MaxBudgetCalls, Until: now.Add(task.MaxBudgetSeconds * time.Second), Bytes: task.MaxBudgetBytes}); err != nil || got != want {
		t.Errorf("%+v %v", got, err)
	}
	for _, bad := range []string{"", "calls=1", "calls=1, seconds=2", "calls=-1, seconds=2, bytes=3", "calls=1, calls=2, seconds=2, bytes=3", "calls=a, seconds=2, bytes=3",
		"calls, seconds=2, bytes=3", "calls=1.5, seconds=2, bytes=3", "calls=1, seconds=2, bytes=99999999999999999999", "calls=1, seconds=2, bytes=3" + strings.Repeat(", x=1", 100)} {
		if got, err := task.ParseBudgetField([]string{bad}, now); err == nil {
			t.Errorf("%.60q is read as %+v", bad, got)
		}
	}
	for _, bad := range []string{"x", "1 2", "-1 2 3", "1 2 -3", "1 0 3"} {
		if got, err := task.ParseBudget(bad); err == nil {
			t.Errorf("%q is read as %+v", bad, got)
		}
	}
}

func TestBudget_OnlyShrinks(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_800_000_000_000).UTC()
	b := task.Budget{Calls: 1, Until: now, Bytes: 10}
	b = b.SpendCall(4)
	if b != (task.Budget{Until: now, Bytes: 6}) {
		t.Error(b)
	}
	if b = b.SpendCall(7); b.Calls != 0 || b.Bytes != 0 {
		t.Error("below nothing:", b)
	}
	if (task.Budget{}).SpendCall(5).IsSet() {
		t.Error("nothing became a budget")
	}
	a, c := task.Budget{Calls: 5, Until: now, Bytes: 1}, task.Budget{Calls: 2, Until: now.Add(time.Second), Bytes: 9}
	want := task.Budget{Calls: 2, Until: now, Bytes: 1}
	if a.CombineWith(c) != want || c.CombineWith(a) != want || a.CombineWith(task.Budget{}) != a || (task.Budget{}).CombineWith(a) != a {
		t.Error(a.CombineWith(c), c.CombineWith(a))
	}
}

func FuzzParseBudgetField(f *testing.F) {
	f.Add("calls=3, seconds=600, bytes=262144")
	f.Fuzz(func(t *testing.T, s string) {
		now := time.UnixMilli(1_800_000_000_000).UTC()
		b, err := task.ParseBudgetField([]string{s}, now)
		if err != nil {
			return
		}
		again, err := task.ParseBudgetField([]string{b.Field(now)}, now)
		if stored, serr := task.ParseBudget(b.String()); err != nil || serr != nil || again != b || stored != b {
			t.Fatalf("%q: %+v %v, %+v %v", s, again, err, stored, serr)
		}
	})
}
