// Package plantest checks that SQL queries use their indexes, so that they stay fast however many rows
// a table has.
package plantest

import (
	"log/slog"
	"strings"
	"testing"

	"agentsite/store/sqlite"
)

// Open opens an empty database of a portal and closes it when the test ends.
func Open(t testing.TB, dir string) *sqlite.DB {
	t.Helper()
	db, err := sqlite.OpenPortal(t.Context(), dir, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// Check fails the test unless the query plan of each query names its index, scans no table and sorts
// nothing. plans maps each query to the name of its index. The queries run on an empty database of a
// portal.
func Check(t testing.TB, plans map[string]string) {
	t.Helper()
	db := Open(t, t.TempDir())
	for query, index := range plans {
		var plan []struct {
			ID      int    `db:"id"`
			Parent  int    `db:"parent"`
			NotUsed int    `db:"notused"`
			Detail  string `db:"detail"`
		}
		args := make([]any, strings.Count(query, "?"))
		if err := db.List(t.Context(), &plan, `EXPLAIN QUERY PLAN `+query, args...); err != nil {
			t.Fatal(err)
		}
		found := false
		for _, p := range plan {
			found = found || strings.Contains(p.Detail, index)
			if strings.HasPrefix(p.Detail, "SCAN ") && !strings.Contains(p.Detail, "INDEX") || strings.Contains(p.Detail, "TEMP B-TREE") {
				t.Errorf("%s\n%s", query, p.Detail)
			}
		}
		if !found {
			t.Errorf("%s\ndoes not use %s: %+v", query, index, plan)
		}
	}
}
