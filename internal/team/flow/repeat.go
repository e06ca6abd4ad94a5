package flow

import (
	"strings"
	"unicode"
)

// alike is the share of words from which on two messages count as the same.
const alike = 0.9

// CountRepeated returns the number of messages of a log, and of those that say the same as an earlier one: at least
// nine of ten of the words of both together are in both. Messages are the
// texts of moves, tasks and results; the conclusion is none, because it gives the results to the person.
func CountRepeated(log []Event) (repeated, messages int) {
	var earlier []map[string]bool
	for _, text := range messagesOf(log) {
		words := make(map[string]bool)
		for w := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r)
		}) {
			words[w] = true
		}
		if len(words) == 0 {
			continue
		}
		messages++
		for _, e := range earlier {
			if shareOf(words, e) >= alike {
				repeated++
				break
			}
		}
		earlier = append(earlier, words)
	}
	return repeated, messages
}

func messagesOf(log []Event) (list []string) {
	for _, e := range log {
		switch {
		case e.Kind == Ended && e.Status == Completed, e.Kind == Waits, e.Kind == Answered, e.Kind == Said:
			list = append(list, e.Text)
		case e.Kind == Moved && e.Move != nil:
			if e.Move.Text != "" && e.Move.Kind != Conclude {
				list = append(list, e.Move.Text)
			}
			for _, t := range e.Move.Tasks {
				if t.Text != "" {
					list = append(list, t.Text)
				}
			}
		}
	}
	return list
}

// shareOf returns the number of words of both sets by that of all their words.
func shareOf(a, b map[string]bool) float64 {
	both := 0
	for w := range a {
		if b[w] {
			both++
		}
	}
	return float64(both) / float64(len(a)+len(b)-both)
}
