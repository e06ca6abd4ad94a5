package sqlite

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
)

// checkRows is the number of rows between two looks at the time in ReadTable.
const checkRows = 64

// Tables returns the names of the tables with content, without those of a full-text index, which is
// rebuilt when it is damaged.
func (f *DB) Tables(ctx context.Context) ([]string, error) {
	names := []string{}
	err := f.read.SelectContext(ctx, &names,
		`SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' ORDER BY name`)
	return names, err
}

// CheckTable returns the damage in the pages of a table and its indexes, at most 5 messages. It reads all
// of them in one go, so bound its time by ctx.
func (f *DB) CheckTable(ctx context.Context, table string) ([]string, error) {
	var lines []string
	err := f.read.SelectContext(ctx, &lines, `PRAGMA integrity_check(`+quoteName(table)+`)`)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	list, err := damageOf(lines, err)
	return list[:min(len(list), 5)], err
}

func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// ReadTable reads the rows of a table after a key, nil for the first, until a point in time, and at least
// some. It returns the key of the last row, and nil at the end of the table. An error for which IsDamaged
// holds is damage of the table.
func (f *DB) ReadTable(ctx context.Context, table string, after []any, until time.Time) (last []any, err error) {
	key := []string{"rowid"}
	var withoutRowID bool
	err = f.read.GetContext(ctx, &withoutRowID, `SELECT wr FROM pragma_table_list WHERE schema = 'main' AND name = ?`, table)
	if err == nil && withoutRowID {
		key = nil
		err = f.read.SelectContext(ctx, &key, `SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk`, table)
	}
	if err != nil {
		return nil, fmt.Errorf("read table %s: %w", table, err)
	}
	for i, name := range key {
		key[i] = quoteName(name)
	}
	columns := strings.Join(key, ", ")
	where := ""
	if after != nil {
		where = ` WHERE (` + columns + `) > (?` + strings.Repeat(`, ?`, len(key)-1) + `)`
	}
	rows, err := f.read.QueryContext(ctx, `SELECT `+columns+`, * FROM `+quoteName(table)+where+` ORDER BY `+columns, after...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	values, into := make([]any, len(names)), make([]any, len(names))
	for i := range values {
		into[i] = &values[i]
	}
	for n := 1; rows.Next(); n++ {
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		if n%checkRows == 0 && time.Now().After(until) {
			return values[:len(key)], nil
		}
	}
	return nil, rows.Err()
}

// ReadTx calls fn with a transaction that sees the database as of one moment. Keep it short, because the
// write-ahead log grows meanwhile.
func (f *DB) ReadTx(ctx context.Context, fn func(*sqlx.Tx) error) error {
	tx, err := f.read.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	return fn(tx)
}
