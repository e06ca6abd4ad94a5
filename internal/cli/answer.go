package cli

import (
	"fmt"
	"io"
	"strings"
)

// answer prints a growing text once, although its pieces may overlap, be repeated after a break, or be
// replaced.
type answer struct {
	w     io.Writer // nil shows nothing
	text  string    // the text received so far
	shown string    // the text on the terminal
}

// addDelta takes text at byte offset of the answer; offset 0 restarts the answer. Text after a gap is
// dropped, because the stream repeats it.
func (a *answer) addDelta(offset int, text string) {
	switch {
	case offset == 0:
		a.showText(text)
	case offset > 0 && offset <= len(a.text) && offset+len(text) > len(a.text):
		a.showText(a.text[:offset] + text)
	}
}

// showText updates the terminal: it prints the rest if the text continues the printed one, or else the
// whole text below.
func (a *answer) showText(text string) {
	if a.w == nil {
		return
	}
	a.text = text
	switch {
	case strings.HasPrefix(a.shown, text):
		return // a repetition that has not caught up yet
	case !strings.HasPrefix(text, a.shown):
		a.endLine()
		a.shown = ""
	}
	fmt.Fprint(a.w, cleanText(text[len(a.shown):]))
	a.shown = text
}

// finishText shows the final answer.
func (a *answer) finishText(text string) {
	if strings.TrimSpace(text) != strings.TrimSpace(a.shown) {
		if !strings.HasPrefix(text, a.shown) {
			a.endLine()
			a.shown = ""
		}
		a.showText(text)
	}
	a.endLine()
}

// endLine ends an unfinished line on the terminal.
func (a *answer) endLine() {
	if a.shown != "" && !strings.HasSuffix(a.shown, "\n") {
		fmt.Fprintln(a.w)
		a.shown += "\n"
	}
}
