// Package terminal makes plain text of the output of programs that write for a terminal.
package terminal

import (
	"bytes"
	"regexp"
	"strings"
)

// Beginnings and ends of sequences that control a terminal, in their forms of two bytes and of one character.
const (
	csi    = `(?:\x1b\[|\x{9b})`
	str    = `(?:\x1b[\]PX^_]|[\x{90}\x{98}\x{9d}-\x{9f}])`
	body   = `[^\x07\x1b\x{9c}]*`
	endStr = `(?:\x07|\x1b\\|\x{9c})`
)

// escapes matches the sequences that control a terminal: CSI, OSC and other strings up to their end or that of the
// line, the short ones, and single control characters.
var escapes = regexp.MustCompile(csi + `[0-?]*[ -/]*[@-~]|` + str + body + `(?:` + endStr + `|$)|` +
	`\x1b[ -/]*[0-~]|[\x00\x07\x0e\x0f\x7f\x{80}-\x{84}\x{86}-\x{9f}]`)

// homes matches the sequences that move to the beginning of the line, as a carriage return does.
var homes = regexp.MustCompile(csi + `[01]?G`)

// begun matches an unfinished sequence at the end of the text.
var begun = regexp.MustCompile(`(?:` + csi + `[0-?]*[ -/]*|` + str + body + `\x1b?|\x1b[ -/]*)$`)

// eraseBack returns a line without the characters that a backspace is behind, and without the backspaces.
func eraseBack(line string) string {
	if strings.IndexByte(line, '\b') < 0 {
		return line
	}
	var out []rune
	for _, r := range line {
		if r != '\b' {
			out = append(out, r)
		} else if n := len(out); n > 0 && out[n-1] != '\r' {
			out = out[:n-1]
		}
	}
	return string(out)
}

// maxHeld bounds the bytes of an unfinished sequence.
const maxHeld = 4 << 10

// LastText returns a line without control sequences and characters that are written over, and of text after a carriage
// return the last that is not empty, which a terminal shows.
func LastText(line string) string {
	line = escapes.ReplaceAllString(homes.ReplaceAllString(line, "\r"), "")
	line = eraseBack(line)
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
	all := homes.ReplaceAll(append(f.wait, p...), []byte{'\r'})
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
	f.held = f.held || bytes.ContainsAny(all, "\r\b")
	if f.held || !f.passed && len(all) <= maxShort && progress.Match(escapes.ReplaceAll(all, nil)) {
		f.wait = bytes.Clone(all)
		if len(f.wait) > maxHeld { // Only the text after the last return can stay.
			if at := bytes.LastIndexByte(f.wait, '\r'); at > 0 {
				f.wait = f.wait[at:]
			}
		}
		return out
	}
	n := len(bytes.TrimSuffix(all, []byte{0xc2})) // the first byte of control characters beyond ASCII
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
