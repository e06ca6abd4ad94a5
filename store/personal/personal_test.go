package personal_test

import (
	"os"
	"strings"
	"testing"

	"agentsite/internal/testing/storetest"
	"agentsite/store/personal"
)

// Each text and binary column is personal, secret, public, of the portal, or an id.
func TestClassOf_KnowsEveryColumn(t *testing.T) {
	t.Parallel()
	storetest.SkipOnPostgres(t)
	db := storetest.New(t)
	var columns []struct {
		Table string `db:"of"`
		Name  string `db:"name"`
		Type  string `db:"type"`
	}
	if err := db.List(t.Context(), &columns, `SELECT m.name AS of, c.name, c.type FROM sqlite_schema m JOIN pragma_table_info(m.name) c
		WHERE m.type = 'table' AND m.name NOT LIKE 'said_words%' AND m.name NOT LIKE 'sqlite%'`); err != nil {
		t.Fatal(err)
	}
	exists := make(map[string]bool)
	for _, c := range columns {
		exists[c.Table+"."+c.Name] = true
		class := personal.ClassOf(c.Table, c.Name)
		if class == "" && c.Type != "INTEGER" {
			t.Errorf("%s.%s has no class: personal, secret, portal, public or link", c.Table, c.Name)
		}
		if class == personal.Personal && !strings.Contains(personal.ExportedTables(), " "+c.Table+" ") {
			t.Errorf("%s.%s is personal and %s is not exported", c.Table, c.Name, c.Table)
		}
	}
	for _, name := range personal.Classified() {
		if !exists[name] {
			t.Errorf("%s has a class and does not exist", name)
		}
	}
	list, err := os.ReadDir(storetest.Dir(db))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		if personal.FileClass(f.Name()) == "" {
			t.Errorf("the file %s has no class", f.Name())
		}
	}
}
