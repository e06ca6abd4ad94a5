package record_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"agentsite/internal/record"
)

func TestCleanLine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                               "",
		" two \t words\r\n":              "two words",
		"a\x00b\x1b[2Jc\x7fd\u0085e":     "ab[2Jcd e",
		"line\u2028and\u2029line":        "line and line",
		"\u202eabc\u202c \u2066d\u2069":  "abc d",
		"שלום\u200f, ok":                 "שלום\u200f, ok",
		"broken \xff\xfe bytes":          "broken \uFFFD bytes",
		"\u3000ideographic\u3000space\v": "ideographic space",
	} {
		if got := record.CleanLine(in); got != want {
			t.Errorf("CleanLine(%q) is %q, want %q", in, got, want)
		}
	}
	if got := record.CleanText(" a\n\tb\u2028c\x07 "); got != "a\n\tb\nc" {
		t.Errorf("%q", got)
	}
}

func FuzzCutLine(f *testing.F) {
	f.Add("some ü words \xff", 7)
	f.Add("\u202eüü", 3)
	f.Fuzz(func(t *testing.T, s string, n int) {
		n = max(n, 0)
		got := record.CutLine(s, n)
		if len(got) > n || !utf8.ValidString(got) || strings.ContainsAny(got, "\n\t\x00\u202e") || got != record.CleanLine(got) {
			t.Errorf("CutLine(%q, %d) is %q", s, n, got)
		}
	})
}
