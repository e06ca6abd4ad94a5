// Package docs is the manual: Markdown files embedded into the binary, and the functions that split
// them into sections with an address. It does not depend on HTML, HTTP or search. A handler renders
// Page.Source and takes heading ids from HeadingAnchor; the built-in guide answers questions from
// Sections.
package docs

import (
	"embed"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"unicode"
)

//go:embed *.md operate/*.md asked.tsv
var files embed.FS

// order lists the stems of pages in reading order. Files that are not listed follow, sorted by
// stem.
var order = [...]string{
	"index", "start", "talk", "register", "agents", "memory", "library", "link", "frameworks", "host", "connect", "builtin", "accounts",
	"teams", "api", "cli",
	"operate", "operate/limits", "operate/postgresql", "federation", "security", "house", "glossary", "performance", "changes",
}

// Page is one Markdown file of the manual.
type Page struct {
	Stem   string // path of the file without .md; the page is at /docs/<stem>
	Title  string // plain text of the page's # heading
	Source string // Markdown, including the # heading
}

// Section is the text below one ## or ### heading, up to the next heading of any level, or the text
// between a page's title and its first section.
type Section struct {
	Page      string // stem of the page
	PageTitle string
	Title     string // plain text of the heading
	Anchor    string // the section is at /docs/<Page>#<Anchor>
	Text      string // Markdown without the heading
}

// The embedded files never change, so they are read and split only once.
var (
	pages    = sync.OnceValue(loadPages)
	sections = sync.OnceValue(func() []Section {
		var all []Section
		for _, p := range pages() {
			all = append(all, cutSections(p)...)
		}
		return all
	})
	asked = sync.OnceValue(loadAsked)
)

// Pages returns all pages in reading order. The caller may change the slice.
func Pages() []Page { return slices.Clone(pages()) }

// FindPage returns the page with a stem; false if there is none.
func FindPage(stem string) (Page, bool) {
	i := slices.IndexFunc(pages(), func(p Page) bool { return p.Stem == stem })
	if i < 0 {
		return Page{}, false
	}
	return pages()[i], true
}

// Sections returns the sections of all pages in reading order, without those
// that have no text. The caller may change the slice.
func Sections() []Section { return slices.Clone(sections()) }

// Asked returns the ways in which people ask for a section, in words that need not be in it; nil if none is noted.
// They are in asked.tsv, a line for each section: address, tab, questions with " | " between them. The caller must
// not change the slice.
func Asked(s Section) []string { return asked()[s.Page+"#"+s.Anchor] }

func loadAsked() map[string][]string {
	source, err := files.ReadFile("asked.tsv")
	if err != nil {
		panic("docs: embedded files: " + err.Error()) // cannot fail: the file is embedded
	}
	list := make(map[string][]string)
	for line := range strings.Lines(string(source)) {
		address, questions, _ := strings.Cut(strings.TrimSpace(line), "\t")
		list[address] = strings.Split(questions, " | ")
	}
	return list
}

// WithAddress returns the text of a page for the portal at a URL: example commands call that portal.
// Pages about starting a portal keep the default listen address.
func WithAddress(stem, text, url string) string {
	switch stem {
	case "register", "link", "frameworks", "connect", "api", "operate":
		_, host, _ := strings.Cut(url, "://")
		return strings.NewReplacer(
			"http://127.0.0.1:8080", url,
			"ws://127.0.0.1:8080", "ws"+strings.TrimPrefix(url, "http"),
			"@127.0.0.1:8080", "@"+host,
		).Replace(text)
	}
	return text
}

// HeadingAnchor returns the id of a heading as GitHub makes it: lower case, letters, digits, hyphens
// and underscores kept, spaces made hyphens, all else dropped. A test refuses equal anchors on one
// page, so no number is ever appended.
func HeadingAnchor(title string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(strings.TrimSpace(title)) {
		switch {
		case r == ' ':
			b.WriteByte('-')
		case r == '-', r == '_', unicode.IsLetter(r), unicode.IsMark(r), unicode.IsDigit(r):
			b.WriteRune(r)
		}
	}
	return b.String()
}

func loadPages() []Page {
	var list []Page
	err := fs.WalkDir(files, ".", func(path string, e fs.DirEntry, err error) error { // in the order of the names
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".md") {
			return err
		}
		source, err := files.ReadFile(path)
		if err != nil {
			return err
		}
		p := Page{Stem: strings.TrimSuffix(path, ".md"), Source: string(source)}
		p.Title = p.Stem
		for h := range parseHeadings(p.Source) {
			if h.level == 1 {
				p.Title = h.title
				break
			}
		}
		list = append(list, p)
		return nil
	})
	if err != nil {
		panic("docs: embedded files: " + err.Error()) // cannot fail: the folders are embedded
	}
	slices.SortStableFunc(list, func(a, b Page) int { return pageRank(a.Stem) - pageRank(b.Stem) })
	return list
}

func pageRank(stem string) int {
	if i := slices.Index(order[:], stem); i >= 0 {
		return i
	}
	return len(order)
}

// cutSections splits a page at its headings. Sections without text are left out.
func cutSections(p Page) []Section {
	var out []Section
	cur := Section{Page: p.Stem, PageTitle: p.Title, Title: p.Title, Anchor: HeadingAnchor(p.Title)}
	from := 0
	flush := func(to int) {
		if cur.Text = strings.TrimSpace(p.Source[from:to]); cur.Text != "" {
			out = append(out, cur)
		}
	}
	for h := range parseHeadings(p.Source) {
		if h.level > 3 {
			continue
		}
		flush(h.start)
		cur.Title, cur.Anchor, from = h.title, HeadingAnchor(h.title), h.end
	}
	flush(len(p.Source))
	return out
}

// heading is one line of the form "## Title" outside of fenced code. start and
// end are the bounds of its line in the source.
type heading struct {
	level      int
	title      string
	start, end int
}

// parseHeadings yields the headings of a Markdown source that begin with #, in order. Headings that
// are underlined are not used in this manual.
func parseHeadings(source string) func(yield func(heading) bool) {
	return func(yield func(heading) bool) {
		fence := "" // marker that closes the present code block, "" outside of one
		at := 0
		for line := range strings.Lines(source) {
			start := at
			at += len(line)
			text := strings.TrimRight(line, " \t\r\n")
			if indent := len(text) - len(strings.TrimLeft(text, " ")); indent > 3 {
				continue
			}
			text = strings.TrimLeft(text, " ")
			if fence != "" {
				if strings.HasPrefix(text, fence) && strings.Trim(text, fence[:1]) == "" {
					fence = ""
				}
				continue
			}
			if strings.HasPrefix(text, "```") || strings.HasPrefix(text, "~~~") {
				fence = text[:len(text)-len(strings.TrimLeft(text, text[:1]))]
				continue
			}
			rest := strings.TrimLeft(text, "#")
			level := len(text) - len(rest)
			if level < 1 || level > 6 || !strings.HasPrefix(rest, " ") {
				continue
			}
			if !yield(heading{level, plainHeading(rest), start, at}) {
				return
			}
		}
	}
}

// plainHeading drops the Markdown marks of a heading: code marks, emphasis, and closing #.
func plainHeading(s string) string {
	s = strings.TrimRight(strings.TrimSpace(s), "#")
	return strings.TrimSpace(strings.NewReplacer("`", "", "**", "").Replace(s))
}
