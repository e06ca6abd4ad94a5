package bm25

import (
	"unicode/utf8"

	"agentsite/internal/wordsplit"
)

// stemWord reduces an English word to the form its relatives share (translate, translating, translation, translator
// → translat) by Porter's algorithm of 1980. An Arabic or Hebrew word loses its article. Words with anything else, and
// words of up to three letters, stay as they are. It may change w and returns a slice of it.
func stemWord(w []byte) []byte {
	if len(w) <= 3 {
		return w
	}
	for _, c := range w {
		if c < 'a' || c > 'z' {
			if c >= utf8.RuneSelf {
				return []byte(wordsplit.Base(string(w)))
			}
			return w
		}
	}
	w = stripPlural(w)
	w = pastAndGerund(w)
	if n := len(w); w[n-1] == 'y' && hasVowel(w[:n-1]) {
		w[n-1] = 'i'
	}
	w = replaceSuffix(w, doubleSuffixes, 0)
	w = replaceSuffix(w, simpleSuffixes, 0)
	w = dropSuffix(w)
	return tidyEnd(w)
}

type rule struct{ from, to string }

// The rules of steps 2 and 3; the first rule with a matching ending decides.
var (
	doubleSuffixes = []rule{
		{"ational", "ate"}, {"ization", "ize"}, {"iveness", "ive"}, {"fulness", "ful"}, {"ousness", "ous"},
		{"tional", "tion"}, {"biliti", "ble"}, {"entli", "ent"}, {"ousli", "ous"}, {"ation", "ate"},
		{"alism", "al"}, {"aliti", "al"}, {"iviti", "ive"}, {"enci", "ence"}, {"anci", "ance"},
		{"izer", "ize"}, {"abli", "able"}, {"alli", "al"}, {"ator", "ate"}, {"logi", "log"}, {"eli", "e"},
	}
	simpleSuffixes = []rule{
		{"icate", "ic"}, {"ative", ""}, {"alize", "al"}, {"iciti", "ic"}, {"ical", "ic"}, {"ness", ""}, {"ful", ""},
	}
	lastSuffixes = []string{
		"ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous", "ive", "ize",
		"ion", "al", "er", "ic", "ou",
	}
)

func stripPlural(w []byte) []byte {
	switch {
	case hasSuffix(w, "sses"), hasSuffix(w, "ies"):
		return w[:len(w)-2]
	case hasSuffix(w, "ss"):
		return w
	case hasSuffix(w, "s"):
		return w[:len(w)-1]
	}
	return w
}

func pastAndGerund(w []byte) []byte {
	var s []byte
	switch {
	case hasSuffix(w, "eed"):
		if measureStem(w[:len(w)-3]) > 0 {
			return w[:len(w)-1]
		}
		return w
	case hasSuffix(w, "ed") && hasVowel(w[:len(w)-2]):
		s = w[:len(w)-2]
	case hasSuffix(w, "ing") && hasVowel(w[:len(w)-3]):
		s = w[:len(w)-3]
	default:
		return w
	}
	switch n := len(s); {
	case hasSuffix(s, "at"), hasSuffix(s, "bl"), hasSuffix(s, "iz"):
		return append(s, 'e')
	case n > 1 && s[n-1] == s[n-2] && !isVowel(s, n-1) && s[n-1] != 'l' && s[n-1] != 's' && s[n-1] != 'z':
		return s[:n-1]
	case measureStem(s) == 1 && shortEnd(s):
		return append(s, 'e')
	}
	return s
}

// replaceSuffix applies the first rule whose ending w has, if the stem that remains has a measure
// (measureStem) above least.
func replaceSuffix(w []byte, rules []rule, least int) []byte {
	for _, r := range rules {
		if hasSuffix(w, r.from) {
			if s := w[:len(w)-len(r.from)]; measureStem(s) > least {
				return append(s, r.to...)
			}
			return w
		}
	}
	return w
}

func dropSuffix(w []byte) []byte {
	for _, suffix := range lastSuffixes {
		if !hasSuffix(w, suffix) {
			continue
		}
		s := w[:len(w)-len(suffix)]
		if measureStem(s) > 1 && (suffix != "ion" || hasSuffix(s, "s") || hasSuffix(s, "t")) {
			return s
		}
		return w
	}
	return w
}

// tidyEnd is step 5 of Porter's algorithm: it removes a final e and the second l of a final ll.
func tidyEnd(w []byte) []byte {
	if n := len(w); w[n-1] == 'e' {
		s := w[:n-1]
		if m := measureStem(s); m > 1 || m == 1 && !shortEnd(s) {
			w = s
		}
	}
	if hasSuffix(w, "ll") && measureStem(w) > 1 {
		w = w[:len(w)-1]
	}
	return w
}

func hasSuffix(w []byte, suffix string) bool {
	return len(w) >= len(suffix) && string(w[len(w)-len(suffix):]) == suffix
}

func isVowel(w []byte, i int) bool {
	switch w[i] {
	case 'a', 'e', 'i', 'o', 'u':
		return true
	case 'y':
		return i > 0 && !isVowel(w, i-1)
	}
	return false
}

func hasVowel(w []byte) bool {
	for i := range w {
		if isVowel(w, i) {
			return true
		}
	}
	return false
}

// measureStem is Porter's m: the number of times a vowel is followed by a consonant in w.
func measureStem(w []byte) int {
	m, was := 0, false
	for i := range w {
		v := isVowel(w, i)
		if was && !v {
			m++
		}
		was = v
	}
	return m
}

// shortEnd is Porter's condition *o: w ends in consonant, vowel, consonant, and the last is not w, x or y.
func shortEnd(w []byte) bool {
	n := len(w)
	if n < 3 || isVowel(w, n-1) || !isVowel(w, n-2) || isVowel(w, n-3) {
		return false
	}
	c := w[n-1]
	return c != 'w' && c != 'x' && c != 'y'
}
