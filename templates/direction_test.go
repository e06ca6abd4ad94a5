package templates

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	fieldTag  = regexp.MustCompile(`<(?:textarea|input)\b`)
	fieldType = regexp.MustCompile(`\btype="([a-z-]+)"`)
)

// tagAt returns the tag that begins at an index of source, without its brackets: it ends at the first bracket outside of
// quotes and braces.
func tagAt(source string, at int) string {
	quoted, depth := false, 0
	for i := at; i < len(source); i++ {
		switch c := source[i]; {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			depth--
		case c == '>' && depth == 0:
			return source[at+1 : i]
		}
	}
	return source[at+1:]
}

// Each field in which people write text takes the direction of what is written. Addresses, secrets and numbers, which
// have types of their own, stay left to right.
func TestFields_TakeTheDirectionOfTheirText(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.templ")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	fields := 0
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range fieldTag.FindAllIndex(b, -1) {
			tag := tagAt(string(b), at[0])
			kind := "text"
			if m := fieldType.FindStringSubmatch(tag); m != nil {
				kind = m[1]
			}
			if kind != "text" && kind != "search" || strings.Contains(tag, "readonly") {
				continue
			}
			fields++
			if !strings.Contains(tag, `dir="`) && !strings.Contains(tag, "f.elementAttrs()...") {
				t.Errorf("%s has a field without dir: <%.200s>", file, tag)
			}
		}
	}
	if fields < 20 {
		t.Errorf("only %d fields were found", fields)
	}
	var f input
	if f.elementAttrs()["dir"] != "auto" {
		t.Errorf("fields of forms have the direction %v", f.elementAttrs()["dir"])
	}
}

// shownText is an expression of a template whose value stands in the text of a page.
type shownText struct {
	expression string
	line       int
	around     []string // the tags around it, the outermost first
}

var (
	tagName   = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9-]*`)
	textShown = regexp.MustCompile("^\\{ ((?:[^\"`\n{}]|\"(?:[^\"\n]|\\\\\")*\"|`[^`\n]*`)+) \\}")
	statement = regexp.MustCompile(`^\s*(?:if|for|switch|case|\} else|@|\w+ :?=|var|return|\{? ?[a-z]\w* := ) ?`)
)

// textsOf returns the expressions in the text of the components of a template.
func textsOf(source string) []shownText {
	var out []shownText
	var around []string
	for i := 0; i < len(source); i++ {
		rest := source[i:]
		switch {
		case strings.HasPrefix(rest, "\ntempl "):
			around = nil
		case strings.HasPrefix(rest, "</"):
			name := tagName.FindString(rest[2:])
			for j := len(around) - 1; j >= 0; j-- {
				if tagName.FindString(around[j]) == name {
					around = around[:j]
					break
				}
			}
		case rest[0] == '<' && tagName.MatchString(rest[1:]):
			tag := tagAt(source, i)
			switch i += len(tag); tagName.FindString(tag) {
			case "input", "br", "img", "hr", "meta", "link", "wbr":
			default:
				if !strings.HasSuffix(tag, "/") {
					around = append(around[:len(around):len(around)], tag)
				}
			}
		case rest[0] == '{':
			m := textShown.FindStringSubmatch(rest)
			begin := strings.LastIndexByte(source[:i], '\n') + 1
			if m != nil && len(around) > 0 && !statement.MatchString(source[begin:i+2]) {
				out = append(out, shownText{m[1], strings.Count(source[:i], "\n") + 1, around})
				i += len(m[0]) - 1
			}
		}
	}
	return out
}

// personal matches expressions with text that people and agents write. Of words that can be the portal's own as well,
// ownWords has the latter.
var personal = regexp.MustCompile(`\b[a-z]\w*(?:\.[A-Z]\w*)*\.(?:Title|DisplayName|Name|Text|Tagline|Bio|` +
	`Description|Note|Question|Quote|From|Inviter|Owner|Portal|Claim|Status|Reply|Topic|Instructions|Example|Thoughts|` +
	`Query|Publisher|Author|Path)\b`)

var ownWords = map[string]string{
	"admin_overview.templ p.Title":   "a field of an overview",
	"admin_peers.templ a.Text":       "an alarm in the portal's words",
	"agent_owner.templ v.Proof.Text": "a state of a proof",
	"agents.templ f.Name":            "the name of a filter",
	"components.templ t.Text":        "a time",
	"conversation_list.templ g.Name": "a day",
	"docs.templ v.Title":             "a page of the manual",
	"docs.templ h.Text":              "a heading of the manual",
	"goals.templ m.Text":             "how much of a limit is used",
	"storage.templ u.Name":           "a kind of files",
	"storage.templ k.Title":          "a kind of files",
	"usage.templ v.Title":            "the title of a chart",
	"usage.templ p.Text":             "an amount",
	"versions.templ l.Text":          "how many lines are left out",
	"health.templ b.Title":           "a time and a state",

	"error.templ firstOf(v.Title, errorTitle(v.Status))":    "a sentence of the portal",
	"error.templ firstOf(v.Message, errorAdvice(v.Status))": "a sentence of the portal",
}

// isolating matches the tags whose text takes its own direction, or stands from left to right because it is code, a
// time or an address.
var isolating = regexp.MustCompile(`^(?:bdi|pre|code|kbd|time)\b|\bdir="|class="[^"]*` +
	`\b(?:streamed|form-text|report-text|mono|handle|visually-hidden)\b|class=\{ "mono`)

// Each text of people and agents on a page takes its direction from its own letters, and has no effect on the words
// around it. Titles of documents cannot be divided.
func TestTexts_TakeTheirOwnDirection(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.templ")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	texts, used := 0, map[string]bool{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range textsOf(string(b)) {
			if !personal.MatchString(s.expression) || strings.HasPrefix(s.expression, "isolated(") ||
				strings.HasPrefix(s.expression, "number(") || strings.HasPrefix(s.expression, "strconv.") ||
				tagName.FindString(s.around[len(s.around)-1]) == "title" && !strings.Contains(strings.Join(s.around, " "), "svg") {
				continue
			}
			texts++
			key := file + " " + s.expression
			if _, own := ownWords[key]; own {
				used[key] = true
				continue
			}
			if !slices.ContainsFunc(s.around, isolating.MatchString) {
				t.Errorf("%s:%d: { %s } does not take its own direction, in <%s>", file, s.line, s.expression,
					strings.Join(s.around, "> <"))
			}
		}
	}
	if texts < 150 {
		t.Errorf("only %d texts of people and agents were found", texts)
	}
	for key := range ownWords {
		if !used[key] {
			t.Errorf("%s is not on a page", key)
		}
	}
}

// The choices of a list cannot hold an element, so that each takes its direction itself. Where a script puts a text
// into an element, an element inside of it would be lost with its direction.
func TestTexts_KeepTheirDirectionInListsAndScripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.templ")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	scripts, err := filepath.Glob("../static/js/*.js")
	if err != nil || len(scripts) == 0 {
		t.Fatal(scripts, err)
	}
	filled := map[string]bool{} // names of data attributes whose elements get another text
	for _, script := range scripts {
		b, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range filledElement.FindAllStringSubmatch(string(b), -1) {
			filled[m[1]+m[2]] = true
		}
	}
	options, holders := 0, 0
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range shownOption.FindAllString(string(b), -1) {
			options++
			if !strings.Contains(m, `dir="auto"`) {
				t.Errorf("%s: %s has no direction", file, m)
			}
		}
		for _, m := range heldIsolate.FindAllStringSubmatch(string(b), -1) {
			holders++
			if filled[m[1]] {
				t.Errorf("%s: a script puts its text in the place of the element in %s", file, m[0])
			}
		}
	}
	if options < 10 || holders == 0 || !filled["mode-quote"] || !filled["name"] {
		t.Errorf("%d options, %d holders, filled: %v", options, holders, filled)
	}
}

var (
	filledElement = regexp.MustCompile(`(?:querySelector\("\[data-([a-z-]+)\]"\)|\$\("([a-z-]+)"\))\.textContent = `)
	shownOption   = regexp.MustCompile(`<option [^\n]*\{[^\n]*\}</option>`)
	heldIsolate   = regexp.MustCompile(` data-([a-z-]+)><bdi>`)
)
