// Package terminal makes plain text of the output of programs that write for a terminal.
package terminal

import (
	"bytes"
	"regexp"
	"strings"
)

// escapes matches the sequences that control a terminal: CSI, OSC and other strings up to their end, and
// the short ones.
var escapes = regexp.MustCompile("\x1b\\[[0-?]*[ -/]*[@-~]|\x1b[\\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\\\)|" +
	"\x1b[ -/]*[0-~]|[\x00\x07\x0e\x0f\x7f]")

// begun matches an unfinished sequence at the end of the text.
var begun = regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*|[\\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)?$")

// maxHeld bounds the bytes of an unfinished sequence.
const maxHeld = 4 << 10

// LastText returns a line without control sequences, and of text after a carriage return the last that is
// not empty, which a terminal shows.
func LastText(line string) string {
	line = escapes.ReplaceAllString(line, "")
	parts := strings.Split(strings.TrimRight(line, "\r\n"), "\r")
	for i := len(parts) - 1; i > 0; i-- {
		if strings.TrimSpace(parts[i]) != "" {
			return parts[i]
		}
	}
	return parts[0]
}

// Filter makes plain text of output that arrives in pieces. The zero value is ready for use.
type Filter struct {
	wait   []byte
	held   bool // the present line has a carriage return, so that it is held until its end
	passed bool // a part of the present line was passed on
}

// progress matches the beginning of a line that programs write over: it begins with a bar or a spinner, has a
// percentage or a count, ends in dots, or is only a number yet.
var progress = regexp.MustCompile(`^\s*[\[|\\/⠀-⣿◐-◿▀-▟]|\d ?%|\d ?/ ?\d|(?:\.\.|…)$|^\s*[\d.]*$`)

// maxShort bounds the bytes of a line that is held until its end because it looks like progress.
const maxShort = 80

// Add takes a piece and returns the text that is final. Text is passed on as it arrives, lines of progress at their
// end. After a carriage return a line is held, and its last text stays; text of the line that was passed on before
// becomes a line of its own.
func (f *Filter) Add(p []byte) []byte {
	all := append(f.wait, p...)
	f.wait = nil
	var out []byte
	for {
		i := bytes.IndexByte(all, '\n')
		if i < 0 {
			break
		}
		out = append(out, f.endLine(all[:i])...)
		out = append(out, '\n')
		all, f.held, f.passed = all[i+1:], false, false
	}
	f.held = f.held || bytes.IndexByte(all, '\r') >= 0
	if f.held || !f.passed && len(all) <= maxShort && progress.Match(escapes.ReplaceAll(all, nil)) {
		f.wait = bytes.Clone(all)
		if len(f.wait) > maxHeld { // Only the text after the last return can stay.
			if at := bytes.LastIndexByte(f.wait, '\r'); at > 0 {
				f.wait = f.wait[at:]
			}
		}
		return out
	}
	n := len(all)
	if m := begun.FindIndex(all); m != nil && len(all)-m[0] <= maxHeld {
		n = m[0]
	}
	f.wait, f.passed = bytes.Clone(all[n:]), f.passed || n > 0
	return append(out, escapes.ReplaceAll(all[:n], nil)...)
}

// Flush returns the text of a line without an end.
func (f *Filter) Flush() []byte {
	s := f.endLine(f.wait)
	f.wait = nil
	return []byte(strings.ReplaceAll(s, "\x1b", ""))
}

// endLine returns the text of the rest of a line.
func (f *Filter) endLine(rest []byte) string {
	s := LastText(string(rest))
	if f.passed && s != "" && bytes.IndexByte(bytes.TrimRight(rest, "\r"), '\r') >= 0 {
		return "\n" + s
	}
	return s
}
