package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// storeFolders are the folders that may depend on SQLite. PostgreSQL will implement the ports of the
// services in another folder below store, so ports and all other code must not.
var storeFolders = []string{"store/", "migrations/", "bench/", "internal/testing/"}

// storeExceptions are other files that may contain such words, each with the reason.
var storeExceptions = map[string]string{
	"agentruntime/builtin/thesaurus.go": "a word that people search for",
	"handlers/markup/grammars.go":       "keywords of highlighted languages",
}

// storeWords are names of packages, SQL statements and terms of SQLite, in lower case.
var storeWords = []string{"sqlite", "rowid", "sqlx.", "database/sql", "sql.err", "sql.null", "sql.db", "sql.tx", "sql.rows",
	"goose", "pragma ", "vacuum", "fts5", "write-ahead", "`select ", "\"select ", "insert into ", "delete from "}

// findStoreWord returns the first of storeWords that the text contains in any case, "" if there is
// none.
func findStoreWord(text string) string {
	text = strings.ToLower(text)
	for _, word := range storeWords {
		if strings.Contains(text, word) {
			return word
		}
	}
	return ""
}

// TestDatabase refuses SQL and names of SQLite outside the store, in code and in comments.
func TestDatabase(t *testing.T) {
	used, files := make(map[string]bool), 0
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules" || name == "data") {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		for _, folder := range storeFolders {
			if strings.HasPrefix(name, folder) {
				return nil
			}
		}
		files++
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if findStoreWord(string(text)) == "" {
			return nil
		}
		for i, line := range strings.Split(string(text), "\n") {
			word := findStoreWord(line)
			if word == "" {
				continue
			}
			if _, ok := storeExceptions[name]; ok {
				used[name] = true
				continue
			}
			t.Errorf("%s:%d has %q, which only the store may know", name, i+1, word)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range storeExceptions {
		if !used[name] {
			t.Errorf("%s has no such word any more: remove its exception", name)
		}
	}
	if files < 200 {
		t.Errorf("only %d files seen: the walk is broken", files)
	}
}

// TestDatabase_Refuses shows that the words are found in code and comments, and that similar text is
// not.
func TestDatabase_Refuses(t *testing.T) {
	for line, want := range map[string]bool{
		"	db *sqlx.DB":                                    true,
		"// Rows are ordered by rowid.":                   true,
		"	if errors.Is(err, sql.ErrNoRows) {":             true,
		"	err := t.Get(&n, `SELECT n FROM agents`)":       true,
		"	t.Exec(`DELETE FROM agents`)":                   true,
		"// Select an agent FROM the list.":               false,
		"	// A row is inserted into the table by update.": false,
		"func walk(dir string) error {":                   false,
	} {
		if got := findStoreWord(line) != ""; got != want {
			t.Errorf("%q: %v, want %v", line, got, want)
		}
	}
}
