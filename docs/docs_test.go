package docs

import (
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestPages_FollowTheListThenTheAlphabet(t *testing.T) {
	var stems []string
	for _, p := range Pages() {
		stems = append(stems, p.Stem)
	}
	if len(stems) == 0 || stems[0] != "index" {
		t.Fatalf("first page is not index: %v", stems)
	}
	want := slices.Clone(stems)
	slices.SortFunc(want, func(a, b string) int {
		if d := pageRank(a) - pageRank(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	if !slices.Equal(stems, want) {
		t.Errorf("order %v, want %v", stems, want)
	}
	for _, stem := range order {
		if stem == "performance" { // written with the benchmarks
			continue
		}
		if _, ok := FindPage(stem); !ok {
			t.Errorf("page %s is missing", stem)
		}
	}
	if _, ok := FindPage("no-such-page"); ok {
		t.Error("Find returned a page that does not exist")
	}
}

func TestPages_HaveOneTitleAndUniqueAnchors(t *testing.T) {
	for _, p := range Pages() {
		titles, seen := 0, map[string]bool{}
		for h := range parseHeadings(p.Source) {
			if h.level == 1 {
				titles++
			}
			a := HeadingAnchor(h.title)
			if a == "" || seen[a] {
				t.Errorf("%s.md: heading %q has an empty or second anchor %q", p.Stem, h.title, a)
			}
			seen[a] = true
		}
		if titles != 1 {
			t.Errorf("%s.md has %d headings of level 1, want 1", p.Stem, titles)
		}
		if !strings.HasPrefix(p.Source, "# "+p.Title) {
			t.Errorf("%s.md does not begin with its title", p.Stem)
		}
		if strings.Count(p.Source, "\n```")%2 != 0 {
			t.Errorf("%s.md: a code block is not closed", p.Stem)
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

func TestPages_InternalLinksLeadSomewhere(t *testing.T) {
	anchors := map[string]map[string]bool{}
	for _, p := range Pages() {
		anchors[p.Stem] = map[string]bool{}
		for h := range parseHeadings(p.Source) {
			anchors[p.Stem][HeadingAnchor(h.title)] = true
		}
	}
	for _, p := range Pages() {
		for _, m := range link.FindAllStringSubmatch(p.Source, -1) {
			u, err := url.Parse(m[1])
			if err != nil {
				t.Errorf("%s.md: link %s: %v", p.Stem, m[1], err)
				continue
			}
			stem, isDoc := strings.CutPrefix(u.Path, "/docs/")
			switch {
			case u.IsAbs() || u.Path != "" && !isDoc:
				continue
			case u.Path == "":
				stem = p.Stem
			}
			if anchors[stem] == nil {
				t.Errorf("%s.md: link %s: no such page", p.Stem, m[1])
			} else if u.Fragment != "" && !anchors[stem][u.Fragment] {
				t.Errorf("%s.md: link %s: no such heading", p.Stem, m[1])
			}
		}
	}
}

func TestSections_HaveTitleTextAndAddress(t *testing.T) {
	all := Sections()
	if len(all) < 60 {
		t.Errorf("only %d sections", len(all))
	}
	for _, s := range all {
		if s.Title == "" || s.Text == "" || s.PageTitle == "" || s.Anchor != HeadingAnchor(s.Title) {
			t.Errorf("incomplete section %+v", s)
		}
		if _, ok := FindPage(s.Page); !ok {
			t.Errorf("section of unknown page %q", s.Page)
		}
	}
	all[0].Title = "changed"
	if Sections()[0].Title == "changed" {
		t.Error("Sections shares its slice with callers")
	}
}

func TestCut_SplitsAtHeadingsOutsideOfCode(t *testing.T) {
	got := cutSections(Page{Stem: "p", Title: "P", Source: "# P\n\nintro\n\n## One `x`?\n\na\n\n```\n# not a heading\n## nor this\n```\n\n### Two\nb\n#### deep\nc\n\n## Empty\n\n## Three\n~~~~\n~~~\n## no\n~~~~\nd"})
	want := []Section{
		{"p", "P", "P", "p", "intro"},
		{"p", "P", "One x?", "one-x", "a\n\n```\n# not a heading\n## nor this\n```"},
		{"p", "P", "Two", "two", "b\n#### deep\nc"},
		{"p", "P", "Three", "three", "~~~~\n~~~\n## no\n~~~~\nd"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestAnchor_IsGitHubs(t *testing.T) {
	for title, want := range map[string]string{
		"How do I stop it?":              "how-do-i-stop-it",
		"Why do I get 421, and what now": "why-do-i-get-421-and-what-now",
		"snake_case & co":                "snake_case--co",
		"The operator's password":        "the-operators-password",
		" OpenAI-compatible (Ollama) ":   "openai-compatible-ollama",
		"Größe":                          "größe",
	} {
		if got := HeadingAnchor(title); got != want {
			t.Errorf("HeadingAnchor(%q) = %q, want %q", title, got, want)
		}
	}
}

func TestQuestions_NameSectionsThatExist(t *testing.T) {
	// questions.tsv was used to choose weights; heldout.tsv was written before any answer to it was seen.
	for _, name := range []string{"testdata/questions.tsv", "testdata/heldout.tsv"} {
		checkQuestions(t, name)
	}
}

func checkQuestions(t *testing.T, name string) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, s := range Sections() {
		have[s.Page+"#"+s.Anchor] = true
	}
	asked := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		f := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(f) != 3 {
			t.Errorf("want question, page, anchors: %q", line)
			continue
		}
		if asked[f[0]] {
			t.Errorf("asked twice: %s", f[0])
		}
		asked[f[0]] = true
		for _, a := range strings.Split(f[2], "|") {
			if !have[f[1]+"#"+a] {
				t.Errorf("%q: no section %s#%s", f[0], f[1], a)
			}
		}
	}
	if len(asked) != 50 {
		t.Errorf("%d questions, want 50", len(asked))
	}
}

func TestAsked_NamesEachSectionOnce(t *testing.T) {
	skip := []string{"performance", "glossary", "house", "changes"} // references that are read, not asked
	known, seen := map[string]bool{}, map[string]string{}
	for _, s := range Sections() {
		address := s.Page + "#" + s.Anchor
		known[address] = true
		list := Asked(s)
		if len(list) < 3 && s.Title != s.PageTitle && !slices.Contains(skip, s.Page) {
			t.Errorf("asked.tsv has %d ways to ask for %s, want 3 or more", len(list), address)
		}
		for _, q := range list {
			if q != strings.ToLower(strings.TrimSpace(q)) || q == "" {
				t.Errorf("%s: %q has capitals or spaces around it", address, q)
			}
			if seen[q] != "" {
				t.Errorf("%q is asked for %s and %s", q, seen[q], address)
			}
			seen[q] = address
		}
	}
	for address := range asked() {
		if !known[address] {
			t.Errorf("asked.tsv names %s, which does not exist", address)
		}
	}
	// A question of a test set among them would make the test worthless.
	for _, name := range []string{"testdata/questions.tsv", "testdata/heldout.tsv"} {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(source)) {
			if q, _, _ := strings.Cut(strings.ToLower(line), "\t"); seen[q] != "" {
				t.Errorf("asked.tsv repeats a question of %s", name)
			}
		}
	}
}

var (
	route       = regexp.MustCompile(`(?m)^  (/[^\s:]*):$`)
	placeholder = regexp.MustCompile(`\{[^}]*\}`)
)

// A route may be short for one on the same page: "/withdraw" or "…/messages/{seq}/again".
func TestAPI_NamesEachRoute(t *testing.T) {
	source, err := os.ReadFile("../handlers/api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	page, _ := FindPage("api")
	text := placeholder.ReplaceAllString(page.Source, "{}")
	text = regexp.MustCompile(`\$\w+`).ReplaceAllString(text, "{}") // a variable in an example
	routes := route.FindAllStringSubmatch(string(source), -1)
	if len(routes) < 100 {
		t.Fatalf("only %d routes", len(routes))
	}
	for _, m := range routes {
		path := placeholder.ReplaceAllString(m[1], "{}")
		tail := path[strings.LastIndex(strings.TrimSuffix(path, "/{}"), "/"):]
		if !strings.Contains(text, path) && !strings.Contains(text, "`"+tail) && !strings.Contains(text, "…"+tail) &&
			!strings.Contains(text, "{}"+tail) && !strings.Contains(text, "/messages"+tail) && !strings.Contains(text, "["+tail) {
			t.Errorf("docs/api.md does not name %s", m[1])
		}
	}
}
