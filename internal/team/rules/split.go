// Package rules decides for the lead of a team without a model: it splits a goal into parts, gives each part to the
// agent that was found for it, tries another agent when one fails, and joins the results. It is pure.
package rules

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Part is a piece of a goal. Needs are the positions, from 1, of earlier parts, the results of
// which it needs.
type Part struct {
	Text  string
	Needs []int
}

// MaxParts bounds the parts of one goal; the rest stays in the last one.
const MaxParts = 12

// minPart is the least number of letters of a part of its own.
const minPart = 3

var (
	bullet = regexp.MustCompile(`^\s*(?:[-*•–]|\(?\d{1,2}[.)]|\(?[a-z]\))\s+`)
	// sentenceEnd is punctuation with a space behind it. A number with a point and an abbreviation stay whole.
	sentenceEnd = regexp.MustCompile(`[.!?;](?:["')\]]*)\s+`)
	// steps are the words between two steps of which the second comes after the first.
	steps = regexp.MustCompile(`(?i)[,;]?\s+(?:and\s+then|then|and\s+after\s+that|after\s+that|afterwards|und\s+dann|` +
		`danach|et\s+ensuite|puis|y\s+luego|luego)\s*,?\s+`)
	stepStart = regexp.MustCompile(`(?i)^(?:and\s+then|then|after\s+that|afterwards|next|finally|dann|danach|` +
		`anschließend|ensuite|puis|luego|después)\b[\s,:]*`)
	// refers are words that stand for the result of the part before.
	refers = regexp.MustCompile(`(?i)\b(?:the\s+results?|the\s+answers?|the\s+outcome|its\s+result|that\s+result|` +
		`this\s+result|(?:with|from|of|for|into|about|summari[sz]e|translate|convert|explain|check)\s+` +
		`(?:it|this|that|these|those|them)|das\s+ergebnis|daraus|damit)\b`)
	politely = regexp.MustCompile(`(?i)^(?:please|could you|can you|would you|i want you to|i need you to|i would like ` +
		`to|bitte)\b[\s,:]*`)
)

var abbreviations = []string{"e.g.", "i.e.", "etc.", "vs.", "approx.", "no.", "dr.", "mr.", "mrs.", "st.", "z.b.",
	"d.h.", "bzw.", "ca."}

// Split divides a goal into its parts: entries of lists, sentences, and steps that are joined by "then". A part that
// follows as a step, or that refers to the result before it, needs the part before it.
func Split(goal string) []Part {
	var out []Part
	header := ""
	for line := range strings.Lines(goal) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		item := bullet.ReplaceAllString(line, "")
		listed := item != line
		if !listed && strings.HasSuffix(line, ":") {
			header = strings.TrimSuffix(line, ":") // the heading of a list is no work of its own
			continue
		}
		for i, sentence := range splitSentences(item) {
			for j, step := range steps.Split(sentence, -1) {
				out = appendPart(out, step, j > 0 || i > 0 && listed)
			}
		}
	}
	if len(out) == 0 && header != "" {
		out = appendPart(out, header, false)
	}
	if len(out) > MaxParts {
		last := &out[MaxParts-1]
		for _, p := range out[MaxParts:] {
			last.Text += "\n" + p.Text
		}
		out = out[:MaxParts]
	}
	return out
}

func appendPart(out []Part, text string, follows bool) []Part {
	text = strings.TrimSpace(text)
	if rest := stepStart.ReplaceAllString(text, ""); rest != text {
		text, follows = rest, true
	}
	text = strings.TrimSpace(politely.ReplaceAllString(text, ""))
	n := 0
	for _, r := range text {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			n++
		}
	}
	if n < minPart {
		if len(out) > 0 && text != "" {
			out[len(out)-1].Text += " " + text
		}
		return out
	}
	p := Part{Text: upperFirst(strings.TrimRight(text, " ,;"))}
	if len(out) > 0 && (follows || refers.MatchString(text)) {
		p.Needs = []int{len(out)}
	}
	return append(out, p)
}

func upperFirst(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[size:]
}

// splitSentences divides a line at the ends of its sentences.
func splitSentences(line string) (list []string) {
	from := 0
	for _, at := range sentenceEnd.FindAllStringIndex(line, -1) {
		head := line[from:at[1]]
		words := strings.Fields(head)
		last := ""
		if len(words) > 0 {
			last = strings.ToLower(words[len(words)-1])
		}
		if slices.Contains(abbreviations, last) || isInitial(last) {
			continue
		}
		list = append(list, strings.TrimSpace(head))
		from = at[1]
	}
	if rest := strings.TrimSpace(line[from:]); rest != "" {
		list = append(list, rest)
	}
	return list
}

// isInitial reports whether a word is one letter with a point, such as of a name.
func isInitial(word string) bool {
	r, size := utf8.DecodeRuneInString(word)
	return unicode.IsLetter(r) && word[size:] == "."
}
