package sqlite

import (
	"strings"
	"testing"
)

// A search of messages reads the full-text index and sorts nothing.
func TestMatchWords_UsesTheIndex(t *testing.T) {
	t.Parallel()
	var plan []struct {
		ID      int    `db:"id"`
		Parent  int    `db:"parent"`
		NotUsed int    `db:"notused"`
		Detail  string `db:"detail"`
	}
	d := openTestFile(t, t.TempDir())
	if err := d.List(t.Context(), &plan, "EXPLAIN QUERY PLAN "+matchSQL, `"a"`, 1, 1); err != nil {
		t.Fatal(err)
	}
	if len(plan) != 2 || !strings.Contains(plan[0].Detail, "VIRTUAL TABLE") || !strings.Contains(plan[1].Detail, "PRIMARY KEY") {
		t.Errorf("%+v", plan)
	}
}
