package record

import (
	"bytes"
	"unicode/utf8"
)

const (
	// maxDepth bounds how deep a payload nests; the payload itself is 1 deep.
	maxDepth = 8
	// maxMember bounds the name of a member, in bytes.
	maxMember = 40
)

// Canonical returns nil when b is a payload in its one form, else a Refused.
// That form is the canonical one of RFC 8785 (JCS) for what payloads may hold:
// one object, members with names of a–z, 0–9 and _ that begin with a letter,
// integers below 2^53, no null, no NUL, at most 8 deep.
//
// It compares nothing with a second serialisation: one pass over the bytes
// knows at each of them what JCS would have written. Names of lower case only
// make the order of bytes that of UTF-16, and leave no two names that some
// decoder takes for the same.
func Canonical(b []byte) error {
	_, _, err := scan(b, "")
	return err
}

// scan is Canonical that also says where the top-level member of that name is,
// from its name to the end of its value; 0, 0 when it is absent.
func scan(b []byte, name string) (from, to int, err error) {
	if !utf8.Valid(b) {
		return 0, 0, refuse(BadText, "the payload is not UTF-8")
	}
	if len(b) == 0 || b[0] != '{' {
		return 0, 0, refuse(NotJSON, "the payload does not begin with {")
	}
	s := scanner{b: b, find: name}
	if err := s.object(1); err != nil {
		return 0, 0, err
	}
	if s.i != len(b) {
		return 0, 0, refuse(NotJSON, "something follows the payload's object")
	}
	return s.from, s.to, nil
}

type scanner struct {
	b        []byte
	i        int
	find     string
	from, to int
}

// at returns the byte at the scanner, or 0 at the end; a NUL is an error
// wherever it stands, so the two need no telling apart.
func (s *scanner) at() byte {
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

// wrong refuses the byte at the scanner.
func (s *scanner) wrong(wanted string) error {
	switch c := s.at(); {
	case s.i >= len(s.b):
		return refuse(NotJSON, "the payload ends where %s should be", wanted)
	case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		return refuse(NotCanonical, "there is white space at byte %d", s.i)
	}
	return refuse(NotJSON, "byte %d is not %s", s.i, wanted)
}

func (s *scanner) value(depth int) error {
	switch c := s.at(); {
	case c == '"':
		return s.text()
	case c == '{':
		return s.object(depth + 1)
	case c == '[':
		return s.array(depth + 1)
	case c == '-' || c >= '0' && c <= '9':
		return s.number()
	}
	for _, word := range [...]string{"true", "false", "null"} {
		if rest := s.b[s.i:]; len(rest) >= len(word) && string(rest[:len(word)]) == word {
			if word == "null" {
				return refuse(HasNull, "there is a null at byte %d; leave the member out", s.i)
			}
			s.i += len(word)
			return nil
		}
	}
	return s.wrong("a value")
}

func (s *scanner) object(depth int) error {
	if depth > maxDepth {
		return refuse(TooDeep, "the payload is more than %d deep", maxDepth)
	}
	s.i++
	if s.at() == '}' {
		s.i++
		return nil
	}
	var last []byte
	for {
		start := s.i
		name, err := s.name()
		if err != nil {
			return err
		}
		switch c := bytes.Compare(last, name); {
		case c == 0:
			return refuse(Duplicate, "%q is there twice", name)
		case c > 0:
			return refuse(NotCanonical, "%q stands after %q", name, last)
		}
		last = name
		if s.at() != ':' {
			return s.wrong("a colon")
		}
		s.i++
		if err := s.value(depth); err != nil {
			return err
		}
		if depth == 1 && string(name) == s.find {
			s.from, s.to = start, s.i
		}
		switch s.at() {
		case ',':
			s.i++
		case '}':
			s.i++
			return nil
		default:
			return s.wrong("a comma or }")
		}
	}
}

func (s *scanner) array(depth int) error {
	if depth > maxDepth {
		return refuse(TooDeep, "the payload is more than %d deep", maxDepth)
	}
	s.i++
	if s.at() == ']' {
		s.i++
		return nil
	}
	for {
		if err := s.value(depth); err != nil {
			return err
		}
		switch s.at() {
		case ',':
			s.i++
		case ']':
			s.i++
			return nil
		default:
			return s.wrong("a comma or ]")
		}
	}
}

func (s *scanner) name() ([]byte, error) {
	if s.at() != '"' {
		return nil, s.wrong("a name")
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
	if s.at() != '"' || len(name) == 0 || len(name) > maxMember {
		if s.i >= len(s.b) {
			return nil, s.wrong("a name")
		}
		return nil, refuse(BadName, "the name at byte %d is not 1 to %d characters of a-z, 0-9 and _", start, maxMember)
	}
	s.i++
	return name, nil
}

func (s *scanner) number() error {
	start := s.i
	if s.at() == '-' {
		s.i++
	}
	digits, n := s.i, int64(0)
	for c := s.at(); c >= '0' && c <= '9'; c = s.at() {
		if n = n*10 + int64(c-'0'); n > maxInt {
			return refuse(BadNumber, "the number at byte %d is 2^53 or more", start)
		}
		s.i++
	}
	switch c := s.at(); {
	case s.i == digits, s.b[digits] == '0' && s.i > digits+1:
		return refuse(NotJSON, "byte %d begins no number", start)
	case n == 0 && digits > start:
		return refuse(NotCanonical, "there is a -0 at byte %d", start)
	case c == '.' || c == 'e' || c == 'E':
		return refuse(BadNumber, "the number at byte %d is not a plain integer", start)
	}
	return nil
}

// short are the control characters that JCS escapes by a letter.
const short = "bfnrt"

func (s *scanner) text() error {
	for s.i++; s.i < len(s.b); s.i++ {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return nil
		case c < ' ':
			return refuse(NotJSON, "there is a bare control character at byte %d", s.i)
		case c == '\\':
			if err := s.escape(); err != nil {
				return err
			}
		}
	}
	return s.wrong("the end of a text")
}

// escape reads the escape at the scanner and stops on its last byte.
func (s *scanner) escape() error {
	start := s.i
	s.i++
	switch c := s.at(); {
	case c == '"' || c == '\\' || c != 0 && bytes.IndexByte([]byte(short), c) >= 0:
		return nil
	case c == '/':
		return refuse(NotCanonical, "the / at byte %d needs no escape", start)
	case c != 'u' || s.i+4 >= len(s.b):
		return refuse(NotJSON, "byte %d begins no escape", start)
	}
	n := 0
	for _, c := range s.b[s.i+1 : s.i+5] {
		switch {
		case c >= '0' && c <= '9':
			n = n<<4 | int(c-'0')
		case c >= 'a' && c <= 'f':
			n = n<<4 | int(c-'a'+10)
		case c >= 'A' && c <= 'F': // JCS writes hex in lower case
			n = 1 << 16
		default:
			return refuse(NotJSON, "byte %d begins no escape", start)
		}
	}
	s.i += 4
	switch {
	case n == 0:
		return refuse(BadText, "there is a NUL at byte %d", start)
	case n >= ' ', n >= '\b' && n <= '\r' && n != '\v':
		return refuse(NotCanonical, "the escape at byte %d is not the canonical one", start)
	}
	return nil
}
