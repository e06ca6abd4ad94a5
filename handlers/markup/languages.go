package markup

import (
	"strings"
	"sync"
	"unicode/utf8"
)

// grammar describes a language for the highlighter. Fields that are lists in a string are separated by
// blanks.
type grammar struct {
	names  string // names after a fence; the first is the language's own
	family family
	with   features
	// lines are the marks that begin a comment up to the end of the line, blocks the pairs of marks
	// around a comment.
	lines, blocks string
	quotes        []quote
	// prefixes are words that may precede a string literal directly. A prefix in formats allows
	// interpolated code in the string; if formats is empty, every string allows it. A prefix in raws
	// disables escapes.
	prefixes, formats, raws string
	// A word begins with a letter or a byte of starts and continues with letters, digits and bytes of
	// parts. A word after a point or a byte of glue is no keyword.
	starts, parts, glue string
	// digits are the bytes that may separate digits of a number, such as _.
	digits string
	// keywords are highlighted everywhere, softs only before a space and a word or string. known words
	// are highlighted as names.
	keywords, softs, known string
	// keys are the marks that follow a key, such as : or =.
	keys string
	// sigils are the bytes that begin a variable or a decorator, brackets those that may enclose its
	// name, and special those that may be its whole name.
	sigils, brackets, special string
}

// quote describes one form of string literal. The first form of a language with a matching open is used.
type quote struct {
	open, close string   // an empty close means the same as open
	esc         byte     // escapes the next byte; 0 means no escapes
	doubled     bool     // two closing marks stand for one in the text
	lines       bool     // the string may extend over several lines
	apart       bool     // does not begin after a word or a closing bracket
	char        bool     // a literal of a single character
	vars        bool     // may contain $name
	into        string   // marks that begin interpolated code, such as ${
	marks       []string // the list in into
}

// family selects the scan method of a language, see scanRange.
type family byte

const (
	programs family = iota
	yamlLike
	markupLike
	cssLike
	diffs
	texLike
)

// features are peculiarities of single languages, as a set of bits.
type features uint32

const (
	nested        features = 1 << iota // comments may contain comments
	commentsFirst                      // comments begin only at the beginning of a line
	commentsApart                      // comments begin only after a blank
	folded                             // keywords ignore case
	tight                              // no blanks between a key and its mark
	keysFirst                          // keys begin a line
	recipes                            // lines that begin with a tab have no keys, as in makefiles
	sections                           // [name] at the beginning of a line
	leading                            // the first word of a statement is a keyword
	symbols                            // symbols such as :name
	hashLines                          // preprocessor lines such as #include
	attributes                         // attributes such as #[name]
	slashes                            // regular expressions between slashes
	tags                               // elements inside a program, as in JSX
	scripts                            // script and style elements contain other languages
	percents                           // literals such as %w[a b]
	perlOps                            // operators such as s/a/b/
	bangs                              // macro calls such as name!(
	capitals                           // words that begin with a capital are highlighted as names
	lifetimes                          // lifetimes such as 'name
	delimited                          // raw strings such as R"x(…)x"
	lispLike                           // the word after an opening parenthesis is highlighted
	inPages                            // programs between <?php and ?> in HTML
)

// byteKind is the set of roles of a byte in a language.
type byteKind uint8

const (
	wordStart byteKind = 1 << iota
	wordPart
	plainPart // part of a word in every language
	opens     // may begin a comment or a string
	sigil
	glue
)

// maxWord is longer than every word in the grammars, so that longer words need no lookup.
const maxWord = 24

// language is a grammar with parsed lists and lookup tables. It is read-only, so all goroutines share it.
type language struct {
	family            family
	with              features
	bytes             [256]byteKind
	lines             []string
	blocks            [][2]string
	quotes            []quote
	prefixes          map[string]bool
	formats, raws     map[string]bool
	words             map[string]string // class by word
	softs             map[string]bool
	keyMarks          []string
	digits            string
	brackets, special string
}

// declaring are the keywords of all languages that a new name follows.
var declaring = setOf("class struct enum interface trait type def fn func fun function module namespace protocol extension record union macro defmodule defp defn defmacro defun contract object sub mod message service query mutation fragment @interface @implementation @protocol @class")

func setOf(list string) map[string]bool {
	words := strings.Fields(list)
	if len(words) == 0 {
		return nil
	}
	out := make(map[string]bool, len(words))
	for _, w := range words {
		out[w] = true
	}
	return out
}

// languages maps every name of every language to its tables, which are built at the first use.
var languages = sync.OnceValue(func() map[string]*language {
	out := make(map[string]*language, 3*len(grammars))
	for i := range grammars {
		l := grammars[i].newLanguage()
		for _, name := range strings.Fields(grammars[i].names) {
			out[name] = l
		}
	}
	return out
})

// newLanguage builds the lookup tables of a grammar.
func (g *grammar) newLanguage() *language {
	l := &language{family: g.family, with: g.with, digits: g.digits, brackets: g.brackets, special: g.special,
		lines: strings.Fields(g.lines), keyMarks: strings.Fields(g.keys),
		prefixes: setOf(g.prefixes), formats: setOf(g.formats), raws: setOf(g.raws), softs: setOf(g.softs),
		words: make(map[string]string)}
	for c := range 256 {
		switch b := byte(c); {
		case isLetter(b):
			l.bytes[c] = wordStart | wordPart | plainPart
		case isDigit(b):
			l.bytes[c] = wordPart | plainPart
		}
	}
	l.addKind(g.starts, wordStart|wordPart)
	l.addKind(g.parts, wordPart)
	l.addKind(g.sigils, sigil)
	l.addKind(g.glue+".", glue)
	for _, m := range l.lines {
		l.addKind(m[:1], opens)
	}
	for pairs := strings.Fields(g.blocks); len(pairs) > 1; pairs = pairs[2:] {
		l.blocks = append(l.blocks, [2]string{pairs[0], pairs[1]})
		l.addKind(pairs[0][:1], opens)
	}
	for _, q := range g.quotes {
		if q.close == "" {
			q.close = q.open
		}
		q.marks = strings.Fields(q.into)
		l.quotes = append(l.quotes, q)
		l.addKind(q.open[:1], opens)
	}
	if g.with&attributes != 0 {
		l.addKind("#", opens)
	}
	for class, list := range map[string]string{hlName: g.known, hlKeyword: g.keywords + " " + g.softs} {
		for _, w := range strings.Fields(list) {
			if _, both := l.words[w]; !both || class == hlKeyword {
				l.words[w] = class
			}
		}
	}
	return l
}

func (l *language) addKind(list string, kind byteKind) {
	for i := range len(list) {
		if list[i] < utf8.RuneSelf {
			l.bytes[list[i]] |= kind
		}
	}
}
