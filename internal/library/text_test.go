package library

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// The words of a search are bounded, although folding can make a text longer.
func TestCutText(t *testing.T) {
	long := foldText(strings.Repeat("\ufdfa", maxSearched/3)) // 18 letters and spaces each
	if len(long) < 2*maxSearched {
		t.Fatalf("folded to %d bytes", len(long))
	}
	if got := cutText(long); len(got) > maxSearched || len(got) < maxSearched-utf8.UTFMax || !utf8.ValidString(got) {
		t.Errorf("cut to %d bytes", len(got))
	}
	if got := cutText("tea"); got != "tea" {
		t.Error(got)
	}
}
