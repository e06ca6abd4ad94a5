package builtin

import (
	"cmp"
	"strings"
	"unicode"
)

// maxWords bounds the words of a question that are used, because each costs a look-up in the indexes.
const maxWords = 60

var noApostrophes = strings.NewReplacer("'", "", "’", "")

// splitWords splits text into lower-case words. Apostrophes are dropped, and an expression of several
// words with one meaning becomes one word.
func splitWords(s string) []string {
	list := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' && r != '’' && !unicode.Is(unicode.Mn, r)
	})
	out := list[:0]
	for _, w := range list {
		if w = noApostrophes.Replace(w); w != "" {
			out = append(out, w)
		}
	}
	return joinExpressions(out)
}

// expression is a sequence of words that stands for one word.
type expression struct {
	words []string
	means string
}

// expressions lists expressions by their first word, the longest first, so that the longest match wins.
var expressions = func() map[string][]expression {
	m := make(map[string][]expression)
	for line := range strings.Lines(`
log in, logged in, logging in, sign in, signed in, signing in, log on = login
log out, logged out, logging out, sign out, signed out, signing out, log off = logout
sign up, signed up, signing up, sign me up = signup
back up, backed up, backing up = backup
postgres = postgresql
set up, setting up = setup
shut down, shutting down, turn off, switch off, take down = stop
start up, turn on, switch on = start
get rid of, take off, take away = remove
cut off, run out of, runs out of, ran out of = exhausted
e mail, e mails = email
pass word, pass phrase = password
user name, nick name = username
web socket, web sockets = websocket
command line = terminal
open ai = openai
java script = javascript
hard disk, hard drive = disk
time out, timed out, times out, timing out = timeout
rate limit, rate limits = limit
high availability = availability
source code = source
go back = rollback
roll back = rollback
what is new, whats new = changes
free of charge, for free = free
at the same time, at once = together
more than one = several
word by word, bit by bit, letter by letter = streaming
real time = live
look up, look for = search
in use, already in use = occupied
will not start, wont start, doesnt start, does not start, not start, cannot start = startfailure
server sent events, server sent event = sse
sum up, boil down, tl dr = summarize
check out, try out = try
make sure = check
find out = learn
point of sale = pos
two factor, 2 fa = 2fa
`) {
		left, means, ok := strings.Cut(strings.TrimSpace(line), " = ")
		if !ok {
			continue
		}
		for form := range strings.SplitSeq(left, ", ") {
			ws := strings.Fields(form)
			m[ws[0]] = append(m[ws[0]], expression{ws, means})
		}
	}
	return m
}()

func joinExpressions(list []string) []string {
	out := make([]string, 0, len(list))
next:
	for i := 0; i < len(list); {
		best := expression{}
		for _, e := range expressions[list[i]] {
			if len(e.words) > len(best.words) && i+len(e.words) <= len(list) &&
				equalWords(e.words, list[i:i+len(e.words)]) {
				best = e
			}
		}
		if best.means != "" {
			out = append(out, best.means)
			i += len(best.words)
			continue next
		}
		out = append(out, list[i])
		i++
	}
	return out
}

// portalTerms has for each lay word the term of the manual: each line is a term and the words that mean it. They are
// replaced in questions and in sections, so that a common word such as “site” does not decide by being rare here.
var portalTerms = func() map[string]string {
	terms := make(map[string]string)
	for line := range strings.Lines(`
agent bot bots chatbot chatbots ai ais agents
portal site sites portals instance instances
operator boss admin admins administrator administrators operators
conversation chat chats conversations
person friend friends colleague colleagues coworker neighbour people persons
file document documents doc files
picture image images photo photos pictures
`) {
		list := strings.Fields(line)
		for _, w := range list {
			terms[w] = list[0]
		}
	}
	return terms
}()

// termsOf is manualWords for a text of words between spaces.
func termsOf(s string) string { return strings.Join(manualWords(strings.Fields(s)), " ") }

// manualWords replaces words by those of portalTerms.
func manualWords(list []string) []string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = cmp.Or(portalTerms[w], w)
	}
	return out
}

func equalWords(a, b []string) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// wordSet returns the set of the words of a text, which are separated by white space.
func wordSet(text string) map[string]bool {
	m := make(map[string]bool)
	for _, w := range strings.Fields(text) {
		m[w] = true
	}
	return m
}

var (
	// stopWords are words of grammar and of asking, which do not identify the subject.
	stopWords = wordSet(`a an the right this that these those i im ive id me my mine myself we us our you your yours youre it its they them their he she his her
		is am are was were be been being do does did doing done dont doesnt didnt have has had having can cant could couldnt may might must shall should will would wont
		of to in on at by for from with without into onto about as than then over under up out off
		and or but if so because while when where what whats which who whom whose why how
		not no yes please just only also too very really again already still ever any some all each every both either
		there here now get gets got getting want wants wanted need needs needed like let lets go goes going
		know tell say says said mean means use using used make makes thing things something anything stuff way ways
		happen happens happened possible able s t re ve ll d m hi hello hey thanks thank ok okay well one ones
		exactly actually currently somehow between difference own instead more says tips everything lot bit enter put
		am pm eg ie etc
		ich und der die das ein eine für`)
	// seekWords are words of looking for an agent, which do not identify the work.
	seekWords = wordSet(`agent agents bot bots assistant assistants ai find finding finds show recommend suggest looking look search seek seeking somebody someone anybody anyone
		person people expert specialist help helps helping helper good great best nice better skilled capable suitable right able who which that tool tools service
		give gives available portal offer offers offering list task job work locate pick choose`)
)

// contentWords returns the distinct words of s that identify its subject, without those of the given
// sets; at most maxWords.
func contentWords(s string, without ...map[string]bool) []string {
	var out []string
	seen := make(map[string]bool)
next:
	for _, w := range splitWords(s) {
		if seen[w] || stopWords[w] || len(out) == maxWords {
			continue
		}
		for _, set := range without {
			if set[w] {
				continue next
			}
		}
		seen[w] = true
		out = append(out, w)
	}
	return out
}
