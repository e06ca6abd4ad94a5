package plaintext_test

import (
	"strings"
	"testing"

	"agentsite/internal/plaintext"
)

func TestFirstSentence(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"You write poems. Always rhyme.": "You write poems.",
		"Answer in 1.5 lines":            "Answer in 1.5 lines",
		"  Be kind!\nAnd short.":         "Be kind!",
		"Line one\nLine two.":            "Line one",
		"":                               "",
		strings.Repeat("é", 400):         strings.Repeat("é", 300),
	} {
		if got := plaintext.FirstSentence(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
