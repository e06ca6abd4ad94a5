package sqlite

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentsite/migrations"

	"github.com/jmoiron/sqlx"
	"github.com/pressly/goose/v3"
)

var update = flag.Bool("update", false, "write migrations/schema anew")

// schemaText is the schema of a database as statements, without the tables that
// SQLite makes by itself.
func schemaText(t *testing.T, db sqlx.QueryerContext) string {
	t.Helper()
	var list []string
	err := sqlx.SelectContext(context.Background(), db, &list, `SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\_%' ESCAPE '\'
		AND name NOT IN (SELECT name FROM pragma_table_list WHERE type = 'shadow') ORDER BY rowid`)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(list, ";\n\n") + ";\n"
}

// An empty database gets its schema in one step. The schema and the recorded
// versions must equal those that the migrations make.
func TestSchema_IsWhatTheMigrationsMake(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]Kind{"sqlite": portalFile(), "replica": {ID: 1, Migrations: migrations.Replica(), Schema: migrations.Schema("replica")}} {
		path := filepath.Join(t.TempDir(), "migrated.db")
		pool, err := Connect(path, k.writeDSN(path), 1)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		p, err := goose.NewProvider(goose.DialectSQLite3, pool.DB, k.Migrations)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Up(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := schemaText(t, pool)
		if *update {
			if err := os.WriteFile(filepath.Join("..", "..", "migrations", "schema", name+".sql"), []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		path = filepath.Join(t.TempDir(), "created.db")
		f, err := openWriter(t.Context(), path, k, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer f.closeWriter()
		if got := schemaText(t, f.wconn); got != want {
			t.Errorf("%s: migrations/schema is not what the migrations make: run go test ./store/sqlite -run Schema -update\n%s", name, got)
		}
		state := func(db sqlx.QueryerContext) string {
			t.Helper()
			var versions []string
			if err := sqlx.SelectContext(t.Context(), db, &versions, `SELECT id || ' ' || version_id || ' ' || is_applied FROM goose_db_version ORDER BY id`); err != nil {
				t.Fatal(err)
			}
			var user int64
			if err := sqlx.GetContext(t.Context(), db, &user, `PRAGMA user_version`); err != nil {
				t.Fatal(err)
			}
			return fmt.Sprint(versions, user, rowsOf(t, db))
		}
		if got, want := state(f.wconn), state(pool); got != want {
			t.Errorf("%s: %s, the migrations leave %s", name, got, want)
		}
		// goose finds nothing to do.
		if have, err := SchemaOf(t.Context(), f.wconn); err != nil || have != k.newestVersion() {
			t.Errorf("%s: schema %d, %v", name, have, err)
		}
	}
}

// rowsOf counts the rows of each table.
func rowsOf(t *testing.T, db sqlx.QueryerContext) map[string]int {
	t.Helper()
	var tables []string
	if err := sqlx.SelectContext(t.Context(), db, &tables, `SELECT name FROM pragma_table_list WHERE type IN ('table', 'shadow') AND schema = 'main' AND name NOT LIKE 'sqlite\_%' ESCAPE '\'`); err != nil {
		t.Fatal(err)
	}
	rows := make(map[string]int)
	for _, name := range tables {
		var n int
		if err := sqlx.GetContext(t.Context(), db, &n, `SELECT COUNT(*) FROM "`+name+`"`); err != nil {
			t.Fatal(err)
		}
		rows[name] = n
	}
	return rows
}
