package markup

import (
	"strings"
	"unicode/utf8"
)

// frame is interpolated code in a string, such as "${a}", whose end is still to come.
type frame struct {
	quote       *quote
	raw         bool
	open, close byte
	depth       int // number of open brackets inside the code
}

// look is a cached result of isClosed: whether the string is closed, valid for every beginning before to.
type look struct {
	to int // index before which no scanner needs to look again
	ok bool
}

// takeQuoted consumes a string literal whose opening mark is at open. prefix is the word before the mark,
// which begins at from; "" if there is none.
func (s *scanner) takeQuoted(from, open int, prefix string) bool {
	for i := range s.quotes {
		q := &s.quotes[i]
		if !strings.HasPrefix(s.code[open:], q.open) {
			continue
		}
		if q.apart && open > 0 && (s.bytes[s.code[open-1]]&wordPart != 0 ||
			strings.IndexByte(")]}'.", s.code[open-1]) >= 0) {
			continue
		}
		if q.char {
			return s.takeChar(open)
		}
		raw := s.raws[prefix]
		within := (len(q.marks) > 0 || q.vars) && !raw && (len(s.formats) == 0 || s.formats[prefix])
		if n := len(prefix); n > 0 && s.with&delimited != 0 && prefix[n-1] == 'R' {
			return s.rawText(from, open)
		}
		if len(q.close) == 1 && !s.isClosed(i, open+1, raw) {
			continue
		}
		s.at, s.begins = from, false
		s.takeText(open+len(q.open), q, raw, within)
		return true
	}
	return false
}

// isClosed reports whether a string that begins at from has an end. A lone mark begins no string, because
// it is an apostrophe or unknown syntax.
func (s *scanner) isClosed(quote, from int, raw bool) bool {
	l, q := &s.looked[quote], &s.quotes[quote]
	if from < l.to {
		return l.ok
	}
	for i := from; i < len(s.code); i++ {
		s.paint.steps++
		switch c := s.code[i]; {
		case c == q.esc && !raw:
			i++
		case c == q.close[0]:
			*l = look{i, true}
			return true
		case c == '\n' && !q.lines:
			*l = look{i, false}
			return false
		}
	}
	*l = look{len(s.code), false}
	return false
}

// takeText consumes the rest of a string from i on, up to its end or up to interpolated code. raw
// disables escapes, within allows interpolation.
func (s *scanner) takeText(i int, q *quote, raw, within bool) {
	s.operand = true
	for i < len(s.code) {
		s.paint.steps++
		c := s.code[i]
		switch {
		case within && c == '$' && q.vars && s.nameEnd(i) > 0:
			s.mark(i, hlString)
			i = s.nameEnd(i)
			s.mark(i, hlName)
		case within && s.enterCode(i, q, raw):
			return
		case c == q.esc && !raw:
			i += 2
			if s.byteAt(i-1) == '\n' {
				s.line = i
			}
		case strings.HasPrefix(s.code[i:], q.close):
			n := len(q.close)
			if q.doubled && strings.HasPrefix(s.code[i+n:], q.close) {
				i += 2 * n
				continue
			}
			class := hlString
			if s.isKey(i + n) {
				class = hlName
			}
			s.mark(i+n, class)
			return
		case c == '\n' && !q.lines:
			s.mark(i, hlString)
			return
		default:
			i++
			if c == '\n' {
				s.line = i
			}
		}
	}
	s.mark(len(s.code), hlString)
}

// nameEnd returns the end of the variable $name or ${name} that begins at i, 0 if none does.
func (s *scanner) nameEnd(i int) int {
	switch next := s.byteAt(i + 1); {
	case isLetter(next):
		return s.skipKind(i+1, plainPart)
	case (next == '{' || s.isBracket(next)) && isLetter(s.byteAt(i+2)):
		if end := s.skipKind(i+2, plainPart); s.byteAt(end) == closingBracket(next) {
			return end + 1
		}
	case next != 0 && strings.IndexByte(s.special, next) >= 0:
		return i + 2
	}
	return 0
}

// isBracket reports whether c may enclose a variable's name after its sigil.
func (s *scanner) isBracket(c byte) bool { return c != 0 && strings.IndexByte(s.brackets, c) >= 0 }

// enterCode begins interpolated code if one of the string's marks is at i, and returns false otherwise.
func (s *scanner) enterCode(i int, q *quote, raw bool) bool {
	for _, in := range q.marks {
		if !strings.HasPrefix(s.code[i:], in) || in == "{" && (s.byteAt(i+1) == '{' || s.byteAt(i-1) == '{') {
			continue
		}
		n, open := len(in), in[len(in)-1]
		if open == '$' {
			n, open = 1, in[0] // in {$name} of PHP the $ belongs to the code
		}
		s.mark(i, hlString)
		s.at = i + n
		s.frames = append(s.frames, frame{quote: q, raw: raw, open: open, close: closingBracket(open)})
		s.operand, s.declares = false, false
		return true
	}
	return false
}

// closingBracket returns the bracket that closes open. Other bytes, such as /, close themselves.
func closingBracket(open byte) byte {
	switch open {
	case '(':
		return ')'
	case '[':
		return ']'
	case '{':
		return '}'
	case '<':
		return '>'
	}
	return open
}

// takeChar consumes a character literal such as 'a' or '\u{61}', or a Rust lifetime.
func (s *scanner) takeChar(open int) bool {
	end := 0
	if s.byteAt(open+1) == '\\' {
		if n := strings.IndexByte(s.code[open+2:min(open+14, len(s.code))], '\''); n == 0 && s.byteAt(open+3) == '\'' {
			end = open + 4
		} else if n > 0 {
			end = open + 3 + n
		}
	} else if _, n := utf8.DecodeRuneInString(s.code[open+1:]); n > 0 && s.byteAt(open+1+n) == '\'' &&
		s.code[open+1] != '\n' {
		end = open + 2 + n
	}
	switch {
	case end > 0:
		s.mark(end, hlString)
	case s.with&lifetimes != 0 && isLetter(s.byteAt(open+1)):
		s.mark(s.skipKind(open+1, plainPart), hlName)
	default:
		return false
	}
	s.operand = true
	return true
}

// maxDelimiter is the longest delimiter of a C++ raw string; the standard allows 16.
const maxDelimiter = 16

// rawText consumes a C++ raw string such as R"x(…)x".
func (s *scanner) rawText(from, open int) bool {
	n := strings.IndexByte(s.code[open+1:min(open+2+maxDelimiter, len(s.code))], '(')
	if n < 0 {
		return false
	}
	s.at, s.operand = from, true
	s.mark(s.indexAfter(open+2+n, ")"+s.code[open+1:open+1+n]+`"`), hlString)
	return true
}

// takeRegexp consumes a regular expression such as /a[/]b/i. It never extends over several lines.
func (s *scanner) takeRegexp() bool {
	if s.at < s.noRegexp || s.peek(1) == ' ' {
		return false
	}
	set := false
	for i := s.at + 1; ; i++ {
		switch c := s.byteAt(i); {
		case i >= len(s.code), c == '\n':
			s.noRegexp = i
			return false
		case c == '\\' && s.byteAt(i+1) != '\n':
			i++
		case c == '[':
			set = true
		case c == ']':
			set = false
		case c == '/' && !set:
			s.mark(s.skipKind(i+1, plainPart), hlString)
			s.operand, s.begins = true, false
			return true
		}
	}
}

// bracketEnd returns the index after a literal whose opening mark is at i; brackets of the same kind
// nest. Without a closing bracket it is the end of the code. A mark that is no bracket must close on its
// line; otherwise the result is -1.
func (s *scanner) bracketEnd(i int) int {
	open := s.code[i]
	end, depth := closingBracket(open), 1
	for i++; i < len(s.code); i++ {
		s.paint.steps++
		switch c := s.code[i]; {
		case c == '\\':
			i++
		case c == end:
			if depth--; depth == 0 {
				return i + 1
			}
		case c == open:
			depth++
		case c == '\n' && end == open:
			s.noRegexp = i
			return -1
		}
	}
	return len(s.code)
}

// takePercent consumes a literal such as %w[a b] of Ruby or ~r/a/ of Elixir.
func (s *scanner) takePercent(c byte) bool {
	kind, i := s.peek(1), s.at+2
	if s.operand || !isLetter(kind) || kind >= utf8.RuneSelf || c == '%' && strings.IndexByte("wWiIqQr", kind) < 0 {
		return false
	}
	if mark := s.byteAt(i); mark == 0 || strings.IndexByte("([{</|!\"'", mark) < 0 || s.at < s.noRegexp {
		return false
	}
	end := s.bracketEnd(i)
	if end < 0 {
		return false
	}
	s.mark(s.skipKind(end, plainPart), hlString)
	s.operand, s.begins = true, false
	return true
}

// perlOp consumes a Perl operator such as s/a/b/g. w is the operator's word and to its end.
func (s *scanner) perlOp(w string, to int) bool {
	parts := 1
	switch w {
	case "s", "y", "tr":
		parts = 2
	case "m", "q", "qq", "qw", "qr":
	default:
		return false
	}
	mark, before := s.byteAt(to), s.byteAt(s.at-1)
	if s.at < s.noRegexp || mark <= ' ' || isLetter(mark) || isDigit(mark) ||
		strings.IndexByte(",;)=}>-.", mark) >= 0 || before != 0 && strings.IndexByte("->$@%&", before) >= 0 {
		return false
	}
	i := s.bracketEnd(to)
	if i >= 0 && parts == 2 {
		if closingBracket(mark) == mark {
			if i = s.bracketEnd(i - 1); i < 0 {
				return false
			}
		} else if i = s.skipBlanks(i); i < len(s.code) && closingBracket(s.code[i]) != s.code[i] {
			i = s.bracketEnd(i)
		}
	}
	if i < 0 {
		return false
	}
	s.mark(s.skipKind(i, plainPart), hlString)
	s.operand, s.begins = true, false
	return true
}
