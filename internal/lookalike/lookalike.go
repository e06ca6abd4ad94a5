// Package lookalike finds names that people would take for another one: letters of other scripts that look the same,
// digits in place of letters, other case, spaces and signs. It knows only the texts that its callers protect.
package lookalike

import (
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"agentsite/internal/fault"
)

// twins maps letters and digits to the Latin letter that they look like, in lower case. Forms that Unicode itself calls
// compatible, such as full-width, mathematical and accented letters, are reduced before.
var twins = func() map[rune]rune {
	m := make(map[rune]rune)
	for to, from := range map[rune]string{
		'a': "аαɑ@4", 'b': "ЬьвβƄ8", 'c': "сϲᴄ", 'd': "ԁɗ", 'e': "еєεҽ3", 'f': "ғƒ", 'g': "ɡց9", 'h': "һнհ",
		'i': "іιıìɩ1l|!ӏ", 'j': "јϳ", 'k': "кκ", 'm': "мʍ", 'n': "пոηŋ", 'o': "оοσօ0", 'p': "рρ", 'q': "ԛգ", 'r': "гᴦя",
		's': "ѕ5$ꜱ", 't': "тτ7", 'u': "υսᴜ", 'v': "ѵνᴠ", 'w': "ѡԝωшա", 'x': "хχ", 'y': "уγүყ", 'z': "ᴢ2",
	} {
		for _, r := range from {
			m[r] = to
		}
	}
	return m
}()

// Skeleton returns the form of a text that is equal for texts which look alike. It holds only letters and digits, and
// is empty for a text without any.
func Skeleton(text string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(strings.ToLower(norm.NFKC.String(text))) {
		r = unicode.ToLower(r)
		if to, ok := twins[r]; ok {
			r = to
		}
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			b.WriteRune(r)
		}
	}
	return strings.NewReplacer("rn", "m", "vv", "w").Replace(b.String())
}

// roles are words with which a person or an agent would pass for the portal or its operator. fillers are words that
// change nothing about that: "The official calculator (built in)".
var roles, fillers = skeletons("admin", "admins", "administrator", "official", "operator", "moderator", "portal",
	"staff", "support", "system", "verified", "agentsite", "security"),
	skeletons("the", "team", "real", "original", "built", "in", "builtin", "our", "this")

// skeletons maps the skeletons of words to the words.
func skeletons(words ...string) map[string]string {
	m := make(map[string]string, len(words))
	for _, w := range words {
		m[Skeleton(w)] = w
	}
	return m
}

// Names are the texts that only the portal's own agents may have. The zero value protects nothing but the portal's
// roles. It is safe for concurrent use.
type Names struct {
	mu    sync.RWMutex // guards the fields below
	held  map[string]string
	taken map[string]bool // the protected names themselves
}

// Protect adds the name and the title of one of the portal's agents.
func (n *Names) Protect(name, title string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.held == nil {
		n.held, n.taken = make(map[string]string), make(map[string]bool)
	}
	n.taken[name] = true
	for _, t := range []string{name, title} {
		if s := Skeleton(t); s != "" {
			n.held[s] = t
		}
	}
}

// Check adds to c the fields name and title of a registration, nil for those that it leaves, if people would take them
// for another's. A protected name itself is left to the check whether it is taken. A nil n protects nothing.
func (n *Names) Check(c *fault.Check, name, title *string) {
	if n == nil {
		return
	}
	for field, text := range map[string]*string{"name": name, "title": title} {
		if text != nil && !(field == "name" && n.isTaken(*text)) {
			like := n.Resembles(*text)
			c.Field(like == "", field, "people would take it for the portal's own “%s”; choose another", like)
		}
	}
}

func (n *Names) isTaken(name string) bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.taken[name]
}

// Resembles returns the protected text or the role of the portal for which people would take a text; "" for none.
func (n *Names) Resembles(text string) string {
	n.mu.RLock()
	defer n.mu.RUnlock()
	whole := Skeleton(text)
	if like := n.held[whole]; like != "" || whole == "" {
		return like
	}
	if role := roles[whole]; role != "" {
		return role
	}
	role, rest := "", ""
	for w := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		s := Skeleton(w)
		switch {
		case roles[s] != "":
			role = roles[s]
		case fillers[s] == "":
			rest += s
		}
	}
	if rest == "" {
		return role
	}
	return n.held[rest]
}
