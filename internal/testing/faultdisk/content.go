package faultdisk

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite" // registers the driver "sqlite"
)

// Content returns the schema version of a database file, and a digest of its schema and rows. Times at
// which migrations ran and counters of row ids are not in the digest. It changes the files beside the
// database, so pass it a copy of a folder whose files matter.
func Content(t testing.TB, path string) (version int64, digest string) {
	t.Helper()
	db, err := sqlx.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Get(&version, `SELECT COALESCE(MAX(version_id), 0) FROM goose_db_version`); err != nil {
		t.Fatal(err)
	}
	var tables []struct{ Name, SQL string }
	if err := db.Select(&tables, `SELECT name, COALESCE(sql, '') AS sql FROM sqlite_schema ORDER BY name`); err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	for _, table := range tables {
		fmt.Fprintln(sum, table.Name, table.SQL)
		if !strings.HasPrefix(table.SQL, "CREATE TABLE") || strings.HasPrefix(table.Name, "sqlite_") {
			continue
		}
		for _, row := range rowsOf(t, db, table.Name) {
			fmt.Fprintln(sum, row)
		}
	}
	return version, fmt.Sprintf("%x", sum.Sum(nil))
}

// rowsOf returns the rows of a table as sorted text.
func rowsOf(t testing.TB, db *sqlx.DB, table string) (list []string) {
	t.Helper()
	rows, err := db.Queryx(`SELECT * FROM "` + table + `"`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		row := map[string]any{}
		if err := rows.MapScan(row); err != nil {
			t.Fatal(err)
		}
		delete(row, "tstamp")
		list = append(list, fmt.Sprint(row))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(list)
	return list
}
