package cli

import (
	"fmt"
	"io"
	"strings"

	"agentsite/internal/task"
)

// answer prints the growing text of an answer to the terminal. Pieces of the text may overlap, be
// repeated after a reconnection, or replace the earlier text.
type answer struct {
	w     io.Writer // nil prints nothing
	text  string    // the text received so far
	shown string    // the text on the terminal
}

// addDelta adds text at a byte offset of the answer; offset 0 restarts the answer. Text after a gap is
// dropped, because the final answer contains it.
func (a *answer) addDelta(offset int, text string) {
	switch {
	case offset == 0:
		a.showText(text)
	case offset > 0 && offset <= len(a.text) && offset+len(text) > len(a.text):
		a.showText(a.text[:offset] + text)
	}
}

// showText replaces the text of the answer. If it continues the printed text, only the rest is printed,
// else the whole text on a new line.
func (a *answer) showText(text string) {
	if a.w == nil {
		return
	}
	a.text = text
	switch {
	case strings.HasPrefix(a.shown, text):
		return // a repetition that is shorter than the printed text
	case !strings.HasPrefix(text, a.shown):
		a.endLine()
		a.shown = ""
	}
	fmt.Fprint(a.w, cleanText(text[len(a.shown):]))
	a.shown = text
}

// finishText prints the missing rest of the final answer and ends the line. Data that was printed with other spaces is
// the same answer.
func (a *answer) finishText(text string) {
	if strings.TrimSpace(text) != strings.TrimSpace(a.shown) && !task.SameJSON([]byte(text), []byte(a.shown)) {
		if !strings.HasPrefix(text, a.shown) {
			a.endLine()
			a.shown = ""
		}
		a.showText(text)
	}
	a.endLine()
}

// endLine ends the current line unless the output is at the start of one.
func (a *answer) endLine() {
	if a.shown != "" && !strings.HasSuffix(a.shown, "\n") {
		fmt.Fprintln(a.w)
		a.shown += "\n"
	}
}
