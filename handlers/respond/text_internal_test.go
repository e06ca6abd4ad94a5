package respond

import (
	"slices"
	"testing"

	"agentsite/internal/chat"
)

// Texts that wait together are one event; a status, and an answer that starts again, divide them.
func TestStream_JoinsWaitingTexts(t *testing.T) {
	t.Parallel()
	s := &Stream{}
	for _, d := range []chat.Delta{{Text: "one "}, {Text: "two ", Offset: 4}, {Text: "three", Offset: 8}} {
		s.takeDelta(&d)
	}
	status := Event{Task: &chat.TaskState{}}
	s.pending = append(s.pending, status)
	s.takeDelta(&chat.Delta{Text: "four", Offset: 13})
	s.pending = append(s.pending, Event{Text: "anew", Restart: true})
	s.addText("five")
	if want := []Event{{Text: "one two three"}, status, {Text: "four"}, {Text: "anew", Restart: true}, {Text: "five"}}; !slices.Equal(s.pending, want) {
		t.Errorf("%+v", s.pending)
	}
}
