package personal

import (
	"regexp"
	"slices"
	"strings"
)

// notOwn are tables whose personal columns belong to others, or stand in other tables too.
var notOwn = []string{"names"} // the names of accounts and agents, which their own tables have

var tableName = regexp.MustCompile(`(?:FROM|JOIN) ([a-z_]+)`)

// ExportedTables returns the tables that exports read, between spaces.
func ExportedTables() string {
	out := slices.Clone(notOwn)
	for _, s := range sets {
		for _, m := range tableName.FindAllStringSubmatch(s.query, -1) {
			out = append(out, m[1])
		}
	}
	return " " + strings.Join(append(out, "messages"), " ") + " "
}

// Classified returns the columns that have a class.
func Classified() []string {
	var out []string
	for table, classes := range columns {
		for part := range strings.SplitSeq(classes, ";") {
			_, names, _ := strings.Cut(part, ":")
			for name := range strings.FieldsSeq(names) {
				out = append(out, table+"."+name)
			}
		}
	}
	return out
}
