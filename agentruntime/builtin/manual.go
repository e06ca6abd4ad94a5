package builtin

import (
	"cmp"
	"slices"
	"strings"

	"agentsite/internal/index/bm25"
)

const (
	// maxExcerpt is how much of a section an answer shows, in characters.
	maxExcerpt = 1200
	// briefExcerpt is the same where agents are offered beside it.
	briefExcerpt = 500
	// maxLinks is to how many sections an answer leads.
	maxLinks = 3
)

// manual finds the sections that answer a question. Besides its own words a
// section is found, for less, by words that mean much the same.
type manual struct {
	answers *shelf // sections that answer a question
	refs    *shelf // references
}

// shelf holds sections of one sort: how rare a word is in one says nothing of
// the other.
type shelf struct {
	sections []Section
	all      *bm25.Index // everything, to rank by
	headings *bm25.Index // headings and their related words, to judge by
}

func newShelf() *shelf {
	return &shelf{
		// Weights from a search on testdata/dev_questions.tsv; the outcome
		// hardly changes around them.
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
	}
}

func newManual(sections []Section, t *thesaurus) *manual {
	m := &manual{newShelf(), newShelf()}
	known := make(map[string][]string)
	for _, s := range sections {
		// Joined expressions stand beside the words as they are written.
		title, text := plainWords(s.Title), plainWords(s.Text)
		like, page := t.also(s.Title, known), plainWords(s.PageTitle)
		if s.Title == s.PageTitle {
			page = "" // an introduction says its title once
		}
		x := m.answers
		if s.reference() {
			x = m.refs
		}
		i := len(x.sections)
		x.sections = append(x.sections, s)
		x.all.Put(i, sectionKey(i), x.all.Analyze([]string{title}, []string{page}, []string{text}, []string{like}, []string{t.also(s.Text, known)}))
		x.headings.Put(i, sectionKey(i), x.headings.Analyze([]string{title}, []string{like}))
	}
	return m
}

// sectionKey orders sections of one score as the manual does.
func sectionKey(i int) string { return string([]byte{byte(i >> 8), byte(i)}) }

// plainWords is the text as words() sees it: what a question is made of.
func plainWords(s string) string { return strings.Join(words(s), " ") }

// passage is a section found for a question.
type passage struct {
	Section
	shelf *shelf
	id    int // on it
	score float64
}

// lookup returns the best sections for the words of a question, best first,
// without those to be left out (by their address).
func (m *manual) lookup(question []string, most int, without map[string]bool) []passage {
	if len(question) == 0 {
		return nil
	}
	var out []passage
	for _, x := range []*shelf{m.answers, m.refs} {
		for _, h := range x.all.Query(strings.Join(question, " ")+" "+noWord, 2*most+len(without)) {
			p := passage{x.sections[h.ID], x, h.ID, h.Score}
			if slices.Equal(content(p.Title), question) {
				p.score *= exactWorth
			}
			if x == m.refs {
				p.score *= referenceWorth
			}
			if !without[p.path()] {
				out = append(out, p)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b passage) int { return cmp.Compare(b.score, a.score) })
	return out[:min(len(out), most)]
}

// exactWorth is what a section counts whose heading is the question itself.
const exactWorth = 4

// referenceWorth is what a hit in a reference counts beside one in a section
// that answers a question: it holds many words, and few are asked about.
const referenceWorth = 0.3

// reference reports whether a section is for those who implement something.
func (s Section) reference() bool {
	return strings.HasPrefix(s.Title, "Protocol: ") || s.Page == "connect" || s.Page == "performance"
}

// path is where the section is read.
func (s Section) path() string { return "/docs/" + s.Page + "#" + s.Anchor }

// coverage tells how much of the question a section speaks of: the share of
// its words found anywhere, and in or like the heading.
func (p passage) coverage(question []string) (anywhere, heading float64) {
	total := 0.0
	for _, w := range question {
		weight := 1.0
		if vague[w] {
			weight = 0.3
		}
		total += weight
		if has(p.shelf.all, w, p.id) {
			anywhere += weight
		}
		if has(p.shelf.headings, w, p.id) {
			heading += weight
		}
	}
	return anywhere / max(total, 1e-9), heading / max(total, 1e-9)
}

// vague words say little about which section is meant.
var vague = set("agent agents portal work works working way help find see page thing")

// has reports whether document id has the word, or when no document has,
// one spelled nearly so.
func has(x *bm25.Index, w string, id int) bool {
	for _, q := range []string{exact(w), w + " " + noWord} {
		m := x.Match(q)
		any, found := !m.Any && m.Bits.Count() > 0, !m.Any && m.Bits.Has(id)
		m.Close()
		if any {
			return found
		}
	}
	return false
}

// noWord behind a word keeps it from being the last one, which the
// index would complete.
const noWord = "zzqx"

// leads writes the manual's answer: the beginning of the best section, then
// where to read on. base is put before the addresses.
func leads(list []passage, most int, base string) string {
	best := list[0]
	text, whole := excerpt(best.Text, most)
	more := ""
	if !whole {
		more = " (there is more)"
	}
	return localLinks(text, best.Page, base) + "\n\n" + readOn(list, more, base)
}

// readOn links to the sections, noting something of the first.
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
	return "[" + linkText(s.Title) + "](" + base + s.path() + ")"
}

// linkText keeps a trusted title from ending its link.
func linkText(s string) string {
	return strings.NewReplacer("[", `\[`, "]", `\]`, "`", "").Replace(s)
}

// localLinks makes links of a section work outside of its page.
func localLinks(text, page, base string) string {
	text = strings.ReplaceAll(text, "](#", "](/docs/"+page+"#")
	if base != "" {
		text = strings.ReplaceAll(text, "](/", "]("+base+"/")
	}
	return text
}

// worth reports how well the best of the sections speaks to a question.
func worth(question []string, list []passage) (anywhere, heading float64) {
	if len(list) == 0 {
		return 0, 0
	}
	return list[0].coverage(question)
}
