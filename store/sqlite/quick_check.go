package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// QuickCheckFile checks the pages of a database without writers.
func QuickCheckFile(ctx context.Context, path string) ([]string, error) {
	pool, err := ConnectReadOnly(path)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	var lines []string
	err = pool.SelectContext(ctx, &lines, quickCheckQuery)
	return damageOf(lines, err)
}

const quickCheckQuery = `PRAGMA quick_check(5)`

// QuickCheck checks the pages of the database while it is in use and returns the damage found. It
// reads all of the file in one go: bound it by ctx.
func (f *DB) QuickCheck(ctx context.Context) ([]string, error) {
	var lines []string
	err := f.List(ctx, &lines, quickCheckQuery)
	return damageOf(lines, err)
}

// damageOf returns the messages of a check, without its "ok". A file that is too damaged to be checked
// is damaged.
func damageOf(lines []string, err error) ([]string, error) {
	switch {
	case err == nil && len(lines) == 1 && lines[0] == "ok":
		return []string{}, nil
	case err == nil:
		return lines, nil
	case IsDamaged(err):
		return []string{err.Error()}, nil
	}
	return nil, fmt.Errorf("check the database: %w", err)
}

// IsDamaged reports whether err is damage of the file rather than a failure
// to look at it.
func IsDamaged(err error) bool {
	c := ErrorCode(err) & 0xff
	return c == sqliteCorrupt || c == sqliteNotADB || c == sqliteIOErr || errors.Is(err, ErrBadValue)
}

// ErrBadValue is returned for a column with a value that we never write.
var ErrBadValue = errors.New("a value has the wrong type")

// EachRow calls fn with every row of a query, one at a time.
func EachRow[T any](ctx context.Context, q sqlx.QueryerContext, fn func(T), query string, args ...any) error {
	rows, err := q.QueryxContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var row T
		if err := rows.StructScan(&row); err != nil {
			return fmt.Errorf("%w: %w", ErrBadValue, err)
		}
		fn(row)
	}
	return rows.Err()
}
