// Package canonical checks and decodes payloads of records in their canonical JSON form.
package canonical

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

const (
	// MaxDepth is the deepest nesting of a payload; the payload itself has depth 1.
	MaxDepth = 8
	// MaxMember is the longest member name, in bytes.
	MaxMember = 40
	// MaxInt is the largest integer that every JSON implementation represents exactly.
	MaxInt = 1<<53 - 1
)

// The values of Error.Reason, named as in record.Reason.
const (
	notJSON      = "json"
	notCanonical = "canonical"
	badNumber    = "number"
	badText      = "text"
	badName      = "name"
	duplicate    = "duplicate"
	hasNull      = "null"
	tooDeep      = "depth"
)

// Error describes why bytes are not in canonical form.
type Error struct {
	Reason string
	Text   string // description of the error for people
}

// Error implements error.
func (e *Error) Error() string { return e.Text }

func failForm(reason, format string, args ...any) *Error {
	return &Error{reason, fmt.Sprintf(format, args...)}
}

// Check returns nil if b is a payload in canonical form, otherwise an *Error. The form is RFC 8785 (JCS)
// restricted to the content of payloads: one object, member names of a–z, 0–9 and _ that begin with a
// letter, integers below 2^53, no null, no NUL, at most 8 deep.
//
// It does not serialize again: one pass decides for each byte whether JCS would have written it. With
// lower-case names only, the order of bytes equals that of UTF-16, and no decoder confuses two names.
func Check(b []byte) error {
	_, _, err := FindMember(b, "")
	return err
}

// FindMember is Check that also returns the position of the top-level member of that name, from
// its name to the end of its value; 0, 0 if it is absent.
func FindMember(b []byte, name string) (from, to int, err error) {
	if !utf8.Valid(b) {
		return 0, 0, failForm(badText, "the payload is not UTF-8")
	}
	if len(b) == 0 || b[0] != '{' {
		return 0, 0, failForm(notJSON, "the payload does not begin with {")
	}
	s := scanner{b: b, find: name}
	if err := s.scanObject(1); err != nil {
		return 0, 0, err
	}
	if s.i != len(b) {
		return 0, 0, failForm(notJSON, "something follows the payload's object")
	}
	return s.from, s.to, nil
}

type scanner struct {
	b        []byte
	i        int
	find     string
	from, to int
}

// byteAt returns the byte at the scanner's position, or 0 at the end. Callers can treat both alike,
// because a NUL byte is invalid everywhere.
func (s *scanner) byteAt() byte {
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

// refuseByte returns the error for an unexpected byte; wanted describes the expected one.
func (s *scanner) refuseByte(wanted string) error {
	switch c := s.byteAt(); {
	case s.i >= len(s.b):
		return failForm(notJSON, "the payload ends where %s should be", wanted)
	case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		return failForm(notCanonical, "there is white space at byte %d", s.i)
	}
	return failForm(notJSON, "byte %d is not %s", s.i, wanted)
}

func (s *scanner) scanValue(depth int) error {
	switch c := s.byteAt(); {
	case c == '"':
		return s.scanText()
	case c == '{':
		return s.scanObject(depth + 1)
	case c == '[':
		return s.scanArray(depth + 1)
	case c == '-' || c >= '0' && c <= '9':
		return s.scanNumber()
	}
	for _, word := range [...]string{"true", "false", "null"} {
		if rest := s.b[s.i:]; len(rest) >= len(word) && string(rest[:len(word)]) == word {
			if word == "null" {
				return failForm(hasNull, "there is a null at byte %d; leave the member out", s.i)
			}
			s.i += len(word)
			return nil
		}
	}
	return s.refuseByte("a value")
}

func (s *scanner) scanObject(depth int) error {
	if depth > MaxDepth {
		return failForm(tooDeep, "the payload is more than %d deep", MaxDepth)
	}
	s.i++
	if s.byteAt() == '}' {
		s.i++
		return nil
	}
	var last []byte
	for {
		start := s.i
		name, err := s.scanName()
		if err != nil {
			return err
		}
		switch c := bytes.Compare(last, name); {
		case c == 0:
			return failForm(duplicate, "%q is there twice", name)
		case c > 0:
			return failForm(notCanonical, "the member %q comes after %q", name, last)
		}
		last = name
		if s.byteAt() != ':' {
			return s.refuseByte("a colon")
		}
		s.i++
		if err := s.scanValue(depth); err != nil {
			return err
		}
		if depth == 1 && string(name) == s.find {
			s.from, s.to = start, s.i
		}
		switch s.byteAt() {
		case ',':
			s.i++
		case '}':
			s.i++
			return nil
		default:
			return s.refuseByte("a comma or }")
		}
	}
}

func (s *scanner) scanArray(depth int) error {
	if depth > MaxDepth {
		return failForm(tooDeep, "the payload is more than %d deep", MaxDepth)
	}
	s.i++
	if s.byteAt() == ']' {
		s.i++
		return nil
	}
	for {
		if err := s.scanValue(depth); err != nil {
			return err
		}
		switch s.byteAt() {
		case ',':
			s.i++
		case ']':
			s.i++
			return nil
		default:
			return s.refuseByte("a comma or ]")
		}
	}
}

func (s *scanner) scanName() ([]byte, error) {
	if s.byteAt() != '"' {
		return nil, s.refuseByte("a name")
	}
	s.i++
	start := s.i
	for ; s.i < len(s.b); s.i++ {
		c := s.b[s.i]
		if c >= 'a' && c <= 'z' || s.i > start && (c >= '0' && c <= '9' || c == '_') {
			continue
		}
		break
	}
	name := s.b[start:s.i]
	if s.byteAt() != '"' || len(name) == 0 || len(name) > MaxMember {
		if s.i >= len(s.b) {
			return nil, s.refuseByte("a name")
		}
		return nil, failForm(badName, "the name at byte %d is not 1 to %d characters of a-z, 0-9 and _", start, MaxMember)
	}
	s.i++
	return name, nil
}

func (s *scanner) scanNumber() error {
	start := s.i
	if s.byteAt() == '-' {
		s.i++
	}
	digits, n := s.i, int64(0)
	for c := s.byteAt(); c >= '0' && c <= '9'; c = s.byteAt() {
		if n = n*10 + int64(c-'0'); n > MaxInt {
			return failForm(badNumber, "the number at byte %d is 2^53 or more", start)
		}
		s.i++
	}
	switch c := s.byteAt(); {
	case s.i == digits, s.b[digits] == '0' && s.i > digits+1:
		return failForm(notJSON, "byte %d begins no number", start)
	case n == 0 && digits > start:
		return failForm(notCanonical, "there is a -0 at byte %d", start)
	case c == '.' || c == 'e' || c == 'E':
		return failForm(badNumber, "the number at byte %d is not a plain integer", start)
	}
	return nil
}

// short are the letters of the JCS short escapes for control characters (\b, \f,
// , \r, \t).
const short = "bfnrt"

func (s *scanner) scanText() error {
	for s.i++; s.i < len(s.b); s.i++ {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return nil
		case c < ' ':
			return failForm(notJSON, "there is a bare control character at byte %d", s.i)
		case c == '\\':
			if err := s.scanEscape(); err != nil {
				return err
			}
		}
	}
	return s.refuseByte("the end of a text")
}

// scanEscape checks the escape at the scanner's position and stops on its last byte.
func (s *scanner) scanEscape() error {
	start := s.i
	s.i++
	switch c := s.byteAt(); {
	case c == '"' || c == '\\' || c != 0 && bytes.IndexByte([]byte(short), c) >= 0:
		return nil
	case c == '/':
		return failForm(notCanonical, "the / at byte %d needs no escape", start)
	case c != 'u' || s.i+4 >= len(s.b):
		return failForm(notJSON, "byte %d begins no escape", start)
	}
	n := 0
	for _, c := range s.b[s.i+1 : s.i+5] {
		switch {
		case c >= '0' && c <= '9':
			n = n<<4 | int(c-'0')
		case c >= 'a' && c <= 'f':
			n = n<<4 | int(c-'a'+10)
		case c >= 'A' && c <= 'F': // JCS requires lower-case hex
			n = 1 << 16
		default:
			return failForm(notJSON, "byte %d begins no escape", start)
		}
	}
	s.i += 4
	switch {
	case n == 0:
		return failForm(badText, "there is a NUL at byte %d", start)
	case n >= ' ', n >= '\b' && n <= '\r' && n != '\v':
		return failForm(notCanonical, "the escape at byte %d is not the canonical one", start)
	}
	return nil
}
