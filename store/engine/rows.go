package engine

import "strings"

// InsertStatement returns the statement with which Tx.InsertRows inserts n rows of as many values each:
// insert with placeholders after its word VALUES.
func InsertStatement(insert string, values, n int) string {
	before, after, _ := strings.Cut(insert, "VALUES")
	row := "(" + strings.Repeat("?, ", values-1) + "?)"
	return before + "VALUES " + strings.Repeat(row+", ", n-1) + row + after
}
