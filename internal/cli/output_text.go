package cli

import (
	"bytes"
	"errors"
	"unicode/utf8"

	"agentsite/internal/linkwire"
	"agentsite/internal/textfile"
)

// maxUndecoded bounds the bytes that an outputText keeps: UTF-32 needs four for a letter of one byte in UTF-8.
const maxUndecoded = 4 * linkwire.MaxText

// errUndecoded is the error for output that is not UTF-8 and in no encoding that could be told from its bytes.
var errUndecoded = errors.New("the encoding of the output is not known")

// undecodedReason is what the person who asked reads then.
const undecodedReason = "The output of the agent's program is not UTF-8, and its encoding is not known. " +
	"Its owner should let it write UTF-8."

// outputText turns the output of a program, which arrives in pieces, into UTF-8. UTF-8 is passed on as it arrives. From
// the first other bytes on the output is kept, and decoded whole at its end, because the encoding shows in the whole
// text only. The zero value is ready for use.
type outputText struct {
	raw  []byte // the output, without a beginning that was passed on long ago
	sent int    // bytes of raw that were passed on
	kept bool   // the rest waits for the end
	past bool   // the beginning of the output was passed on, where a byte order mark may be
}

// add takes a piece and returns the text that is certain. It returns false if more is kept than maxUndecoded.
func (o *outputText) add(p []byte) (text []byte, ok bool) {
	o.raw = append(o.raw, p...)
	from := o.sent
	for !o.kept {
		rest := o.raw[o.sent:]
		r, n := utf8.DecodeRune(rest)
		if n == 0 || !utf8.FullRune(rest) || rest[0] == '\x1b' && len(rest) == 1 {
			break
		}
		if r == utf8.RuneError && n == 1 || r == 0 || bytes.HasPrefix(rest, []byte("\x1b$")) {
			o.kept = true // other bytes, UTF-16 or ISO-2022
			break
		}
		o.sent += n
	}
	text = bytes.Clone(o.raw[from:o.sent])
	if !o.past {
		text = bytes.TrimPrefix(text, []byte("\ufeff"))
		o.past = o.sent > 0
	}
	if !o.kept && o.sent > maxUndecoded {
		o.raw, o.sent = bytes.Clone(o.raw[o.sent:]), 0
	}
	return text, len(o.raw) <= maxUndecoded+len(p)
}

// end returns the text that was kept. The error is errUndecoded.
func (o *outputText) end() ([]byte, error) {
	rest := o.raw[o.sent:]
	if len(rest) == 0 {
		return rest, nil
	}
	if s, err := textfile.Decode(o.raw, false); err == nil {
		if after, ok := bytes.CutPrefix([]byte(s), o.raw[:o.sent]); ok {
			return after, nil
		}
	}
	if utf8.Valid(rest) {
		return rest, nil
	}
	return nil, errUndecoded
}
