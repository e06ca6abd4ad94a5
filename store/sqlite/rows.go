package sqlite

import "agentsite/store/engine"

// rowSteps are the numbers of rows of prepared multi-row statements. There are few, because each
// prepared statement stays in memory.
var rowSteps = [...]int{64, 8, 1}

// RowStep returns the largest of rowSteps that is at most n; n is at least 1.
func RowStep(n int) int {
	for _, s := range rowSteps {
		if s <= n {
			return s
		}
	}
	return 1
}

// InsertRows implements engine.Tx, with many rows in one statement, because SQLite saves every page before
// a statement changes it, and one statement for each row would save the same pages again.
func (t *Tx) InsertRows(insert string, rows [][]any) error {
	for len(rows) > 0 {
		n := RowStep(len(rows))
		args := make([]any, 0, n*len(rows[0]))
		for _, r := range rows[:n] {
			args = append(args, r...)
		}
		if _, err := t.Exec(engine.InsertStatement(insert, len(rows[0]), n), args...); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}
