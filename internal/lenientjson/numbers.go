package lenientjson

import (
	"bytes"
	"io"
)

// NumberReader reads JSON from R and replaces the words NaN, Infinity and -Infinity outside of strings by null. Python
// and others write them for numbers that JSON does not have.
type NumberReader struct {
	R io.Reader

	ready, raw      []byte // text to return, and text read that may be the beginning of a word
	quoted, escaped bool
	err             error
}

var nonNumbers = [][]byte{[]byte("NaN"), []byte("-Infinity"), []byte("Infinity")}

// Read implements io.Reader.
func (r *NumberReader) Read(p []byte) (int, error) {
	for len(r.ready) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		buf := make([]byte, max(len(p), 512))
		n, err := r.R.Read(buf)
		r.raw, r.err = append(r.raw, buf[:n]...), err
		r.convert()
	}
	n := copy(p, r.ready)
	r.ready = r.ready[n:]
	return n, nil
}

// convert moves text from raw to ready, up to the beginning of a word that is not read whole.
func (r *NumberReader) convert() {
	for len(r.raw) > 0 {
		c := r.raw[0]
		if !r.quoted && (c == 'N' || c == 'I' || c == '-') {
			word, partial := matchWord(r.raw)
			if partial && r.err == nil {
				return
			}
			if word > 0 {
				r.ready, r.raw = append(r.ready, "null"...), r.raw[word:]
				continue
			}
		}
		switch {
		case r.escaped:
			r.escaped = false
		case r.quoted && c == '\\':
			r.escaped = true
		case c == '"':
			r.quoted = !r.quoted
		}
		r.ready, r.raw = append(r.ready, c), r.raw[1:]
	}
	r.raw = nil
}

// matchWord returns the length of the word at the beginning of b, or whether b is the beginning of one.
func matchWord(b []byte) (length int, partial bool) {
	for _, w := range nonNumbers {
		if bytes.HasPrefix(b, w) {
			return len(w), false
		}
		partial = partial || bytes.HasPrefix(w, b)
	}
	return 0, partial
}
