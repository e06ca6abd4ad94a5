package transfer

import (
	"context"
	"fmt"

	"agentsite/internal/clock"
	"agentsite/store/engine"
	"agentsite/store/postgres"
)

// FillServer copies the rows of a database file to the empty tables of a server's database, one table in a
// transaction. Tables that an earlier call copied are skipped: the source must not have changed since. step
// is called after each table.
func FillServer(ctx context.Context, from Source, to *postgres.DB, step func(table string)) ([]Copied, error) {
	tables, err := tablesOf(ctx, from.tx)
	if err != nil {
		return nil, err
	}
	done, err := copiedBefore(ctx, to)
	if err != nil {
		return nil, err
	}
	var copied []Copied
	for _, t := range tables {
		sum, ok := done[t.Name]
		if !ok {
			if sum, err = fillServerTable(ctx, from, to, t); err != nil {
				return nil, fmt.Errorf("copy the table %s: %w", t.Name, err)
			}
		}
		copied = append(copied, Copied{t, sum})
		step(t.Name)
	}
	return copied, nil
}

func copiedBefore(ctx context.Context, to *postgres.DB) (map[string]Sum, error) {
	var list []struct {
		Name string `db:"name"`
		Rows int64  `db:"row_count"`
		Sum  string `db:"sum"`
	}
	if err := to.List(ctx, &list, `SELECT name, row_count, sum FROM moved_tables`); err != nil {
		return nil, err
	}
	done := make(map[string]Sum)
	for _, r := range list {
		s, err := parseSum(r.Rows, r.Sum)
		if err != nil {
			return nil, err
		}
		done[r.Name] = s
	}
	return done, nil
}

func fillServerTable(ctx context.Context, from Source, to *postgres.DB, t Table) (Sum, error) {
	r, err := from.read(ctx, t)
	if err != nil {
		return Sum{}, err
	}
	defer r.rows.Close()
	err = to.CopyIn(ctx, t.Name, t.Columns, r, func(w engine.Tx) error {
		if err := r.Err(); err != nil {
			return err
		}
		if t.Numbered != "" {
			last, err := from.lastNumber(ctx, t)
			if err != nil {
				return err
			}
			var set int64
			if last > 0 {
				err = w.Get(&set, `SELECT setval(pg_get_serial_sequence(?, ?), ?)`, t.Name, t.Numbered, last)
			}
			if err != nil {
				return err
			}
		}
		_, err := w.Exec(`INSERT INTO moved_tables (name, row_count, sum, copied_at) VALUES (?, ?, ?, ?)`, t.Name,
			r.sum.Rows, r.sum.Text(), clock.Milli(clock.Now()))
		return err
	})
	return r.sum, err
}
