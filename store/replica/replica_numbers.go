package replica

import (
	"context"

	"agentsite/internal/clock"
	"agentsite/store/engine"
)

// Numbers of rows come from the table sqlite_sequence, which SQLite has and the migrations of PostgreSQL
// create. A number is not given to a second row, because readers go on after the number that they read
// last. The row of a counter stays locked until its transaction ends, so that numbers are committed in
// their order.

// takeNumbers returns the first of count consecutive new numbers for a table.
func takeNumbers(t engine.Tx, table string, count int) (first int64, err error) {
	err = t.Get(&first, `UPDATE sqlite_sequence SET seq = seq + ? WHERE name = ? RETURNING seq - ? + 1`, count, table,
		count)
	return first, err
}

// startNumbers makes the numbers of each table continue after its last one. Those of said, which other
// portals read after, continue from the present time in milliseconds at least: a reader that continues
// after a number of a lost or restored replica then misses no record.
func startNumbers(ctx context.Context, db engine.DB) error {
	now := clock.Now().UnixMilli()
	return db.Write(ctx, func(t engine.Tx) error {
		for _, c := range []struct {
			table, last string
			least       int64
		}{
			{"said", `SELECT COALESCE(MAX(number), 0) FROM said`, now},
			{"wires", `SELECT COALESCE(MAX(n), 0) FROM wires`, 0},
			{"portals", `SELECT COALESCE(MAX(id), 0) FROM portals`, 0},
		} {
			var last int64
			if err := t.Get(&last, c.last); err != nil {
				return err
			}
			last = max(last, c.least)
			res, err := t.Exec(`UPDATE sqlite_sequence SET seq = CASE WHEN seq < ? THEN ? ELSE seq END WHERE name = ?`, last,
				last, c.table)
			if err != nil {
				return err
			}
			if n, err := res.RowsAffected(); err != nil {
				return err
			} else if n > 0 {
				continue
			}
			if _, err := t.Exec(`INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)`, c.table, last); err != nil {
				return err
			}
		}
		return nil
	})
}
