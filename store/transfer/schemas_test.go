package transfer_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"agentsite/internal/testing/pgtest"
	"agentsite/migrations"
	"agentsite/store/postgres"
	"agentsite/store/sqlite"
)

// only are the tables, columns and indexes that one engine alone has: the versions of migrations, the row of
// the process, the contents of files, full-text search, names that SQLite gives by itself, and an index that
// would keep PostgreSQL from replacing rows in place.
var only = regexp.MustCompile(`^[a-z]+ (goose_db_version|process|blobs|blob_parts|said_words|sqlite_sequence|agents rowid|storage kind,bytes)\b`)

// TestSchemas_AreTheSame derives the same lines from the schemas of both engines: columns with type,
// nullability and default, keys and indexes, references, triggers, views, and the number of checks.
func TestSchemas_AreTheSame(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]postgres.Kind{"sqlite": postgres.Portal(), "replica": postgres.Replica()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.NewDatabase(t)
			server, err := postgres.Open(t.Context(), url, kind, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			path := filepath.Join(t.TempDir(), "schema.db")
			file, err := sqlite.Connect(path, "file:"+path, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			if _, err := file.ExecContext(t.Context(), migrations.Schema(name)); err != nil {
				t.Fatal(err)
			}
			ofServer, err := sqlx.ConnectContext(t.Context(), "pgx", url)
			if err != nil {
				t.Fatal(err)
			}
			defer ofServer.Close()
			ofServer.SetMaxOpenConns(1)
			if _, err := ofServer.ExecContext(t.Context(), "SET search_path = "+kind.Schema); err != nil {
				t.Fatal(err)
			}
			one, other := lines(t, file, sqliteQueries), lines(t, ofServer, postgresQueries)
			if len(one) < 20 {
				t.Fatalf("only %d lines: %q", len(one), one)
			}
			for _, l := range one {
				if !slices.Contains(other, l) {
					t.Errorf("only on SQLite: %s", l)
				}
			}
			for _, l := range other {
				if !slices.Contains(one, l) {
					t.Errorf("only on PostgreSQL: %s", l)
				}
			}
		})
	}
}

// lines returns the sorted lines of all queries, without those of only.
func lines(t *testing.T, db *sqlx.DB, queries []string) []string {
	t.Helper()
	var all []string
	for _, q := range queries {
		var part []string
		if err := db.SelectContext(context.Background(), &part, q); err != nil {
			t.Fatal(fmt.Errorf("%w: %s", err, q))
		}
		for _, l := range part {
			if !only.MatchString(l) {
				all = append(all, strings.Join(strings.Fields(l), " "))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// tables of SQLite that a schema declares.
const ofSQLite = `(SELECT name, sql FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'
	AND name NOT LIKE 'said!_words%' ESCAPE '!')`

var sqliteQueries = []string{
	`SELECT 'column ' || t.name || ' ' || c.name || ' ' || CASE c.type WHEN 'INTEGER' THEN 'bigint' WHEN 'TEXT' THEN 'text' WHEN 'BLOB' THEN 'bytea' ELSE c.type END
		|| CASE WHEN c."notnull" OR c.pk THEN ' not null' ELSE '' END || COALESCE(' default ' || REPLACE(LOWER(c.dflt_value), 'x''', ''''), '')
		FROM ` + ofSQLite + ` t JOIN pragma_table_info(t.name) c`,
	`SELECT 'key ' || t.name || ' ' || (SELECT group_concat(name) FROM (SELECT c.name FROM pragma_table_info(t.name) c WHERE c.pk > 0 ORDER BY c.pk))
		FROM ` + ofSQLite + ` t WHERE EXISTS (SELECT 1 FROM pragma_table_info(t.name) c WHERE c.pk > 0)`,
	`SELECT CASE WHEN i."unique" THEN 'unique ' ELSE 'index ' END || t.name || ' ' || (SELECT group_concat(n) FROM (SELECT COALESCE(c.name, 'expression') AS n FROM pragma_index_info(i.name) c ORDER BY c.seqno))
		|| CASE WHEN i.partial THEN ' partial' ELSE '' END
		FROM ` + ofSQLite + ` t JOIN pragma_index_list(t.name) i WHERE i.origin <> 'pk'`,
	`SELECT 'reference ' || t.name || ' ' || f."from" || ' ' || f."table" || CASE f.on_delete WHEN 'CASCADE' THEN ' cascade' ELSE '' END
		FROM ` + ofSQLite + ` t JOIN pragma_foreign_key_list(t.name) f`,
	`SELECT type || ' ' || name || CASE type WHEN 'trigger' THEN ' ' || tbl_name ELSE '' END FROM sqlite_master WHERE type IN ('view', 'trigger')`,
	`SELECT 'checks ' || name || ' ' || ((LENGTH(sql) - LENGTH(REPLACE(sql, 'CHECK (', ''))) / 7) FROM ` + ofSQLite,
}

var postgresQueries = []string{
	`SELECT 'column ' || table_name || ' ' || column_name || ' ' || data_type || CASE is_nullable WHEN 'NO' THEN ' not null' ELSE '' END
		|| COALESCE(' default ' || REPLACE(regexp_replace(LOWER(column_default), '::[a-z]+', ''), '\x', ''), '')
		FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
		WHERE table_schema = current_schema AND table_type = 'BASE TABLE'`,
	`SELECT 'key ' || i.indrelid::regclass || ' ' || (SELECT string_agg(a.attname, ',' ORDER BY k.n) FROM unnest(i.indkey) WITH ORDINALITY k (num, n)
		JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.num)
		FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid WHERE c.relnamespace = current_schema::regnamespace AND i.indisprimary`,
	`SELECT CASE WHEN i.indisunique THEN 'unique ' ELSE 'index ' END || i.indrelid::regclass || ' ' || (SELECT string_agg(COALESCE(a.attname, 'expression'), ',' ORDER BY k.n)
		FROM unnest(i.indkey) WITH ORDINALITY k (num, n) LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.num)
		|| CASE WHEN i.indpred IS NULL THEN '' ELSE ' partial' END
		FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid WHERE c.relnamespace = current_schema::regnamespace AND NOT i.indisprimary`,
	`SELECT 'reference ' || conrelid::regclass || ' ' || a.attname || ' ' || confrelid::regclass || CASE confdeltype WHEN 'c' THEN ' cascade' ELSE '' END
		FROM pg_constraint JOIN pg_attribute a ON a.attrelid = conrelid AND a.attnum = conkey[1]
		WHERE contype = 'f' AND connamespace = current_schema::regnamespace`,
	`SELECT 'trigger ' || tgname || ' ' || tgrelid::regclass FROM pg_trigger JOIN pg_class c ON c.oid = tgrelid
		WHERE NOT tgisinternal AND c.relnamespace = current_schema::regnamespace`,
	`SELECT 'view ' || table_name FROM information_schema.views WHERE table_schema = current_schema`,
	`SELECT 'checks ' || c.relname || ' ' || (SELECT COUNT(*) FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'c') FROM pg_class c
		WHERE c.relkind = 'r' AND c.relnamespace = current_schema::regnamespace`,
}
