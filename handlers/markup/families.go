package markup

import "strings"

// scanDiff marks header, added and removed lines of a diff.
func (s *scanner) scanDiff() {
	for heading := false; s.at < len(s.code); {
		end := s.lineEnd(s.at)
		class := ""
		// A removed line may itself begin with "-- ", so "--- " is a header only before a "+++ " line.
		header := s.hasPrefix("--- ") && strings.HasPrefix(s.code[min(end+1, len(s.code)):], "+++ ") || heading &&
			s.hasPrefix("+++ ")
		heading = header && s.hasPrefix("-")
		switch c := s.code[s.at]; {
		case header, c == '@', s.hasPrefix("diff "), s.hasPrefix("index "), s.hasPrefix("Index: "), s.hasPrefix("==="):
			class = hlKeyword
		case c == '+', c == '>':
			class = hlString
		case c == '-', c == '<':
			class = hlNumber
		case c == '!':
			class = hlName
		case c == '\\':
			class = hlComment
		}
		s.mark(end, class)
		s.at = min(end+1, len(s.code))
	}
}

// scanTeX marks commands, comments, formula delimiters and the names of environments in TeX.
func (s *scanner) scanTeX() {
	for s.at < len(s.code) {
		switch s.code[s.at] {
		case '%':
			s.mark(s.lineEnd(s.at), hlComment)
		case '\\':
			from := s.at + 1
			to := s.skipKind(from, wordPart)
			if to == from {
				s.mark(min(from+1, len(s.code)), hlKeyword)
				continue
			}
			s.mark(to, hlKeyword)
			if w := s.code[from:to]; (w == "begin" || w == "end") && s.byteAt(to) == '{' {
				if i := s.skipKind(to+1, wordPart); i > to+1 {
					s.at = to + 1
					s.mark(i, hlName)
				}
			}
		case '$':
			to := s.at + 1
			for s.byteAt(to) == '$' {
				to++
			}
			s.mark(to, hlNumber)
		default:
			s.at++
		}
	}
}

// scanElements marks tags, attributes, entities and comments in HTML and XML.
func (s *scanner) scanElements() {
	for s.at < len(s.code) && !s.paint.full {
		n := strings.IndexAny(s.code[s.at:], "<&")
		if n < 0 {
			s.paint.steps += len(s.code) - s.at
			return
		}
		s.paint.steps += n + 1
		s.at += n
		next := s.peek(1)
		switch {
		case s.code[s.at] == '&':
			s.takeEntity()
		case s.hasPrefix("<!--"):
			s.mark(s.indexAfter(s.at+4, "-->"), hlComment)
		case s.hasPrefix("<![CDATA["):
			s.mark(s.indexAfter(s.at, "]]>"), hlString)
		case next == '!':
			s.mark(s.indexAfter(s.at, ">"), hlKeyword)
		case isLetter(next), next == '?', next == '/' && isLetter(s.peek(2)):
			s.takeElement()
		default:
			s.at++
		}
	}
}

// maxEntity is the longest name of a character entity in bytes; the longest of HTML has 31.
const maxEntity = 32

func (s *scanner) takeEntity() {
	rest := s.code[s.at+1 : min(s.at+2+maxEntity, len(s.code))]
	n := strings.IndexByte(rest, ';')
	if n < 1 || strings.Trim(strings.ToLower(rest[:n]), "#abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		s.at++
		return
	}
	s.mark(s.at+n+2, hlNumber)
}

// takeElement marks a tag with its attributes, and highlights the content of script and style elements in
// their own language.
func (s *scanner) takeElement() {
	from := s.at + 1
	closes := s.code[from] == '/'
	to := s.skipKind(from+1, wordPart)
	inner := ""
	if s.with&scripts != 0 && !closes {
		switch strings.ToLower(s.code[from:min(to, from+maxWord)]) {
		case "script":
			inner = "js"
		case "style":
			inner = "css"
		}
	}
	s.mark(to, hlKeyword)
	for s.at < len(s.code) {
		i := s.at
		switch c := s.code[i]; c {
		case ' ', '\t', '\n', '\r', '{', '}', '(', ')':
			s.at++
		case '>':
			s.mark(i+1, hlKeyword)
			if inner != "" {
				s.takeInner(inner, s.code[from:to])
			}
			return
		case '/', '?':
			s.mark(i+1, hlKeyword)
			if c == '/' && s.byteAt(i+1) == '>' {
				inner = ""
			}
		case '<':
			return
		case '"', '\'':
			if !s.takeQuoted(i, i, "") {
				s.at++
			}
		case '=':
			s.at++
			i = s.skipBlanks(s.at)
			end := i
			for end < len(s.code) && strings.IndexByte(" \t\n\r>\"'", s.code[end]) < 0 {
				s.paint.steps++
				end++
			}
			s.at = i
			s.mark(end, hlString)
		default:
			end := i + 1
			for end < len(s.code) && strings.IndexByte(" \t\n\r=>/<\"'{}()", s.code[end]) < 0 {
				s.paint.steps++
				end++
			}
			s.mark(end, hlName)
		}
	}
}

// takeInner highlights the content of the element with the given name, up to its end tag, in another
// language.
func (s *scanner) takeInner(lang, name string) {
	end := s.at
	for ; end < len(s.code); end++ {
		n := strings.Index(s.code[end:], "</")
		if n < 0 {
			s.paint.steps += len(s.code) - end
			end = len(s.code)
			break
		}
		end += n
		s.paint.steps += n + len(name)
		if strings.EqualFold(s.code[end+2:min(end+2+len(name), len(s.code))], name) {
			break
		}
	}
	languages()[lang].scanRange(s.paint, s.at, end)
	s.at = end
}

// scanSheet marks selectors, properties, values and @ rules in CSS and similar languages.
func (s *scanner) scanSheet() {
	const selector, property, value = 0, 1, 2
	state, known := selector, -1 // state holds up to the index known, the end of the current statement
	for s.at < len(s.code) && !s.paint.full {
		c, i := s.code[s.at], s.at
		if c <= ' ' {
			s.at++
			continue
		}
		if i > known && c != '}' {
			state, known = property, s.statementEnd(i)
			if s.byteAt(known) == '{' {
				state = selector
			}
		}
		kind := s.bytes[c]
		switch {
		case kind&opens != 0 && (s.takeComment() || s.takeQuoted(i, i, "")):
		case c == '{' || c == '}' || c == ';':
			s.at++
		case c == '#' && state == value && s.bytes[s.peek(1)]&plainPart != 0:
			s.mark(s.skipKind(i+1, plainPart), hlNumber)
		case isDigit(c), (c == '.' || c == '-' || c == '+') && (isDigit(s.peek(1)) || c != '.' && s.peek(1) == '.'):
			end := i + 1
			for isDigit(s.byteAt(end)) || s.byteAt(end) == '.' {
				end++
			}
			if end = s.skipKind(end, wordPart); s.byteAt(end) == '%' {
				end++
			}
			s.mark(end, hlNumber)
		case c == '@' || c == '$':
			end := s.skipKind(i+1, wordPart)
			class := hlName
			if c == '@' && s.byteAt(end) != ':' && state != value {
				class, state = hlKeyword, value // the rest of an @ statement has no selector
			} else if state == property {
				state = value
			}
			s.mark(max(end, i+1), class)
		case c == '!':
			s.mark(s.skipKind(i+1, wordPart), hlKeyword)
		case c == ':' && state == selector && s.peek(1) == ':':
			s.mark(s.skipKind(i+2, wordPart), hlKeyword)
		case kind&wordPart != 0 && (c != '-' || s.bytes[s.peek(1)]&wordPart != 0):
			end := s.skipKind(i+1, wordPart)
			class := ""
			switch {
			case state == selector:
				class = hlKeyword
			case state == property || s.hasPrefix("--") || s.byteAt(end) == '(':
				class = hlName
			}
			s.mark(end, class)
		case (c == '.' || c == '#' || c == ':') && state == selector && s.bytes[s.peek(1)]&wordPart != 0:
			s.mark(s.skipKind(i+1, wordPart), hlKeyword)
		default:
			if (c == ':' || c == '(') && state == property {
				state = value
			}
			s.at++
		}
	}
}

// statementEnd returns the index of the first {, } or ; from i on that ends a CSS statement. Those inside
// #{…} or within parentheses, as in url(a;b), do not.
func (s *scanner) statementEnd(i int) int {
	within, round := 0, 0
	for ; i < len(s.code); i++ {
		s.paint.steps++
		switch s.code[i] {
		case '{':
			if s.byteAt(i-1) != '#' {
				return i
			}
			within++
		case '}':
			if within == 0 {
				return i
			}
			within--
		case ';':
			if round == 0 {
				return i
			}
		case '(':
			round++
		case ')':
			round = max(0, round-1)
		case '\n':
			round = 0
		}
	}
	return i
}

// scanYAML marks keys, scalars, anchors, tags and comments in YAML.
func (s *scanner) scanYAML() {
	// block is the column of the key of a block scalar, whose lines are indented further; -1 outside of
	// one
	flow, column, block := 0, 0, -1
	for s.at < len(s.code) && !s.paint.full {
		s.line = s.at
		begin, end := s.skipBlanks(s.at), s.lineEnd(s.at)
		if begin < end && block >= 0 && begin-s.line <= block {
			block = -1
		}
		if block >= 0 {
			s.at = begin
			s.mark(end, hlString)
			s.at = min(end+1, len(s.code))
			continue
		}
		column = begin - s.line - 1
		if s.hasPrefix("%") {
			s.mark(end, hlKeyword)
		} else if s.hasPrefix("---") || s.hasPrefix("...") {
			s.mark(s.at+3, hlKeyword)
		}
		for s.at < end {
			i := s.at
			apart := s.byteAt(i+1) <= ' '
			switch c := s.code[i]; {
			case c == ' ' || c == '\t':
				s.at++
			case c == '#' && (i == s.line || s.code[i-1] <= ' '):
				s.mark(end, hlComment)
			case (c == '-' || c == '?') && apart:
				column = i - s.line
				s.at++
			case c == ':' && (apart || flow > 0), c == ',' && flow > 0:
				s.at++
			case c == '{' || c == '[':
				flow++
				s.at++
			case c == '}' || c == ']':
				flow = max(0, flow-1)
				s.at++
			case c == '"' || c == '\'':
				here := i - s.line
				if !s.takeQuoted(i, i, "") {
					s.at++
				} else if s.byteAt(s.skipBlanks(s.at)) == ':' {
					column = here
				}
				if s.at > end {
					end = s.lineEnd(s.at)
				}
			case (c == '&' || c == '*') && !apart:
				s.mark(s.skipKind(i+1, wordPart), hlName)
			case c == '!':
				to := i + 1
				for to < end && s.code[to] > ' ' && (flow == 0 || strings.IndexByte(",[]{}", s.code[to]) < 0) {
					s.paint.steps++
					to++
				}
				s.mark(to, hlKeyword)
			case (c == '|' || c == '>') && flow == 0 && longText(s.code[i+1:end]):
				block = column
				s.at++
				for s.at < end && s.code[s.at] > ' ' {
					s.at++
				}
			default:
				to, class := s.scalarEnd(end, flow > 0)
				if class == hlName {
					column = i - s.line
				}
				s.mark(max(to, i+1), class)
			}
		}
		s.at = min(end+1, len(s.code))
	}
}

// longText reports whether rest can follow the | or > of a YAML block scalar: indicators, blanks and a
// comment.
func longText(rest string) bool {
	rest = strings.TrimLeft(rest, "+-123456789")
	bare := strings.TrimLeft(rest, " \t\r")
	return bare == "" || bare[0] == '#' && len(bare) < len(rest)
}

// scalarEnd returns the end of the plain scalar at s.at, and its class; end is the end of the line. flow
// is true inside [ ] or { }, where a comma ends the scalar.
func (s *scanner) scalarEnd(end int, flow bool) (to int, class string) {
	from := s.at
	to = from
	for ; to < end; to++ {
		s.paint.steps++
		c := s.code[to]
		if c == ':' && s.byteAt(to+1) <= ' ' {
			return to, hlName
		}
		if c == '#' && to > from && s.code[to-1] == ' ' || flow && strings.IndexByte(",[]{}", c) >= 0 {
			break
		}
	}
	word := strings.TrimSpace(s.code[from:to])
	switch {
	case isNumeric(word):
		class = hlNumber
	default:
		class = s.classOf(word)
	}
	return to, class
}

// isNumeric reports whether a plain YAML scalar is a number or a date.
func isNumeric(w string) bool {
	d := strings.TrimLeft(w, "+-.")
	if len(w)-len(d) > 2 || d == "" || !isDigit(d[0]) {
		return false
	}
	if strings.HasPrefix(d, "0x") {
		return strings.Trim(d[2:], "0123456789abcdefABCDEF_") == ""
	}
	return strings.Trim(d, "0123456789.+-_:eETZ") == ""
}
