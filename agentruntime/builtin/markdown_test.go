package builtin

import (
	"strings"
	"testing"
)

// TestQuoteText_MakesNoFormulaAndNoLink checks that no delimiter of a LaTeX formula, an escaped bracket or parenthesis,
// and no link is in quoted text.
func TestQuoteText_MakesNoFormulaAndNoLink(t *testing.T) {
	for text, want := range map[string]string{
		`[{"name":"Ada"}]`:       `&#91;\{"name":"Ada"\}\]`,
		`Model (beta)`:           `Model (beta\)`,
		`[here](https://a.test)`: `&#91;here\](https\://a.test\)`,
		`costs $5`:               `costs \$5`,
	} {
		got := quoteText(text, maxQuoted)
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
		for _, opening := range []string{`\[`, `\(`} {
			if strings.Contains(got, opening) {
				t.Errorf("%s: %s has %s", text, got, opening)
			}
		}
	}
}
