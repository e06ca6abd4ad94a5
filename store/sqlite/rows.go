package sqlite

import "strings"

// rowSteps are the numbers of rows that statements for many rows are prepared for: few, because each
// prepared statement stays.
var rowSteps = [...]int{64, 8, 1}

// RowStep returns the largest number of rows, at most n, that statements are prepared for. n is not 0.
func RowStep(n int) int {
	for _, s := range rowSteps {
		if s <= n {
			return s
		}
	}
	return 1
}

// InsertRows inserts rows of the same number of values, many by one statement: SQLite saves every page
// that a statement changes for the case that it fails, so one statement for each row saves the same
// pages again and again. insert is the statement up to and including VALUES.
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
