package builtin

import (
	"strings"
	"testing"
)

// Quoted text begins no formula of LaTeX, whose delimiters are escaped brackets and parentheses, and no link.
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
