package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The tests that SECURITY.md names for its promises are there, in the folders that it names.
func TestSecurity_NamesTestsThatExist(t *testing.T) {
	text, err := os.ReadFile("SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "\n## Which tests show it\n")
	if !ok {
		t.Fatal("SECURITY.md has no table of tests")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	row := regexp.MustCompile(`(?m)^\| (.+?) \| (.+) \|$`)
	name := regexp.MustCompile("`([a-z0-9/]+)`((?: `Test[A-Z][A-Za-z0-9_]*`,?)+)")
	named := 0
	for _, line := range row.FindAllStringSubmatch(table, -1)[1:] {
		if strings.HasPrefix(line[1], "---") {
			continue
		}
		found := name.FindAllStringSubmatch(line[2], -1)
		if len(found) == 0 {
			t.Errorf("no test is named for: %s", line[1])
		}
		for _, f := range found {
			source := testSource(t, f[1])
			for _, test := range strings.FieldsFunc(f[2], func(r rune) bool { return strings.ContainsRune("`, ", r) }) {
				named++
				if !bytes.Contains(source, []byte("\nfunc "+test+"(t *testing.T) {\n")) {
					t.Errorf("%s has no test %s, which stands for: %s", f[1], test, line[1])
				}
			}
		}
	}
	if named < 30 {
		t.Errorf("only %d tests are named", named)
	}
}

// testSource returns the text of all tests in a folder.
func testSource(t *testing.T, folder string) (all []byte) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no tests (%v)", folder, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(append(all, '\n'), b...)
	}
	return all
}
