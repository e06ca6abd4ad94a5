package builtin

import (
	"cmp"
	"slices"
	"strings"

	"agentsite/internal/index/bm25"
)

const (
	// maxExcerpt is the maximum length of a section in an answer, in characters.
	maxExcerpt = 1200
	// briefExcerpt is maxExcerpt for an answer that also offers agents.
	briefExcerpt = 500
	// maxLinks is the maximum number of sections in an answer; "more" lists further ones.
	maxLinks = 3
)

// manual finds the sections that answer a question. It also finds sections by related words, with a
// smaller weight.
type manual struct {
	encode  func(text string) []float32 // nil if sections are found by words only
	answers *sectionIndex               // sections that answer a question of a user
	refs    *sectionIndex               // sections for implementers, which count less
}

// sectionIndex holds the sections of one kind. Each kind has its own index, because the rarity of a
// word, and so its weight, differs between them.
type sectionIndex struct {
	sections []Section
	all      *bm25.Index // all fields, for ranking
	headings *bm25.Index // headings and their related words, for the coverage
	// questions holds the questions that the sections answer, for ranking. They say nothing about the coverage: they
	// have many words, and all of them are about the portal.
	questions *bm25.Index
	senses    [][][]float32 // of each section: the vectors of its heading, and of heading and beginning
	asked     [][][]float32 // of each section: the vectors of the questions that it answers
}

func newSectionIndex() *sectionIndex {
	return &sectionIndex{
		// Weights from a search on testdata/dev_questions.tsv. Small changes hardly affect the result.
		all: bm25.New(
			bm25.Field{Name: "title", Weight: 9, Length: 6, Norm: 0.4},
			bm25.Field{Name: "page", Weight: 4, Length: 4, Norm: 0.2},
			bm25.Field{Name: "text", Weight: 0.27, Length: 120, Norm: 0.2},
			bm25.Field{Name: "like title", Weight: 1.3, Length: 30, Norm: 0.6},
			bm25.Field{Name: "like text", Weight: 0.05, Length: 300, Norm: 0.6},
		),
		headings: bm25.New(
			bm25.Field{Name: "title", Weight: 1, Length: 6},
			bm25.Field{Name: "like", Weight: 0.5, Length: 30},
		),
		questions: bm25.New(bm25.Field{Name: "asked", Weight: 1, Length: 40, Norm: 0.2}),
	}
}

func newManual(sections []Section, t *thesaurus, encode func(string) []float32) *manual {
	m := &manual{encode, newSectionIndex(), newSectionIndex()}
	known := make(map[string][]string)
	for _, s := range sections {
		// Joined expressions are indexed in addition to the words as written.
		title, text := manualText(s.Title), manualText(s.Text)
		like, page := termsOf(t.relatedText(s.Title, known)), manualText(s.PageTitle)
		if s.Title == s.PageTitle {
			page = "" // The title of an introduction repeats that of its page; count it once.
		}
		x := m.answers
		if s.isReference() {
			x = m.refs
		}
		i := len(x.sections)
		x.sections = append(x.sections, s)
		x.all.Put(i, sectionKey(i), x.all.Analyze([]string{title}, []string{page}, []string{text}, []string{like},
			[]string{termsOf(t.relatedText(s.Text, known))}))
		x.questions.Put(i, sectionKey(i), x.questions.Analyze([]string{manualText(strings.Join(s.Asked, " "))}))
		x.headings.Put(i, sectionKey(i), x.headings.Analyze([]string{title}, []string{like}))
		x.senses = append(x.senses, m.encodeSection(s))
		x.asked = append(x.asked, m.encodeQuestions(s.Asked))
	}
	return m
}

// sectionKey orders sections of equal score as in the manual: the index breaks ties by key.
func sectionKey(i int) string { return string([]byte{byte(i >> 8), byte(i)}) }

// plainWords returns the text as splitWords sees it.
func plainWords(s string) string { return strings.Join(splitWords(s), " ") }

// manualText returns the words of a text as findSections looks for those of a question.
func manualText(s string) string { return strings.Join(manualWords(splitWords(s)), " ") }

// passage is a section found for a question, with its place in its index for the coverage.
type passage struct {
	Section
	source *sectionIndex
	id     int // number of the section in source, the index that found it
	// text is the score of the question's words in the section and questions the one in the questions that it answers.
	text, questions float64
	// similar is the cosine of the question and the section in meaning; asked that of the question and the nearest one
	// that the section answers, and further the mean of the second and third.
	similar, asked, further float64
	score                   float64 // all of them together, for the order
}

// findSections returns the best sections for a message and its words, best first, without those in without (by their
// address).
func (m *manual) findSections(message string, question []string, most int, without map[string]bool) []passage {
	if len(question) == 0 {
		return nil
	}
	var out []passage
	var bestText, bestAsked float64
	sought := m.encodeText(message)
	query := strings.Join(manualWords(question), " ") + " " + noWord
	for _, x := range []*sectionIndex{m.answers, m.refs} {
		text, asked := make(map[int]float64), make(map[int]float64)
		for _, h := range x.all.Query(query, wordHits+len(without)) {
			text[h.ID], bestText = h.Score, max(bestText, h.Score)
		}
		for _, h := range x.questions.Query(query, wordHits+len(without)) {
			asked[h.ID], bestAsked = h.Score, max(bestAsked, h.Score)
		}
		for id, s := range x.sections {
			p := passage{Section: s, source: x, id: id, text: text[id], questions: asked[id],
				similar: similarity(sought, x.senses[id])}
			p.asked, p.further = x.nearestQuestions(sought, id)
			if (p.text+p.questions > 0 || max(p.similar, p.asked) >= leastSimilar) && !without[p.urlPath()] {
				out = append(out, p)
			}
		}
	}
	for i := range out {
		p := &out[i]
		p.score = textWorth*p.text/max(bestText, 1e-9) + questionsWorth*p.questions/max(bestAsked, 1e-9)
		if p.source == m.refs && !slices.Contains(question, subjects[p.Page]) {
			p.score *= referenceWorth
		}
		p.score += similarWorth*p.similar + askedWorth*p.asked + furtherWorth*p.further
		if slices.Equal(contentWords(p.Title), question) {
			p.score *= exactWorth
		}
	}
	slices.SortStableFunc(out, func(a, b passage) int { return cmp.Compare(b.score, a.score) })
	return out[:min(len(out), most)]
}

// exactWorth is the factor for a section with the question itself as its heading.
const exactWorth = 4

// referenceWorth is the weight of words found in a reference relative to a section that answers a question,
// because references contain many words that are rarely asked about.
const referenceWorth = 0.55

// subjects maps pages to the word that a question about them has. Their sections are references for other
// questions only.
var subjects = map[string]string{"operate/postgresql": "postgresql"}

// aboutSearch are the sections that say how to search for agents and how to ask guide. They are no answer to a task.
var aboutSearch = []string{"/docs/talk#how-do-i-find-an-agent", "/docs/talk#which-search-words-work",
	"/docs/talk#why-do-i-not-see-an-agent-in-the-search", "/docs/talk#how-do-i-keep-a-search-and-hear-of-new-agents",
	"/docs/builtin#what-does-guide-do", "/docs/builtin#how-do-i-ask-guide-about-the-portal",
	"/docs/operate#how-do-i-search-by-a-model-of-my-own"}

// searchWords are the words of a question about the search, as splitWords returns them.
var searchWords = wordSet(`agent agents bot bots assistant assistants helper helpers guide directory catalogue search
	searches searching searched find finding found browse query queries result results filter filters tag tags skill
	skills word words spelling typo typos portal portals`)

// isReference reports whether a section is for implementers. Such sections rank by referenceWorth.
func (s Section) isReference() bool {
	return strings.HasPrefix(s.Title, "Protocol: ") || strings.HasPrefix(s.Page, "operate/") ||
		slices.Contains([]string{"connect", "performance", "glossary", "agents", "changes", "house"}, s.Page)
}

// urlPath returns the path of the section on this portal.
func (s Section) urlPath() string { return "/docs/" + s.Page + "#" + s.Anchor }

// coverageOf returns the share of the question's words that the section contains: anywhere, and in or
// like the heading. A section that is similar in meaning covers a share of all words.
func (p passage) coverageOf(question []string) (anywhere, heading float64) {
	total := 0.0
	for _, w := range question {
		weight := 1.0
		if vague[w] {
			weight = 0.3
		}
		total += weight
		term := cmp.Or(portalTerms[w], w)
		if hasWord(p.source.all, term, p.id) {
			anywhere += weight
		}
		if hasWord(p.source.headings, term, p.id) {
			heading += weight
		}
	}
	alike := min(max((p.similar-coversNothing)/(coversAll-coversNothing), 0), 1)
	return max(anywhere/max(total, 1e-9), alike), max(heading/max(total, 1e-9), alike)
}

// vague are words that are in so many sections that they hardly identify one.
var vague = wordSet("agent agents portal work works working way help find see page thing")

// hasWord reports whether document id has the word or, if no document has it, one of similar spelling.
func hasWord(x *bm25.Index, w string, id int) bool {
	for _, q := range []string{exactQuery(w), w + " " + noWord} {
		m := x.Match(q)
		any, found := !m.Any && m.Bits.Count() > 0, !m.Any && m.Bits.Has(id)
		m.Close()
		if any {
			return found
		}
	}
	return false
}

// noWord is put after a word in a query, because the index completes the last word of a query as a
// prefix.
const noWord = "zzqx"

// excerptAnswer returns the manual's answer: the beginning of the best section, at most most characters,
// then links to read on. base is put before paths; list is not empty.
func excerptAnswer(list []passage, most int, base string) string {
	best := list[0]
	text, whole := cutExcerpt(best.Text, most)
	more := ""
	if !whole {
		more = " (there is more)"
	}
	return localLinks(text, best.Page, base) + "\n\n" + readOn(list, more, base)
}

// readOn returns links to the sections, with note after the first; list is not empty.
func readOn(list []passage, note, base string) string {
	var b strings.Builder
	b.WriteString("Manual: " + sectionLink(list[0].Section, base) + note)
	for i, p := range list[1:] {
		if i == 0 {
			b.WriteString(" · See also ")
		} else {
			b.WriteString(" · ")
		}
		b.WriteString(sectionLink(p.Section, base))
	}
	return b.String()
}

func sectionLink(s Section, base string) string {
	return "[" + linkText(s.Title) + "](" + base + s.urlPath() + ")"
}

// linkText escapes a title of the manual for use in a Markdown link.
func linkText(s string) string {
	return strings.NewReplacer("[", `\[`, "]", `\]`, "`", "").Replace(s)
}

// localLinks rewrites links within a section's page, and with base all paths, so that they work in an
// answer.
func localLinks(text, page, base string) string {
	text = strings.ReplaceAll(text, "](#", "](/docs/"+page+"#")
	if base != "" {
		text = strings.ReplaceAll(text, "](/", "]("+base+"/")
	}
	return text
}

// bestCoverage returns the coverage of the best section; 0 without sections.
func bestCoverage(question []string, list []passage) (anywhere, heading float64) {
	if len(list) == 0 {
		return 0, 0
	}
	return list[0].coverageOf(question)
}
