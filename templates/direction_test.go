package templates

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	fieldTag  = regexp.MustCompile(`<(?:textarea|input)\b`)
	fieldType = regexp.MustCompile(`\btype="([a-z-]+)"`)
)

// tagAt returns the tag that begins at an index of source, without its brackets: it ends at the first bracket outside of
// quotes and braces.
func tagAt(source string, at int) string {
	quoted, depth := false, 0
	for i := at; i < len(source); i++ {
		switch c := source[i]; {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			depth--
		case c == '>' && depth == 0:
			return source[at+1 : i]
		}
	}
	return source[at+1:]
}

// Each field in which people write text takes the direction of what is written. Addresses, secrets and numbers, which
// have types of their own, stay left to right.
func TestFields_TakeTheDirectionOfTheirText(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.templ")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	fields := 0
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range fieldTag.FindAllIndex(b, -1) {
			tag := tagAt(string(b), at[0])
			kind := "text"
			if m := fieldType.FindStringSubmatch(tag); m != nil {
				kind = m[1]
			}
			if kind != "text" && kind != "search" || strings.Contains(tag, "readonly") {
				continue
			}
			fields++
			if !strings.Contains(tag, `dir="`) && !strings.Contains(tag, "f.elementAttrs()...") {
				t.Errorf("%s has a field without dir: <%.200s>", file, tag)
			}
		}
	}
	if fields < 20 {
		t.Errorf("only %d fields were found", fields)
	}
	var f input
	if f.elementAttrs()["dir"] != "auto" {
		t.Errorf("fields of forms have the direction %v", f.elementAttrs()["dir"])
	}
}
