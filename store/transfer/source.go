package transfer

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jmoiron/sqlx"

	"agentsite/store/postgres"
	"agentsite/store/sqlite"
)

// Source is a database that is read as of one moment.
type Source struct {
	tx     *sqlx.Tx
	server bool // PostgreSQL
}

// ReadFile calls fn with the rows of a portal's database file as of one moment. A portal may use the file.
func ReadFile(ctx context.Context, path string, fn func(Source) error) error {
	pool, err := sqlite.Connect(path, sqlite.ReadDSN(path), 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	tx, err := pool.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	return fn(Source{tx, false})
}

// ReadServer calls fn with the rows of a portal's database on a server as of one moment. A portal may use
// the database. It returns an error if there is no portal in it.
func ReadServer(ctx context.Context, url string, fn func(Source) error) error {
	found, err := postgres.Snapshot(ctx, url, postgres.Portal(), func(tx *sqlx.Tx) error {
		return fn(Source{tx, true})
	})
	if err == nil && !found {
		err = errors.New("the database holds no portal")
	}
	return err
}

// rowReader reads the rows of a table one by one and sums them.
type rowReader struct {
	rows    *sqlx.Rows
	table   Table
	strict  bool // refuse text that PostgreSQL cannot store
	sum     Sum
	current []any
	err     error
}

func (s Source) read(ctx context.Context, t Table) (*rowReader, error) {
	rows, err := s.tx.QueryxContext(ctx, t.selectRows())
	if err != nil {
		return nil, fmt.Errorf("read the table %s: %w", t.Name, err)
	}
	return &rowReader{rows: rows, table: t, strict: !s.server}, nil
}

// Next reads the next row. It returns false after the last one and after an error.
func (r *rowReader) Next() bool {
	if r.err != nil || !r.rows.Next() {
		return false
	}
	if r.current, r.err = r.rows.SliceScan(); r.err == nil {
		r.err = r.sum.add(r.current)
	}
	if r.err == nil && r.strict {
		r.err = r.checkText()
	}
	return r.err == nil
}

// checkText returns an error for a text that PostgreSQL cannot store.
func (r *rowReader) checkText() error {
	for i, v := range r.current {
		if s, ok := v.(string); ok && (strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s)) {
			return fmt.Errorf("row %d has a text in %s that PostgreSQL cannot store: a NUL character, or no UTF-8",
				r.sum.Rows, r.table.Columns[i])
		}
	}
	return nil
}

// Values returns the current row. It is valid until the next one.
func (r *rowReader) Values() ([]any, error) { return r.current, r.err }

// Err returns the first error.
func (r *rowReader) Err() error {
	if err := errors.Join(r.err, r.rows.Err()); err != nil {
		return fmt.Errorf("read the table %s: %w", r.table.Name, err)
	}
	return nil
}

// sumOf reads a whole table.
func (s Source) sumOf(ctx context.Context, t Table) (Sum, error) {
	r, err := s.read(ctx, t)
	if err != nil {
		return Sum{}, err
	}
	defer r.rows.Close()
	r.strict = false
	for r.Next() {
	}
	return r.sum, r.Err()
}

// lastNumber returns the last number that the engine gave out in a table, also if its row is deleted.
func (s Source) lastNumber(ctx context.Context, t Table) (n int64, err error) {
	if s.server {
		var name string
		err = s.tx.GetContext(ctx, &name, `SELECT pg_get_serial_sequence($1, $2)`, t.Name, t.Numbered)
		if err == nil {
			err = s.tx.GetContext(ctx, &n, `SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM `+name)
		}
	} else if !rowids[t.Name] {
		err = s.tx.GetContext(ctx, &n, `SELECT seq FROM sqlite_sequence WHERE name = ?`, t.Name)
		if errors.Is(err, sql.ErrNoRows) {
			err = nil
		}
	}
	var highest int64
	if err == nil {
		err = s.tx.GetContext(ctx, &highest, fmt.Sprintf("SELECT COALESCE(MAX(%s), 0) FROM %s", t.Numbered, t.Name))
	}
	if err != nil {
		return 0, fmt.Errorf("read the last number of %s: %w", t.Name, err)
	}
	return max(n, highest), nil
}

// Copied is a table with the rows that were copied.
type Copied struct {
	Table Table
	Sum   Sum
}

// Compare reads all tables and returns an error for the first that differs from the copied one, or for a
// conversation with a last message that is not its head.
func (s Source) Compare(ctx context.Context, copied []Copied) (heads int, err error) {
	for _, c := range copied {
		sum, err := s.sumOf(ctx, c.Table)
		if err != nil {
			return 0, err
		}
		if sum != c.Sum {
			return 0, fmt.Errorf("the copy of table %s differs: %d rows with the checksum %.16s instead of %d with %.16s",
				c.Table.Name, sum.Rows, sum.Text(), c.Sum.Rows, c.Sum.Text())
		}
	}
	return s.checkHeads(ctx)
}

// checkHeads compares the head of each conversation with its last message, and returns their number.
func (s Source) checkHeads(ctx context.Context) (n int, err error) {
	rows, err := s.tx.QueryxContext(ctx, `SELECT c.id, c.head_hash, m.hash FROM conversations c
		LEFT JOIN messages m ON m.conversation_id = c.id AND m.seq = c.last_seq WHERE c.last_seq > 0`)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		var head, hash []byte
		if err := rows.Scan(&id, &head, &hash); err != nil {
			return n, err
		}
		if !bytes.Equal(head, hash) {
			return n, fmt.Errorf("the last message of conversation %s is not the head of its chain", id)
		}
		n++
	}
	return n, rows.Err()
}
