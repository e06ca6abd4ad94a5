package canonical

import (
	"bytes"
	"strconv"
)

// Reader decodes a payload in the canonical form. Each method stops after the value that it reads, and
// reports whether the value had the expected kind; it does not check the order of members.
type Reader struct {
	scanner
	all string // the payload as a string: decoded texts share its memory
}

// NewReader returns a reader of a payload that Check accepts.
func NewReader(payload []byte) *Reader { return &Reader{scanner{b: payload}, string(payload)} }

// AtEnd reports whether the whole payload has been read.
func (d *Reader) AtEnd() bool { return d.i == len(d.b) }

// SkipValue skips a value of any kind.
func (d *Reader) SkipValue() bool { return d.scanValue(1) == nil }

// ReadRaw skips a value of any kind and returns its bytes.
func (d *Reader) ReadRaw() ([]byte, bool) {
	from := d.i
	if !d.SkipValue() {
		return nil, false
	}
	return d.b[from:d.i], true
}

// ReadMembers reads an object. It calls read with the reader at each value; read must consume the value
// and returns false to stop with failure.
func (d *Reader) ReadMembers(read func(name []byte) bool) bool {
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

// ReadList reads an array into to. It calls read at each element; read must consume the element and
// returns false to stop with failure.
func ReadList[T any](d *Reader, to *[]T, read func(*T) bool) bool {
	if !d.takeByte('[') {
		return false
	}
	var room [4]T // avoids growing for the usual short lists
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
	*to = append(make([]T, 0, len(list)), list...) // An empty array is an empty list, not nil.
	return true
}

func (d *Reader) ReadTexts(to *[]string) bool { return ReadList(d, to, d.ReadText) }

func (d *Reader) takeByte(c byte) bool {
	if d.byteAt() != c {
		return false
	}
	d.i++
	return true
}

func (d *Reader) ReadFlag(to *bool) bool {
	c := d.byteAt()
	*to = c == 't'
	return (c == 't' || c == 'f') && d.SkipValue()
}

func (d *Reader) ReadInt(to *int64) bool {
	start := d.i
	if c := d.byteAt(); c != '-' && (c < '0' || c > '9') || d.scanNumber() != nil {
		return false
	}
	n, err := strconv.ParseInt(d.all[start:d.i], 10, 64)
	*to = n
	return err == nil
}

func (d *Reader) ReadText(to *string) bool {
	quoted, ok := d.ReadQuoted()
	if !ok {
		return false
	}
	if bytes.IndexByte(quoted, '\\') < 0 {
		end := d.i - 1 // end of the text, before the closing quote
		*to = d.all[end-len(quoted) : end]
		return true
	}
	*to, ok = unescapeText(quoted)
	return ok
}

// ReadQuoted reads a string and returns the bytes between its quotes; escapes are not decoded.
func (d *Reader) ReadQuoted() (quoted []byte, ok bool) {
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

// unescapeText decodes the escapes of a canonical string. Numeric escapes are canonical only for control
// characters.
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
