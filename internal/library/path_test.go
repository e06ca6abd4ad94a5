package library

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Names of files from programs and disks become names that a library takes, in folders too.
func TestCleanPath_MakesNamesThatCanBeStored(t *testing.T) {
	long := strings.Repeat("a", 300)
	for given, want := range map[string]string{
		"tea.md":                      "tea.md",
		"my  tea.md":                  "my tea.md",
		" tea .md ":                   "tea .md",
		"my  notes/green  tea.md":     "my notes/green tea.md",
		"/a//b/./../c/":               "a/b/c",
		"a\\b\x00c\td\u00a0e":         "a b c d e",
		"caf\u0065\u0301":             "caf\u00e9",
		"bad\xff.md":                  "bad.md",
		"..":                          "file",
		"":                            "file",
		long + ".md":                  long[:MaxName-3] + ".md",
		long + "/x.md":                long[:MaxName] + "/x.md",
		strings.Repeat("\u00e4", 150): strings.Repeat("\u00e4", 100),
		"x." + long:                   "x." + long[:MaxName-2],
		".profile":                    ".profile",
	} {
		got := CleanPath(given)
		if got != want {
			t.Errorf("%.40q: %q, want %q", given, got, want)
		}
		if p, err := CheckPath(got); err != nil || p != got {
			t.Errorf("%.40q: %q cannot be stored: %v", given, got, err)
		}
	}
}

// A name with a number is no longer than a name may be, and keeps its ending.
func TestNumberedPath_FitsTheLimits(t *testing.T) {
	long := strings.Repeat("\u00e4", 98) + "ab.md" // 201 bytes
	folder := strings.Repeat(strings.Repeat("f", 150)+"/", 2) + strings.Repeat("g", 150) + "/"
	for given, want := range map[string]string{
		"tea.md":                         "tea (2).md",
		"notes.v2/tea":                   "notes.v2/tea (2)",
		".profile":                       ".profile (2)",
		"a.b.tar.gz":                     "a.b.tar (2).gz",
		long:                             strings.Repeat("\u00e4", 96) + " (2).md",
		strings.Repeat("x y", 66):        strings.Repeat("x y", 65) + "x (2)",
		folder + strings.Repeat("h", 45): folder + strings.Repeat("h", 43) + " (2)",
	} {
		got := numberedPath(given, 2)
		if got != want {
			t.Errorf("%.40q: %q, want %q", given, got, want)
		}
		if p, err := CheckPath(got); err != nil || p != got || !utf8.ValidString(got) {
			t.Errorf("%.40q: %q cannot be stored: %v", given, got, err)
		}
	}
}

func FuzzCleanPath(f *testing.F) {
	for _, s := range []string{"a  b/c.md", "\u0301", "\u202e.md", "\ufdfa", strings.Repeat("a", 199) + "\u0301.md"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p := CleanPath(s)
		if _, err := CheckPath(p); err != nil && len(p) <= MaxPath && strings.Count(p, "/") < MaxDepth {
			t.Errorf("%q: %v", p, err)
		}
	})
}
