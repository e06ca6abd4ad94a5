package plain_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"agentsite/internal/plain"
)

func TestLine(t *testing.T) {
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
		if got := plain.Line(in); got != want {
			t.Errorf("Line(%q) is %q, want %q", in, got, want)
		}
	}
	if got := plain.Text(" a\n\tb\u2028c\x07 "); got != "a\n\tb\nc" {
		t.Errorf("%q", got)
	}
}

func FuzzCut(f *testing.F) {
	f.Add("some ü words \xff", 7)
	f.Add("\u202eüü", 3)
	f.Fuzz(func(t *testing.T, s string, n int) {
		n = max(n, 0)
		got := plain.Cut(s, n)
		if len(got) > n || !utf8.ValidString(got) || strings.ContainsAny(got, "\n\t\x00\u202e") || got != plain.Line(got) {
			t.Errorf("Cut(%q, %d) is %q", s, n, got)
		}
	})
}
