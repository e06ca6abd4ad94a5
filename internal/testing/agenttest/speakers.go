package agenttest

import (
	"regexp"
	"strings"
	"testing"

	"agentsite/internal/openai"
)

var markOf = regexp.MustCompile(`\[#([a-z2-7]{12}) NAME `)

// Mark returns the random mark with which a system prompt announces the names of speakers in the
// messages. It ends the test if the prompt has none.
func Mark(t testing.TB, system string) string {
	t.Helper()
	m := markOf.FindStringSubmatch(system)
	if m == nil {
		t.Fatalf("no mark in %q", system)
	}
	return m[1]
}

// Unmarked returns a copy of the messages with MARK in place of the mark, which differs in every call,
// so that tests can compare them.
func Unmarked(list []openai.Message, mark string) []openai.Message {
	out := append([]openai.Message(nil), list...)
	for i := range out {
		out[i].Content = openai.Content(strings.ReplaceAll(string(out[i].Content), mark, "MARK"))
	}
	return out
}
