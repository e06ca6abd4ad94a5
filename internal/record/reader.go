package record

import (
	"bytes"
	"strconv"
)

// reader decodes a payload in the canonical form. Each method stops after the value that it reads, and
// reports whether the value had the expected kind; it does not check the order of members.
type reader struct {
	scanner
	all string // the payload as a string: decoded texts share its memory
}

func newReader(payload []byte) *reader { return &reader{scanner{b: payload}, string(payload)} }

// atEnd reports whether the whole payload is read.
func (d *reader) atEnd() bool { return d.i == len(d.b) }

// skipValue reads a value of any kind.
func (d *reader) skipValue() bool { return d.scanValue(1) == nil }

// readMembers reads an object; read is called at each value.
func (d *reader) readMembers(read func(name []byte) bool) bool {
	if !d.takeByte('{') {
		return false
	}
	if d.takeByte('}') {
		return true
	}
	for {
		name, err := d.scanName()
		if err != nil || !d.takeByte(':') || !read(name) {
			return false
		}
		if d.takeByte('}') {
			return true
		}
		if !d.takeByte(',') {
			return false
		}
	}
}

// readList reads an array; read is called at each element.
func readList[T any](d *reader, to *[]T, read func(*T) bool) bool {
	if !d.takeByte('[') {
		return false
	}
	var room [4]T // most lists are this short
	list := room[:0]
	for !d.takeByte(']') {
		if len(list) > 0 && !d.takeByte(',') {
			return false
		}
		var v T
		if !read(&v) {
			return false
		}
		list = append(list, v)
	}
	*to = append(make([]T, 0, len(list)), list...) // an empty list is not nil
	return true
}

func (d *reader) readTexts(to *[]string) bool { return readList(d, to, d.readText) }

func (d *reader) takeByte(c byte) bool {
	if d.byteAt() != c {
		return false
	}
	d.i++
	return true
}

func (d *reader) readFlag(to *bool) bool {
	c := d.byteAt()
	*to = c == 't'
	return (c == 't' || c == 'f') && d.skipValue()
}

func (d *reader) readInt(to *int64) bool {
	start := d.i
	if c := d.byteAt(); c != '-' && (c < '0' || c > '9') || d.scanNumber() != nil {
		return false
	}
	n, err := strconv.ParseInt(d.all[start:d.i], 10, 64)
	*to = n
	return err == nil
}

func (d *reader) readText(to *string) bool {
	quoted, ok := d.readQuoted()
	if !ok {
		return false
	}
	if bytes.IndexByte(quoted, '\\') < 0 {
		end := d.i - 1 // before the closing quote
		*to = d.all[end-len(quoted) : end]
		return true
	}
	*to, ok = unescapeText(quoted)
	return ok
}

// readQuoted reads a text and returns the bytes between its quotes, with their escapes.
func (d *reader) readQuoted() (quoted []byte, ok bool) {
	if !d.takeByte('"') {
		return nil, false
	}
	for from, end := d.i, d.i; ; end++ {
		n := bytes.IndexByte(d.b[end:], '"')
		if n < 0 {
			return nil, false
		}
		end += n
		escapes := 0
		for end-escapes > from && d.b[end-escapes-1] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			d.i = end + 1
			return d.b[from:end], true
		}
	}
}

// unescapeText returns the text encoded as b. Of the numeric escapes only those of control
// characters are canonical.
func unescapeText(b []byte) (string, bool) {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' {
			out = append(out, b[i])
			continue
		}
		if i++; i == len(b) {
			return "", false
		}
		switch c := b[i]; c {
		case '"', '\\':
			out = append(out, c)
		case 'u':
			if i+4 >= len(b) {
				return "", false
			}
			n, err := strconv.ParseUint(string(b[i+1:i+5]), 16, 7)
			if err != nil {
				return "", false
			}
			out = append(out, byte(n))
			i += 4
		default:
			n := bytes.IndexByte([]byte(short), c)
			if n < 0 {
				return "", false
			}
			out = append(out, "\b\f\n\r\t"[n])
		}
	}
	return string(out), true
}
