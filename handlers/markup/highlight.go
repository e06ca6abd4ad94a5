package markup

import (
	"strings"
	"unicode/utf8"
)

// Classes of spans, which the style sheet gives colours. They are few, so that each can have a distinct
// colour on a light and on a dark background.
const (
	hlKeyword = "hl-keyword"
	hlString  = "hl-string"
	hlNumber  = "hl-number"
	hlComment = "hl-comment"
	hlName    = "hl-name"
)

// span is a piece of code with one class; a span with class "" has no colour.
type span struct{ class, text string }

// highlight splits code into spans. The concatenated texts of the spans equal the code for any input. It
// returns nil if there would be more than most spans.
//
// The time is linear in the length of the code, because scanners only move forward and never read a byte
// again: a scanner that looks ahead consumes the bytes, reads a bounded number, reads blanks that no
// other scanner reads, or stores how far it has looked.
func (l *language) highlight(code string, most int) []span {
	return l.paintCode(&painter{code: code, most: most})
}

func (l *language) paintCode(p *painter) []span {
	l.scanRange(p, 0, len(p.code))
	p.cut(len(p.code), "")
	if p.full {
		return nil
	}
	return p.list
}

// scanRange highlights code[from:to] of the painter with the scanner of this language.
func (l *language) scanRange(p *painter, from, to int) {
	s := scanner{language: l, paint: p, code: p.code[:to], at: from, line: from, fresh: true, begins: true,
		looked: make([]look, len(l.quotes))}
	switch l.family {
	case yamlLike:
		s.scanYAML()
	case markupLike:
		s.scanElements()
	case cssLike:
		s.scanSheet()
	case diffs:
		s.scanDiff()
	case texLike:
		s.scanTeX()
	default:
		s.scanProgram()
	}
}

// painter collects the spans of a code block from its beginning to its end. Code that no scanner marks
// gets no class.
type painter struct {
	code string
	at   int // index up to which the code is in list
	list []span
	most int
	full bool // the code has more than most spans
	// steps counts reads of bytes by scanners, for the test that bounds them. A byte that is read twice
	// counts twice.
	steps int
}

// mark gives code[from:to] a class, and the unmarked code before it none.
func (p *painter) mark(from, to int, class string) {
	p.cut(from, "")
	p.cut(to, class)
}

// cut appends code[p.at:to] to the spans with a class. Blanks are added to the span before them, which
// looks the same and saves a span.
func (p *painter) cut(to int, class string) {
	to = min(to, len(p.code))
	if to <= p.at || p.full {
		return
	}
	n, text := len(p.list), p.code[p.at:to]
	switch {
	case n > 0 && (p.list[n-1].class == class || strings.TrimSpace(text) == ""):
		p.list[n-1].text = p.code[p.at-len(p.list[n-1].text) : to]
	case n == p.most:
		p.full = true
	default:
		p.list = append(p.list, span{class, text})
	}
	p.at = to
}

// scanner highlights code of one language. takeX methods consume the token at s.at, and return false
// without a change if there is no such token. scanProgram serves most languages; other families have
// their own scan method.
type scanner struct {
	*language
	paint *painter
	code  string // the painter's code up to the end of the scanned range
	at    int
	line  int // index of the beginning of the current line

	fresh    bool // only blanks precede on the line
	begins   bool // only blanks precede in the statement
	operand  bool // the token before is a value, so that / is a division and not a regular expression
	declares bool // the word before is a keyword that a new name follows

	frames []frame
	looked []look // results of isClosed, by index of the quote
	// noRegexp is the index before which no regular expression ends, so that none is looked for again.
	noRegexp int
}

// mark gives code[s.at:to] a class and moves to to.
func (s *scanner) mark(to int, class string) {
	s.paint.mark(s.at, to, class)
	s.at = to
}

// peek returns the byte n after the current one, 0 outside of the code.
func (s *scanner) peek(n int) byte { return s.byteAt(s.at + n) }

func (s *scanner) byteAt(i int) byte {
	s.paint.steps++
	if i < 0 || i >= len(s.code) {
		return 0
	}
	return s.code[i]
}

func (s *scanner) hasPrefix(what string) bool { return strings.HasPrefix(s.code[s.at:], what) }

func (s *scanner) lineEnd(i int) int {
	if i >= len(s.code) {
		return len(s.code)
	}
	end := len(s.code)
	if n := strings.IndexByte(s.code[i:], '\n'); n >= 0 {
		end = i + n
	}
	s.paint.steps += end - i
	return end
}

// indexAfter returns the index after the next occurrence of what from i on, or the end of the code
// without one.
func (s *scanner) indexAfter(i int, what string) int {
	if i >= len(s.code) {
		return len(s.code)
	}
	end := len(s.code)
	if n := strings.Index(s.code[i:], what); n >= 0 {
		end = i + n + len(what)
	}
	s.paint.steps += end - i
	return end
}

// skipKind returns the index of the first byte from i on that is not of the kind, or the end of the code.
func (s *scanner) skipKind(i int, kind byteKind) int {
	for i < len(s.code) && s.bytes[s.code[i]]&kind != 0 {
		s.paint.steps++
		i++
	}
	return i
}

func (s *scanner) skipBlanks(i int) int {
	for i < len(s.code) && (s.code[i] == ' ' || s.code[i] == '\t') {
		s.paint.steps++
		i++
	}
	return i
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func hexDigit(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }
func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c >= utf8.RuneSelf }

// scanProgram highlights programs and similar text: tokens of words, numbers, strings and comments.
func (s *scanner) scanProgram() {
	if s.with&inPages != 0 {
		if t := strings.TrimLeft(s.code[s.at:], " \t\n"); strings.HasPrefix(t, "<") && !strings.HasPrefix(t, "<?") {
			s.scanPage()
		}
	}
	for s.at < len(s.code) && !s.paint.full {
		switch c := s.code[s.at]; {
		case c == '\n':
			s.takeNewline()
		case c <= ' ':
			s.at++
		default:
			s.takeToken(c)
			s.fresh = false
		}
	}
}

func (s *scanner) takeNewline() {
	s.at++
	s.line, s.fresh, s.begins, s.declares = s.at, true, true, false
	// Interpolated code in a single-line string ends with the line, even if its bracket is open.
	for n := len(s.frames); n > 0 && !s.frames[n-1].quote.lines; n-- {
		s.frames = s.frames[:n-1]
	}
}

func (s *scanner) takeToken(c byte) {
	kind := s.bytes[c]
	switch {
	case kind&wordStart != 0:
		s.takeWord()
		return
	case isDigit(c) || c == '.' && isDigit(s.peek(1)) && s.peek(-1) != '.':
		s.takeNumber()
		return
	}
	declared := s.declares
	s.declares = false
	switch {
	case kind&opens != 0 && (s.takeAttribute() || s.takeComment() || s.takeQuoted(s.at, s.at, "")):
	case kind&sigil != 0 && s.takeVariable():
	case c == ':' && s.with&symbols != 0 && s.takeSymbol():
	case c == '#' && s.with&hashLines != 0 && s.fresh && s.hashLine():
	case c == '[' && s.with&sections != 0 && s.at == s.line:
		end := s.lineEnd(s.at)
		if n := strings.IndexByte(s.code[s.at:end], ']'); n >= 0 {
			end = s.at + n + 1
			for s.byteAt(end) == ']' {
				end++
			}
		}
		s.mark(end, hlKeyword)
	case c == '/' && s.with&slashes != 0 && !s.operand && s.takeRegexp():
	case c == '<' && s.with&tags != 0 && s.tagName():
	case (c == '%' || c == '~') && s.with&percents != 0 && s.takePercent(c):
	case c == '\\' && s.with&lispLike != 0:
		s.mark(s.skipKind(min(s.at+2, len(s.code)), wordPart), hlString)
	case c == '?' && s.with&inPages != 0 && s.hasPrefix("?>"):
		s.mark(s.at+2, hlKeyword)
		s.scanPage()
	case c == '<' && s.with&inPages != 0 && s.hasPrefix("<?"):
		to := s.skipKind(s.at+2, plainPart)
		if s.byteAt(to) == '=' {
			to++
		}
		s.mark(to, hlKeyword)
	default:
		// Only * and & may stand between a declaring keyword and the new name.
		s.declares = declared && (c == '*' || c == '&')
		s.takePunctuation(c)
	}
}

// takePunctuation consumes a byte that begins no other token. The closing bracket of interpolated code
// returns to the string around it.
func (s *scanner) takePunctuation(c byte) {
	s.at++
	s.operand = c == ')' || c == ']' || c == '}'
	s.begins = c == ';' || c == '{' || c == '}'
	n := len(s.frames)
	if n == 0 {
		return
	}
	switch f := &s.frames[n-1]; {
	case c == f.open:
		f.depth++
	case c == f.close && f.depth > 0:
		f.depth--
	case c == f.close:
		q, raw := f.quote, f.raw
		s.frames = s.frames[:n-1]
		s.takeText(s.at, q, raw, true)
	}
}

// takeWord consumes a word. If the word is the prefix of a string literal, it consumes the string too.
func (s *scanner) takeWord() {
	from := s.at
	to := s.skipKind(from+1, wordPart)
	w, next := s.code[from:to], s.byteAt(to)
	if s.bytes[next]&opens != 0 && to-from <= 4 && s.prefixes[w] && s.takeQuoted(from, to, w) {
		return
	}
	if s.with&perlOps != 0 && s.perlOp(w, to) {
		return
	}
	before := s.byteAt(from - 1)
	class := s.classOf(w)
	if class == hlKeyword && (s.isGlued(from) && w != "await" || s.softs[w] && !s.leads(to)) {
		class = ""
	}
	declared := s.declares
	s.declares = class == hlKeyword && declaring[w]
	switch {
	case (class != hlKeyword || s.with&keysFirst != 0) && !s.isGlued(from) && s.isKey(to):
		class = hlName
	case class != "":
	case declared:
		class = hlName
	case s.with&leading != 0 && s.begins:
		class = hlKeyword
	case next == '(' && s.with&lispLike == 0, before == '(' && s.with&lispLike != 0 && isLetter(w[0]):
		class = hlName
	case next == '!' && s.with&bangs != 0 && (s.byteAt(to+1) == '(' || s.byteAt(to+1) == '[' || s.byteAt(to+1) == '{'):
		class = hlName
	case s.with&capitals != 0 && w[0] >= 'A' && w[0] <= 'Z':
		class = hlName
	case (w[0] == '-' || w[0] == '+' || w[0] == '.') && len(w) > 1 && isDigit(w[1]):
		class = hlNumber
	}
	s.operand, s.begins = class != hlKeyword, false
	if class == "" {
		s.at = to
		return
	}
	s.mark(to, class)
}

// isGlued reports whether the token at i continues a longer word, a path or a qualified name. Two points
// do not continue one, because they are a range.
func (s *scanner) isGlued(i int) bool {
	c := s.byteAt(i - 1)
	return s.bytes[c]&glue != 0 && (c != '.' || s.byteAt(i-2) != '.')
}

// classOf returns the class of a word from the grammar's word lists, "" for other words.
func (s *scanner) classOf(w string) string {
	if len(w) > maxWord {
		return ""
	}
	if s.with&folded != 0 {
		w = strings.ToLower(w)
	}
	return s.words[w]
}

// leads reports whether a space and then a word or a string follows at i. Only then a word that may also
// be a name (softs) is a keyword.
func (s *scanner) leads(i int) bool {
	c := s.byteAt(i + 1)
	return s.byteAt(i) == ' ' && (isLetter(c) || isDigit(c) || strings.IndexByte("\"'`{[*", c) >= 0 && c != 0)
}

// isKey reports whether the token that ends at i is a key: one of the grammar's keys marks follows.
func (s *scanner) isKey(i int) bool {
	if len(s.keyMarks) == 0 || s.with&keysFirst != 0 && !s.fresh || s.with&recipes != 0 && s.byteAt(s.line) == '\t' {
		return false
	}
	if s.with&tight == 0 {
		i = s.skipBlanks(i)
	}
	for _, m := range s.keyMarks {
		if strings.HasPrefix(s.code[min(i, len(s.code)):], m) {
			c := s.byteAt(i + len(m))
			return c != m[len(m)-1] && c != '>' && c != '~'
		}
	}
	return false
}

// takeNumber consumes a number with its unit, and an exponent such as 1.5e-3.
func (s *scanner) takeNumber() {
	s.declares, s.begins = false, false
	from, i := s.at, s.at
	hex := s.code[i] == '0' && (s.peek(1)|0x20 == 'x')
	for i++; i < len(s.code); i++ {
		s.paint.steps++
		c, last := s.code[i], s.code[i-1]|0x20
		switch {
		case isDigit(c), isLetter(c) && c < utf8.RuneSelf:
		case c == '.' && isDigit(s.byteAt(i+1)):
		case (c == '-' || c == '+') && isDigit(s.byteAt(i+1)) && (!hex && last == 'e' || hex && last == 'p'):
		case strings.IndexByte(s.digits, c) >= 0 && hexDigit(s.byteAt(i+1)):
		default:
			// A word that begins with digits, such as a file name, is no number.
			if to := s.skipKind(i, wordPart); to > i {
				s.at, s.operand = to, true
				return
			}
			s.end(from, i)
			return
		}
	}
	s.end(from, i)
}

func (s *scanner) end(from, to int) {
	s.operand = true
	if s.byteAt(from-1) != '.' && s.isGlued(from) {
		s.at = to // a number in a path or an option has no colour
		return
	}
	s.mark(to, hlNumber)
}

// takeAttribute consumes a Rust attribute such as #[derive(Debug)].
func (s *scanner) takeAttribute() bool {
	if s.with&attributes == 0 || !s.hasPrefix("#[") && !s.hasPrefix("#![") {
		return false
	}
	i, depth := s.at+1, 0
	for ; i < len(s.code) && s.code[i] != '\n'; i++ {
		s.paint.steps++
		if s.code[i] == '[' {
			depth++
		} else if s.code[i] == ']' {
			if depth--; depth == 0 {
				i++
				break
			}
		}
	}
	s.mark(i, hlName)
	return true
}

// takeComment consumes a block comment, or a comment up to the end of the line.
func (s *scanner) takeComment() bool {
	for _, b := range s.blocks {
		if !s.hasPrefix(b[0]) || b[0][0] == '=' && s.at != s.line {
			continue
		}
		if s.with&nested == 0 {
			s.mark(s.indexAfter(s.at+len(b[0]), b[1]), hlComment)
			return true
		}
		depth, i := 1, s.at+len(b[0])
		for i < len(s.code) && depth > 0 {
			s.paint.steps++
			switch {
			case strings.HasPrefix(s.code[i:], b[1]):
				depth--
				i += len(b[1])
			case strings.HasPrefix(s.code[i:], b[0]):
				depth++
				i += len(b[0])
			default:
				i++
			}
		}
		s.mark(i, hlComment)
		return true
	}
	for _, m := range s.lines {
		if !s.hasPrefix(m) {
			continue
		}
		switch before := s.byteAt(s.at - 1); {
		case s.with&commentsFirst != 0 && !s.fresh:
		case s.with&commentsApart != 0 && before > ' ' && before != ';' && before != '(':
		default:
			s.mark(s.lineEnd(s.at), hlComment)
			return true
		}
	}
	return false
}

// takeVariable consumes a variable or decorator that begins with a sigil: $name, ${name}, @name.
func (s *scanner) takeVariable() bool {
	c, before := s.code[s.at], s.byteAt(s.at-1)
	if s.bytes[before]&plainPart != 0 || (c == '%' || c == '&') && s.operand && !s.fresh {
		return false
	}
	i := s.at + 1
	if s.byteAt(i) == c && c == '@' {
		i++
	}
	next := s.byteAt(i)
	switch {
	case isLetter(next):
		i = s.skipKind(i, plainPart)
		for c == '@' && s.byteAt(i) == '.' && isLetter(s.byteAt(i+1)) {
			i = s.skipKind(i+1, plainPart)
		}
	case s.isBracket(next) && isLetter(s.byteAt(i+1)):
		i = s.skipKind(i+1, plainPart)
		if s.byteAt(i) == closingBracket(next) {
			i++
		} else if n := len(s.frames); n > 0 && s.frames[n-1].open == next {
			s.frames[n-1].depth++
		}
	case next != 0 && strings.IndexByte(s.special, next) >= 0:
		i++
	default:
		return false
	}
	class := hlName
	if s.words[s.code[s.at:min(i, s.at+maxWord)]] == hlKeyword {
		class = hlKeyword
	}
	s.operand, s.begins, s.declares = class == hlName, false, declaring[s.code[s.at:min(i, s.at+maxWord)]]
	s.mark(i, class)
	return true
}

// takeSymbol consumes a symbol such as :name.
func (s *scanner) takeSymbol() bool {
	before := s.byteAt(s.at - 1)
	if !isLetter(s.peek(1)) || before == ':' || s.bytes[before]&wordPart != 0 {
		return false
	}
	s.operand, s.begins = true, false
	s.mark(s.skipKind(s.at+1, wordPart), hlString)
	return true
}

// hashLine consumes the directive of a preprocessor line such as #define, and for #include also the file
// in angle brackets.
func (s *scanner) hashLine() bool {
	from := s.skipBlanks(s.at + 1)
	to := s.skipKind(from, plainPart)
	if to == from {
		return false
	}
	w := s.code[from:to]
	s.mark(to, hlKeyword)
	s.operand, s.declares = false, w == "define"
	if w == "include" || w == "import" {
		if i := s.skipBlanks(to); s.byteAt(i) == '<' {
			s.at = i
			end := s.lineEnd(i)
			if n := strings.IndexByte(s.code[i:end], '>'); n >= 0 {
				end = i + n + 1
			}
			s.mark(end, hlString)
		}
	}
	return true
}

// tagName consumes the name of an element inside a program, as in JSX.
func (s *scanner) tagName() bool {
	i := s.at + 1
	if s.byteAt(i) == '/' {
		i++
	} else if s.operand && s.peek(-1) > ' ' {
		return false
	}
	to := i
	for isLetter(s.byteAt(to)) || to > i && (isDigit(s.byteAt(to)) || s.byteAt(to) == '.' || s.byteAt(to) == '-') {
		to++
	}
	if to == i && s.peek(1) != '/' {
		return false
	}
	s.at = i
	s.mark(to, hlKeyword)
	s.operand = true
	return true
}

// scanPage highlights the HTML around a PHP program up to the next <?.
func (s *scanner) scanPage() {
	end := len(s.code)
	if n := strings.Index(s.code[s.at:], "<?"); n >= 0 {
		end = s.at + n
	}
	s.paint.steps += end - s.at
	languages()["html"].scanRange(s.paint, s.at, end)
	s.at, s.line, s.operand = end, end, false
}
