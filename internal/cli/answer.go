package cli

import (
	"fmt"
	"io"
	"strings"
)

// answer prints a growing text once, although its pieces may overlap, come
// again after a break, or be replaced.
type answer struct {
	w     io.Writer // nil shows nothing
	text  string    // as far as it is known
	shown string    // what stands on the terminal
}

// delta takes text that stands at byte offset of the answer; at 0 the answer
// begins anew. What comes after a gap waits for that.
func (a *answer) delta(offset int, text string) {
	switch {
	case offset == 0:
		a.show(text)
	case offset > 0 && offset <= len(a.text) && offset+len(text) > len(a.text):
		a.show(a.text[:offset] + text)
	}
}

// show brings the terminal to the text: its rest where it goes on with what
// stands there, else all of it below.
func (a *answer) show(text string) {
	if a.w == nil {
		return
	}
	a.text = text
	switch {
	case strings.HasPrefix(a.shown, text):
		return // it comes again, and is not as far yet
	case !strings.HasPrefix(text, a.shown):
		a.end()
		a.shown = ""
	}
	fmt.Fprint(a.w, visible(text[len(a.shown):]))
	a.shown = text
}

// finish shows the answer as it stays.
func (a *answer) finish(text string) {
	if strings.TrimSpace(text) != strings.TrimSpace(a.shown) {
		if !strings.HasPrefix(text, a.shown) {
			a.end()
			a.shown = ""
		}
		a.show(text)
	}
	a.end()
}

// end ends the line that stands on the terminal.
func (a *answer) end() {
	if a.shown != "" && !strings.HasSuffix(a.shown, "\n") {
		fmt.Fprintln(a.w)
		a.shown += "\n"
	}
}
