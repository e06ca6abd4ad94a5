package templates

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"agentsite/static"
)

// TestIcons_Exist finds each icon that a template names.
func TestIcons_Exist(t *testing.T) {
	files, err := filepath.Glob("*.templ")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`@(?:icon|emptyState)\("([^"]+)"`)
	n := 0
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(b), -1) {
			if n++; static.Icon(m[1]) == "" {
				t.Errorf("%s: there is no icon %q", f, m[1])
			}
		}
	}
	if n < 50 {
		t.Errorf("only %d icons were found", n)
	}
}
