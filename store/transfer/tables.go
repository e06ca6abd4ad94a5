// Package transfer copies the rows of a portal's database from SQLite to PostgreSQL and back, and proves
// by counts and checksums that the copy is complete. It knows tables by the schema alone.
package transfer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"
)

// Table is a table of both engines that is copied.
type Table struct {
	Name    string
	Columns []string
	// Numbered is the column of numbers that the engine gives out, "" for none.
	Numbered string

	parents []string // tables that rows refer to
}

// left are tables that are not copied: the versions of migrations, the marks of a move, and the full-text
// index of messages, which the portal fills again from the messages.
var left = map[string]bool{"goose_db_version": true, "database_move": true, "moved_tables": true, "said": true,
	"said_words": true}

// constants are columns with a value that does not depend on the source. With words_seq 0 the messages of a
// conversation are indexed anew.
var constants = map[string]string{"conversations.words_seq": "0"}

// rowids are the tables that have SQLite's rowid as a column in PostgreSQL: the order in which rows were stored.
var rowids = map[string]bool{"agents": true}

// tablesOf returns the tables of a portal's database file, those first that others refer to.
func tablesOf(ctx context.Context, file sqlx.QueryerContext) ([]Table, error) {
	var list []Table
	var names []struct {
		Name string `db:"name"`
		SQL  string `db:"sql"`
	}
	err := sqlx.SelectContext(ctx, file, &names, `SELECT name, sql FROM sqlite_master WHERE type = 'table'
		AND name NOT LIKE 'sqlite!_%' ESCAPE '!' AND name NOT LIKE 'said!_words!_%' ESCAPE '!' ORDER BY name`)
	if err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	for _, n := range names {
		if left[n.Name] {
			continue
		}
		t := Table{Name: n.Name}
		if err := sqlx.SelectContext(ctx, file, &t.Columns, `SELECT name FROM pragma_table_info(?)`, n.Name); err != nil {
			return nil, fmt.Errorf("read the schema: %w", err)
		}
		if err := sqlx.SelectContext(ctx, file, &t.parents,
			`SELECT DISTINCT "table" FROM pragma_foreign_key_list(?1) WHERE "table" <> ?1`, n.Name); err != nil {
			return nil, fmt.Errorf("read the schema: %w", err)
		}
		if strings.Contains(n.SQL, "AUTOINCREMENT") {
			t.Numbered = t.Columns[0]
		}
		if rowids[n.Name] {
			t.Columns, t.Numbered = append([]string{"rowid"}, t.Columns...), "rowid"
		}
		list = append(list, t)
	}
	return sortTables(list)
}

// sortTables sorts tables so that each comes after those that it refers to.
func sortTables(list []Table) ([]Table, error) {
	var sorted []Table
	placed := make(map[string]bool)
	for len(sorted) < len(list) {
		before := len(sorted)
		for _, t := range list {
			if !placed[t.Name] && !slices.ContainsFunc(t.parents, func(p string) bool { return !placed[p] }) {
				sorted, placed[t.Name] = append(sorted, t), true
			}
		}
		if len(sorted) == before {
			return nil, fmt.Errorf("the tables of the schema refer to each other in a circle")
		}
	}
	return sorted, nil
}

// selectRows returns the statement that reads all rows of the table, for both engines.
func (t Table) selectRows() string {
	columns := slices.Clone(t.Columns)
	for i, c := range columns {
		if value, ok := constants[t.Name+"."+c]; ok {
			columns[i] = value + " AS " + c
		}
	}
	return "SELECT " + strings.Join(columns, ", ") + " FROM " + t.Name
}
