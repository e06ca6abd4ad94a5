package agenttest

import (
	"regexp"
	"strings"
	"testing"

	"agentsite/internal/openai"
)

var markOf = regexp.MustCompile(`\[#([a-z2-7]{12}) NAME `)

// Mark finds in a system text the mark that messages of several speakers
// carry.
func Mark(t testing.TB, system string) string {
	t.Helper()
	m := markOf.FindStringSubmatch(system)
	if m == nil {
		t.Fatalf("no mark in %q", system)
	}
	return m[1]
}

// Unmarked returns messages with MARK for the mark, which is another for every
// call.
func Unmarked(list []openai.Message, mark string) []openai.Message {
	out := append([]openai.Message(nil), list...)
	for i := range out {
		out[i].Content = openai.Content(strings.ReplaceAll(string(out[i].Content), mark, "MARK"))
	}
	return out
}
