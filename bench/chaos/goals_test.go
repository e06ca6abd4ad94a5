package main

import "testing"

func TestCompareGoal_FindsEachBrokenPromise(t *testing.T) {
	golden, both := []string{"opened", "concluded"}, map[string]int{"a": 1, "b": 1}
	for name, c := range map[string]struct {
		state string
		list  []string
		asked map[string]int
		want  string // kind of the violation, "" for none
	}{
		"the same":     {"concluded", golden, both, ""},
		"still works":  {"working", golden, both, unanswered},
		"another log":  {"concluded", []string{"opened", "started", "concluded"}, both, changed},
		"asked twice":  {"concluded", golden, map[string]int{"a": 1, "b": 2}, duplicated},
		"asked no one": {"concluded", golden, map[string]int{"a": 1}, lost},
	} {
		found := compareGoal("g", c.state, c.list, golden, c.asked)
		if c.want == "" && len(found) > 0 || c.want != "" && (len(found) != 1 || found[0].kind != c.want) {
			t.Errorf("%s: %v", name, found)
		}
	}
}
