package markup

import (
	"strings"
	"sync"
	"unicode/utf8"
)

// grammar describes a language as far as its colours need it. Lists are separated by blanks.
type grammar struct {
	names  string // that people write after a fence; the first is its own
	family family
	with   features
	// lines are the marks of comments that end with their line, blocks the
	// pairs of marks around others.
	lines, blocks string
	quotes        []quote
	// prefixes are words that may stand directly before a quote. Those of
	// formats allow code within the text, and without any all texts do; those of
	// raws make escapes mean nothing.
	prefixes, formats, raws string
	// Words begin with letters and starts, and go on with letters, digits and
	// parts. A word after one of glue, or a point, is no keyword.
	starts, parts, glue string
	// digits may stand between the digits of a number.
	digits string
	// keywords have their colour wherever they stand, softs only where another
	// word or a text follows after a space. Those that are known have the colour
	// of names.
	keywords, softs, known string
	// keys are the marks that follow the name of a value.
	keys string
	// sigils are the marks that begin a variable or a decorator, brackets may stand around its name, special are
	// the bytes that may be its name.
	sigils, brackets, special string
}

// quote is how a text is written.
type quote struct {
	open, close string   // the same, when close is empty
	esc         byte     // makes the next byte part of the text; 0 is none
	doubled     bool     // a close written twice is part of the text
	lines       bool     // it may go over lines
	apart       bool     // it does not stand after a word or closing bracket
	char        bool     // a single character, and otherwise no text
	vars        bool     // it may hold $name
	into        string   // marks of code within it
	marks       []string // into, parted
}

// family is which scanner a language has.
type family byte

const (
	programs family = iota
	yamlLike
	markupLike
	cssLike
	diffs
	texLike
)

// features are properties that only some languages have.
type features uint32

const (
	nested        features = 1 << iota // comments within comments
	commentsFirst                      // comments begin lines
	commentsApart                      // comments begin words
	folded                             // keywords in capitals or small
	tight                              // no blanks between a key and its mark
	keysFirst                          // keys begin lines
	recipes                            // lines after a tab have no keys
	sections                           // [name]
	leading                            // the first word of a statement is a keyword
	symbols                            // :name
	hashLines                          // #include
	attributes                         // #[name]
	slashes                            // patterns between slashes
	tags                               // elements
	scripts                            // elements that hold code
	percents                           // %w[a b]
	perlOps                            // s/a/b/
	bangs                              // name!(
	capitals                           // words that begin with a capital are names
	lifetimes                          // 'name
	delimited                          // R"x(…)x"
	lispLike                           // (name
	inPages                            // <?php within HTML
)

// byteKind is the set of roles of a byte in a language.
type byteKind uint8

const (
	wordStart byteKind = 1 << iota
	wordPart
	plainPart // of a word in any language
	opens     // a comment or a text
	sigil
	glue
)

// maxWord is longer than any word that a language knows.
const maxWord = 24

// language is a grammar made ready for a scanner.
type language struct {
	family            family
	with              features
	bytes             [256]byteKind
	lines             []string
	blocks            [][2]string
	quotes            []quote
	prefixes          map[string]bool
	formats, raws     map[string]bool
	words             map[string]string // the class of each
	softs             map[string]bool
	keyMarks          []string
	digits            string
	brackets, special string
}

// declaring are keywords that are followed by a new name.
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

// languages are the known ones by all their names.
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

// newLanguage makes a grammar ready.
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
