package sqlite

import "strings"

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

// InsertRows inserts rows, many by one statement, because SQLite saves every page before a statement
// changes it, and one statement for each row would save the same pages again. insert is the statement up
// to and including VALUES; all rows have the same number of values.
func (t *Tx) InsertRows(insert string, rows [][]any) error {
	for len(rows) > 0 {
		n := RowStep(len(rows))
		row := "(" + strings.Repeat("?, ", len(rows[0])-1) + "?)"
		args := make([]any, 0, n*len(rows[0]))
		for _, r := range rows[:n] {
			args = append(args, r...)
		}
		if _, err := t.Exec(insert+" "+strings.Repeat(row+", ", n-1)+row, args...); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}
