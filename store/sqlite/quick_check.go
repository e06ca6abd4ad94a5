package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// QuickCheckFile returns the damage that SQLite finds in the pages of a database that no portal writes
// to; none means that it found no damage.
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

// QuickCheck is QuickCheckFile for a database in use. It reads the whole file in one go, so bound its
// time by ctx.
func (f *DB) QuickCheck(ctx context.Context) ([]string, error) {
	var lines []string
	err := f.List(ctx, &lines, quickCheckQuery)
	return damageOf(lines, err)
}

// damageOf returns the messages of a check, without its "ok". An error that is damage becomes a message.
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

// IsDamaged reports whether err is damage of the file, and not a failure to read it.
func IsDamaged(err error) bool {
	c := ErrorCode(err) & 0xff
	return c == sqliteCorrupt || c == sqliteNotADB || c == sqliteIOErr || errors.Is(err, ErrBadValue)
}

// ErrBadValue is returned for a stored value of a type or length that the portal never writes.
var ErrBadValue = errors.New("a value has the wrong type")

// EachRow calls fn with every row of a query, one at a time in memory.
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
