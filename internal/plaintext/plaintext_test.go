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

func TestIsEmoji(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{
		"👍": true, "👍🏽": true, "❤️": true, "❤": true, "👨‍👩‍👧‍👦": true, "🇩🇪": true, "1️⃣": true, "#️⃣": true, "✅": true, "🏴󠁧󠁢󠁥󠁮󠁧󠁿": true, "™": true, "➡️": true, "☎": true,
		"": false, "a": false, "ok": false, "👍👍": false, "👍 ": false, "1": false, "🇩": false, "\u200d": false, "👍\u200d": false, "\ufe0f": false,
		"<b>": false, "👍\x00": false, "\xff": false, "\u202e👍": false, "→": true, "+1": false,
	} {
		if plaintext.IsEmoji(s) != want {
			t.Errorf("%q: %v", s, !want)
		}
	}
}
