package markup

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"agentsite/internal/testing/racetest"
)

// letters stand for the classes in testdata/colours, where coloured code is
// written as k‹return› 1‹42›.
var letters = map[string]string{hlKeyword: "k", hlString: "s", hlNumber: "1", hlComment: "c", hlName: "n"}

var marks = regexp.MustCompile(`[ks1cn]‹|›`)

// written is code in spans as testdata has it. Blanks, which nobody sees the
// colour of, stand outside.
func written(list []span) string {
	var b strings.Builder
	for _, s := range list {
		text := strings.TrimRight(s.text, " \t\n")
		if s.class == "" || text == "" {
			b.WriteString(s.text)
			continue
		}
		b.WriteString(letters[s.class] + "‹" + text + "›" + s.text[len(text):])
	}
	return b.String()
}

func TestHighlight_ColoursEveryLanguage(t *testing.T) {
	for _, g := range grammars {
		lang, _, _ := strings.Cut(g.names, " ")
		t.Run(lang, func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join("testdata", "colours", lang+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			want := string(b)
			code := marks.ReplaceAllString(want, "")
			if got := written(languages()[lang].highlight(code, math.MaxInt)); got != want {
				t.Error(cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")))
			}
		})
	}
}

func TestHighlight_NamesEachLanguageOnce(t *testing.T) {
	seen := map[string]string{}
	for _, g := range grammars {
		for _, name := range strings.Fields(g.names) {
			if other, twice := seen[name]; twice || !languageName.MatchString(name) || name != strings.ToLower(name) {
				t.Errorf("%q is in %q and in %q, or is none that a fence may have", name, other, g.names)
			}
			seen[name] = g.names
		}
		for w := range languages()[strings.Fields(g.names)[0]].words {
			if len(w) > maxWord {
				t.Errorf("%s: %q is longer than maxWord", g.names, w)
			}
		}
	}
}

// What people write wrong, or cut short, must not colour what comes after.
func TestHighlight_WhatIsNotClosedEndsSoon(t *testing.T) {
	for _, c := range []struct{ lang, want string }{
		{"go", "x := \"abc\nk‹return› 1‹1›"},
		{"go", "it's\nk‹return›"},
		{"python", "n‹f›('a\nk‹return›"},
		{"python", "x = s‹f'›{a['b\nk‹return›"},
		{"js", "`a ${b\nk‹return›"},
		{"js", "k‹return› /a[/\nk‹return›"},
		{"kotlin", "s‹\"a› ${x \"\nk‹return›"},
		{"kotlin", "s‹\"a› ${x \"\n{ y } } k‹return›"},
		{"bash", "n‹echo› it's\nk‹return›"},
		{"sql", "k‹select› o'brien\nk‹from› x"},
		{"rust", "'\nk‹return›"},
		{"perl", "n‹$a› / 1‹2›; k‹my› n‹$b›;"},
		{"ruby", "x / y /\nk‹return›"},
		{"css", "k‹a› { n‹content›: \"x;\n n‹color›: red }"},
		{"yaml", "n‹a›: 'x\nn‹b›: 1‹2›"},
		{"html", "k‹<a› n‹b›=\"n‹x›\nk‹<i›"},
		{"html", "k‹<script› n‹x› k‹>let› a = 1‹1›"},
	} {
		code := marks.ReplaceAllString(c.want, "")
		if got := written(languages()[c.lang].highlight(code, math.MaxInt)); got != c.want {
			t.Errorf("%s: %q is coloured as\n%s\nwant\n%s", c.lang, code, got, c.want)
		}
	}
}

// pieces are what scanners of a language stop at.
func pieces(g *grammar) []string {
	list := strings.Fields(g.lines + " " + g.blocks + " " + g.keys)
	for _, q := range g.quotes {
		list = append(list, q.open, q.close+" ", `\`+q.open, q.open+"\n")
		for _, in := range strings.Fields(q.into) {
			list = append(list, in, q.open+in, q.open+`\`+q.open+in, q.open+in+`\`)
		}
	}
	for _, c := range g.sigils {
		list = append(list, string(c), string(c)+"{a", string(c)+"(")
	}
	for _, p := range strings.Fields(g.prefixes) {
		list = append(list, p+`"`, p+`"(`, p+"#", p+"'")
	}
	return append(list, "a", "a ", " ", "\n", "\t", "1", "1.", ".", "{", "}", "(", ")", "[", "]", "#", "#[", "#{", "<", "</", "<a ", "<a b=", "<?", "?>", "<script>", "<!", "&", "&a", ":", ": ", "- ", "| ", "|: ", "%w(", "~r/", "s/", "s{", "q(", "m/\\", "m\\ ", "y(a)", "/[", "/a", "= /",
		"'\\", "é", "\xff", "\x00", "a: |\n ", "@", "--- ", "\\", "\\begin{", "R\"x(", ";", "!", "a{", "a(;")
}

// TestHighlight_TakesStepsInProportion has texts that a scanner which goes back,
// or looks ahead again and again, would look at hundreds of times.
func TestHighlight_TakesStepsInProportion(t *testing.T) {
	racetest.Skip(t)
	const most = 8 // looks at each byte
	worst := 0
	for i := range grammars {
		g := &grammars[i]
		l := languages()[strings.Fields(g.names)[0]]
		list := pieces(g)
		slices.Sort(list)
		for _, p := range slices.Compact(list) {
			paint := &painter{code: strings.Repeat(p, 3<<10/len(p)) + "\n" + strings.Repeat(" ", 1<<10), most: math.MaxInt}
			l.paintCode(paint)
			worst = max(worst, paint.steps/len(paint.code))
			if paint.steps > most*len(paint.code) {
				t.Errorf("%s: %q repeated takes %d steps for %d bytes", g.names, p, paint.steps, len(paint.code))
			}
		}
	}
	t.Logf("at most %d looks at each byte", worst)
}

// whole fails unless the spans are the code and of known classes.
func whole(t *testing.T, lang, code string) {
	t.Helper()
	var b strings.Builder
	for _, s := range languages()[lang].highlight(code, math.MaxInt) {
		if _, known := letters[s.class]; s.text == "" || s.class != "" && !known {
			t.Errorf("%s: %q has the span %q", lang, code, s)
		}
		if utf8.ValidString(code) && !utf8.ValidString(s.text) {
			t.Errorf("%s: %q is cut within a letter: %q", lang, code, s.text)
		}
		b.WriteString(s.text)
	}
	if b.String() != code {
		t.Errorf("%s: %q became %q", lang, code, b.String())
	}
}

func TestHighlight_IsTheCode(t *testing.T) {
	for _, g := range grammars {
		lang, _, _ := strings.Cut(g.names, " ")
		list := pieces(&g)
		for i, a := range list {
			whole(t, lang, a)
			for _, b := range list[i:] {
				whole(t, lang, a+b+a)
			}
		}
	}
}

func FuzzHighlight(f *testing.F) {
	for i := range grammars {
		lang, _, _ := strings.Cut(grammars[i].names, " ")
		b, err := os.ReadFile(filepath.Join("testdata", "colours", lang+".txt"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), marks.ReplaceAllString(string(b), ""))
		f.Add(uint8(i), strings.Join(pieces(&grammars[i]), ""))
	}
	f.Fuzz(func(t *testing.T, i uint8, code string) {
		lang, _, _ := strings.Cut(grammars[int(i)%len(grammars)].names, " ")
		whole(t, lang, code)
	})
}

func BenchmarkHighlight(b *testing.B) {
	for _, lang := range []string{"go", "python", "javascript", "bash", "yaml", "html", "css", "sql", "json", "diff"} {
		text, err := os.ReadFile(filepath.Join("testdata", "colours", lang+".txt"))
		if err != nil {
			b.Fatal(err)
		}
		code := marks.ReplaceAllString(string(text), "")
		code = strings.Repeat(code, maxSource/len(code))
		l := languages()[lang]
		b.Run(lang, func(b *testing.B) {
			b.SetBytes(int64(len(code)))
			b.ReportAllocs()
			for b.Loop() {
				l.highlight(code, math.MaxInt)
			}
		})
	}
}
