package tools

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const summaryHelp = "I cannot summarise so little. Send a text in Markdown or plain words, and get its outline, its " +
	"main sentences, its open tasks and its links. It works by rules and invents nothing: every sentence is one of the text."

var (
	linkForm = regexp.MustCompile(`\[([^\]]+)\]\((https?://[^)\s]+)[^)]*\)`)
	taskForm = regexp.MustCompile(`^\s*[-*+]\s+\[([ xX])\]\s+(.+)$`)
	markForm = regexp.MustCompile("[*_`]+")
	listForm = regexp.MustCompile(`^\s*([-*+]|\d{1,3}[.)])\s+`)
)

const (
	mainSentences = 3
	wordsAMinute  = 220
	maxSections   = 40
	maxSentence   = 300
	// shortText is the number of words from which on a summary is worth it.
	shortText = 30
)

// section is a heading with the sentences below it.
type section struct {
	level     int
	title     string
	sentences []string
}

// document is a text in parts.
type document struct {
	sections    []section // the first one has no title
	open, links []string
	done        int
	words       int
}

func answerSummary(text string) string {
	_, plain := cutBlocks(text) // code is no prose
	d := readDocument(plain)
	if d.words < shortText && len(d.sections) < 2 {
		return summaryHelp
	}
	var b strings.Builder
	minutes := max(1, (d.words+wordsAMinute/2)/wordsAMinute)
	b.WriteString(countOf(d.words, "word") + ", about " + countOf(minutes, "minute") + " to read.\n")
	if list := d.mainSentences(); len(list) > 0 {
		b.WriteString("\n**Main sentences**\n\n")
		for _, s := range list {
			b.WriteString("- " + s + "\n")
		}
	}
	if len(d.sections) > 1 {
		b.WriteString("\n**Outline**\n\n")
		for _, s := range d.sections[1:min(len(d.sections), maxSections)] {
			b.WriteString(strings.Repeat("  ", max(0, s.level-d.sections[1].level)) + "- " + s.title)
			if len(s.sentences) > 0 {
				b.WriteString(": " + s.sentences[0])
			}
			b.WriteString("\n")
		}
	}
	if len(d.open)+d.done > 0 {
		b.WriteString("\n**Tasks**: " + countOf(d.done, "task") + " done, " + formatNumber(float64(len(d.open))) +
			" open\n\n")
		for _, t := range d.open {
			b.WriteString("- [ ] " + t + "\n")
		}
	}
	if len(d.links) > 0 {
		b.WriteString("\n**Links**\n\n- " + strings.Join(d.links, "\n- ") + "\n")
	}
	return strings.TrimSpace(b.String())
}

func readDocument(text string) document {
	d := document{sections: []section{{}}}
	var paragraph []string
	end := func() {
		s := &d.sections[len(d.sections)-1]
		s.sentences = append(s.sentences, splitSentences(strings.Join(paragraph, " "))...)
		paragraph = nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		for _, m := range linkForm.FindAllStringSubmatch(line, -1) {
			if link := m[1] + ": " + m[2]; !slices.Contains(d.links, link) {
				d.links = append(d.links, link)
			}
		}
		line = linkForm.ReplaceAllString(line, "$1")
		trimmed := strings.TrimSpace(line)
		level := len(trimmed) - len(strings.TrimLeft(trimmed, "#"))
		title := strings.TrimSpace(markForm.ReplaceAllString(strings.Trim(trimmed, "# "), ""))
		d.words += len(strings.Fields(title))
		switch m := taskForm.FindStringSubmatch(line); {
		case level > 0 && level <= 6 && strings.HasPrefix(trimmed[level:], " ") && title != "":
			end()
			d.sections = append(d.sections, section{level: level, title: title})
		case m != nil && m[1] == " ":
			end()
			d.open = append(d.open, m[2])
		case m != nil:
			end()
			d.done++
		case trimmed == "" || strings.HasPrefix(trimmed, "|"):
			end()
		case listForm.MatchString(line):
			end()
			paragraph = append(paragraph, markForm.ReplaceAllString(listForm.ReplaceAllString(line, ""), ""))
		default:
			paragraph = append(paragraph, markForm.ReplaceAllString(strings.TrimLeft(trimmed, "> "), ""))
		}
	}
	end()
	return d
}

// splitSentences divides a paragraph at full stops that a space and a capital letter or a digit follow.
func splitSentences(s string) (list []string) {
	s = strings.Join(strings.Fields(s), " ")
	start := 0
	for i, r := range s {
		if !strings.ContainsRune(".!?", r) || i+2 >= len(s) || s[i+1] != ' ' {
			continue
		}
		next, _ := utf8.DecodeRuneInString(s[i+2:])
		if unicode.IsUpper(next) || unicode.IsDigit(next) || next == '“' || next == '"' {
			list, start = append(list, clip(s[start:i+1])), i+2
		}
	}
	if rest := strings.TrimSpace(s[start:]); rest != "" {
		list = append(list, clip(rest))
	}
	return list
}

// clip shortens a very long sentence at a character.
func clip(s string) string {
	if len(s) <= maxSentence {
		return s
	}
	at := maxSentence
	for !utf8.RuneStart(s[at]) {
		at--
	}
	return s[:at] + "…"
}

// mainSentences returns the sentences with the most frequent words of the text, in its order. The first
// sentence of a section counts a little more.
func (d document) mainSentences() []string {
	type scored struct {
		text  string
		at    int
		score float64
	}
	counts := make(map[string]int)
	var list []scored
	for _, s := range d.sections {
		for i, text := range s.sentences {
			weight := 1.0
			if i == 0 {
				weight = 1.2
			}
			list = append(list, scored{text, len(list), weight})
			for w := range wordsOf(text) {
				counts[w]++
			}
		}
	}
	for i := range list {
		sum, n := 0, 0
		for w := range wordsOf(list[i].text) {
			sum, n = sum+counts[w], n+1
		}
		if n < 2 { // too short to say much
			list[i].score = 0
			continue
		}
		list[i].score *= float64(sum) / float64(n+3)
	}
	list = slices.DeleteFunc(list, func(s scored) bool { return s.score == 0 })
	slices.SortStableFunc(list, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	list = list[:min(len(list), mainSentences)]
	slices.SortFunc(list, func(a, b scored) int { return a.at - b.at })
	var out []string
	for _, s := range list {
		out = append(out, s.text)
	}
	return out
}

// wordsOf returns the different words of a text that have more than three letters, in lower case.
func wordsOf(text string) map[string]bool {
	out := make(map[string]bool)
	for w := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) }) {
		if utf8.RuneCountInString(w) > 3 {
			out[w] = true
		}
	}
	return out
}
