package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// quickCheck checks the pages of a database that nobody writes.
func quickCheck(ctx context.Context, path string) ([]string, error) {
	pool, err := connectQuiet(path)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	var lines []string
	err = pool.SelectContext(ctx, &lines, quickCheckQuery)
	return damage(lines, err)
}

const quickCheckQuery = `PRAGMA quick_check(5)`

// QuickCheck checks the pages of the database while it is in use and returns
// what is damaged, nothing when nothing is. It reads all of the file in one go:
// bound it by ctx.
func (f *file) QuickCheck(ctx context.Context) ([]string, error) {
	var lines []string
	err := f.list(ctx, &lines, quickCheckQuery)
	return damage(lines, err)
}

// damage is what a check said, without its "ok". A file that is too damaged to be
// checked is damaged.
func damage(lines []string, err error) ([]string, error) {
	switch {
	case err == nil && len(lines) == 1 && lines[0] == "ok":
		return nil, nil
	case err == nil:
		return lines, nil
	case unreadable(err):
		return []string{err.Error()}, nil
	}
	return nil, fmt.Errorf("check the database: %w", err)
}

// unreadable reports whether err is damage of the file rather than a failure
// to look at it.
func unreadable(err error) bool {
	c := code(err) & 0xff
	return c == sqliteCorrupt || c == sqliteNotADB || c == sqliteIOErr || errors.Is(err, errBadValue)
}

// errBadValue is a column whose value cannot be what we wrote.
var errBadValue = errors.New("a value has the wrong type")

// each calls fn with every row of a query, one at a time.
func each[T any](ctx context.Context, q sqlx.QueryerContext, fn func(T), query string, args ...any) error {
	rows, err := q.QueryxContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var row T
		if err := rows.StructScan(&row); err != nil {
			return fmt.Errorf("%w: %w", errBadValue, err)
		}
		fn(row)
	}
	return rows.Err()
}
