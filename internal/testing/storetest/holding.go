package storetest

import (
	"database/sql"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // registers the driver "sqlite"

	"agentsite/store"
	"agentsite/store/postgres"
)

// Connect opens the tables of the portal in folder dir beside it, until the test ends. On SQLite rows that
// the connection deletes are overwritten, as the portal has it.
func Connect(t testing.TB, dir string) *sql.DB {
	t.Helper()
	driver, source := "sqlite", (&url.URL{Scheme: "file", Opaque: filepath.Join(dir, store.FileName),
		RawQuery: "_pragma=busy_timeout(10000)&_pragma=secure_delete(1)"}).String()
	if OnPostgres() {
		u, err := url.Parse(DatabaseOf(t, dir))
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		q.Set("search_path", postgres.Portal().Schema)
		u.RawQuery = q.Encode()
		driver, source = "pgx", u.String()
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// TablesHolding returns the columns, as "table.column", that contain the text anywhere in the database
// in folder dir, without regard to case. It includes the tables of full-text indexes, so that a test
// can prove that a deleted text is gone. On PostgreSQL it includes the replica.
func TablesHolding(t testing.TB, dir, text string) []string {
	t.Helper()
	db := Connect(t, dir)
	defer db.Close()
	tables := `SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'`
	if OnPostgres() {
		tables = `SELECT schemaname || '"."' || tablename FROM pg_tables WHERE schemaname LIKE 'agentsite%'`
	}
	text = strings.ToLower(text)
	var found []string
	for _, table := range column(t, db, tables) {
		rows, err := db.QueryContext(t.Context(), `SELECT * FROM "`+table+`"`)
		if err != nil {
			t.Fatal(err)
		}
		names, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			values, into := make([]sql.RawBytes, len(names)), make([]any, len(names))
			for i := range values {
				into[i] = &values[i]
			}
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			for i, v := range values {
				if strings.Contains(strings.ToLower(string(v)), text) {
					found = append(found, table[strings.LastIndexByte(table, '"')+1:]+"."+names[i])
				}
			}
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		rows.Close()
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func column(t testing.TB, db *sql.DB, query string) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}
