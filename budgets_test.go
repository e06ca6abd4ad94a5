package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// The budgets of product code: the largest sizes that new code may have. Tests, generated code,
// benchmarks and helpers of tests are not product code.
const (
	maxPackageLines   = 4000
	maxTypeMethods    = 60
	maxFunctionLines  = 100
	maxColumns        = 120 // a tab counts as 4
	columnsOfOneTab   = "    "
	perTenThousand    = 10_000
	perThousandWords  = 1000
	smallestPlausible = 300 // number of files below which the search for product code must be broken
)

// shares are limits of figures that must not rise. They are lowered when the code improves.
var shares = map[string]float64{
	"lines over 120 columns, percent":          0.46,
	"callback fields per 10,000 lines":         3.4,
	"return nil, nil per 10,000 lines":         0.18,
	"function names of one word, percent":      26, // the bar is 40; engines have the short names of database packages
	"dialect words per 1,000 words of comment": 1.02,
}

// largePackages, largeTypes and longFunctions are the allowances of code that exceeds its budget: each
// is the size that the code must not exceed. A new allowance needs a reason in its commit. An allowance
// that is no longer needed fails the test.
var (
	largePackages = map[string]int{
		"handlers/api":        4750,
		"internal/chat":       7477, // an account takes the chats of its visitor over
		"internal/federation": 4836, // joins by a bare host, keeps nothing that fails
		"internal/hub":        5918, // order by use, names like built-in agents, reasons of cards, models for a key
		"internal/index/bm25": 4441, // scripts without spaces, words of grammar
	}
	largeTypes = map[string]int{
		"internal/chat.Service":     97, // GuestRooms and TakeOver, which the forms to log in call
		"internal/federation.Peers": 92,
		"internal/hub.Service":      96,
		"store/chats.Chats":         65,
	}
	longFunctions = map[string]int{
		"peering/search/search.go collectAnswers": 114,
	}
)

// dialect is the list of words that replace a noun in comments, so that a comment cannot be understood
// without the code beside it.
var dialect = []string{"what", "who", "whom", "whose", "nobody", "somebody", "everybody", "anybody", "told", "tells", "tell"}

// TestBudgets checks the sizes and shares of product code. Code that exceeds its budget may only become
// smaller.
func TestBudgets(t *testing.T) {
	m, err := measureTree(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	if m.files < smallestPlausible {
		t.Fatalf("only %d product files seen: the walk is broken", m.files)
	}
	t.Logf("%d lines of product code", m.lines)
	for _, problem := range exceeding("lines of package", m.packages, maxPackageLines, largePackages) {
		t.Error(problem)
	}
	for _, problem := range exceeding("methods of type", m.methods, maxTypeMethods, largeTypes) {
		t.Error(problem)
	}
	for _, problem := range exceeding("lines of function", m.functions, maxFunctionLines, longFunctions) {
		t.Error(problem)
	}
	for name, value := range m.shares() {
		limit, ok := shares[name]
		if !ok || value > limit {
			t.Errorf("%s: %.3f, budget %.3f", name, value, limit)
		}
		if value < 0.9*limit {
			t.Logf("%s: %.3f, the budget of %.3f can be lowered", name, value, limit)
		}
	}
}

// exceeding returns a message for each entry of sizes that exceeds the limit and its allowance, and for
// each allowance that is not needed.
func exceeding(unit string, sizes map[string]int, limit int, allowances map[string]int) []string {
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		if size, most := sizes[name], max(limit, allowances[name]); size > most {
			problems = append(problems, fmt.Sprintf("%s %s: %d, budget %d (budgets_test.go)", unit, name, size, most))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(allowances)) {
		if sizes[name] <= limit {
			problems = append(problems, fmt.Sprintf("%s %s: %d is inside the budget, delete its allowance", unit, name, sizes[name]))
		}
	}
	return problems
}

// TestBudgets_Refuses shows that each budget is enforced.
func TestBudgets_Refuses(t *testing.T) {
	sizes := map[string]int{"small": 5, "large": 11, "allowed": 20, "grown": 31}
	got := exceeding("lines of", sizes, 10, map[string]int{"allowed": 20, "grown": 30, "small": 12, "gone": 12})
	want := []string{
		"lines of grown: 31, budget 30 (budgets_test.go)",
		"lines of large: 11, budget 10 (budgets_test.go)",
		"lines of gone: 0 is inside the budget, delete its allowance",
		"lines of small: 5 is inside the budget, delete its allowance",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}

	m := newMeasures()
	err := m.add("some/pkg/file.go", []byte(`// Package pkg is told by nobody.
package pkg

type T struct{ call, again func(); name string }

// Do sees a name.
func (t *T) Do() (*T, error) { return nil, nil }

func loadAll() { // `+strings.Repeat("a", maxColumns)+`
}
`))
	if err != nil {
		t.Fatal(err)
	}
	if m.packages["some/pkg"] != 10 || m.methods["some/pkg.T"] != 1 || m.functions["some/pkg/file.go loadAll"] != 2 {
		t.Errorf("%+v", m)
	}
	for name, want := range map[string]float64{
		"lines over 120 columns, percent":          10,
		"callback fields per 10,000 lines":         2000,
		"return nil, nil per 10,000 lines":         1000,
		"function names of one word, percent":      50,
		"dialect words per 1,000 words of comment": 1000 * 2. / 11,
	} {
		if got := m.shares()[name]; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// measures are the sizes and counts of a source tree, from which the shares are calculated.
type measures struct {
	files, lines, wide, callbacks, nilNil int
	names, short, words, dialect          int

	packages  map[string]int // lines by folder
	methods   map[string]int // number of methods by folder.Type
	functions map[string]int // lines by "file function"; the longest counts when methods of one file share a name
}

func newMeasures() *measures {
	return &measures{packages: make(map[string]int), methods: make(map[string]int), functions: make(map[string]int)}
}

func (m *measures) shares() map[string]float64 {
	share := func(n, of int) float64 { return float64(n) / float64(max(of, 1)) }
	return map[string]float64{
		"lines over 120 columns, percent":          100 * share(m.wide, m.lines),
		"callback fields per 10,000 lines":         perTenThousand * share(m.callbacks, m.lines),
		"return nil, nil per 10,000 lines":         perTenThousand * share(m.nilNil, m.lines),
		"function names of one word, percent":      100 * share(m.short, m.names),
		"dialect words per 1,000 words of comment": perThousandWords * share(m.dialect, m.words),
	}
}

// notProduct are the names of folders without product code. Hidden folders, other modules and folders
// whose names end in test are left out as well.
var notProduct = []string{"testdata", "node_modules", "bench", "testing", "sim", "fixtures", "data"}

func measureTree(root fs.FS) (*measures, error) {
	m := newMeasures()
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name == "." {
				return nil
			}
			_, err := fs.Stat(root, name+"/go.mod")
			if err == nil || slices.Contains(notProduct, d.Name()) || strings.HasPrefix(d.Name(), ".") || strings.HasSuffix(d.Name(), "test") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		src, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		return m.add(name, src)
	})
	return m, err
}

var (
	generatedCode = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	commentWord   = regexp.MustCompile(`[a-z']+`)
)

// add counts one source file. It ignores generated code.
func (m *measures) add(name string, src []byte) error {
	if generatedCode.Match(src) {
		return nil
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	m.files++
	folder := filepath.ToSlash(filepath.Dir(name))
	for line := range bytes.Lines(src) {
		m.lines++
		m.packages[folder]++
		if len(strings.ReplaceAll(strings.TrimRight(string(line), "\n\t "), "\t", columnsOfOneTab)) > maxColumns {
			m.wide++
		}
	}
	for _, group := range f.Comments {
		for _, w := range commentWord.FindAllString(strings.ToLower(group.Text()), -1) {
			m.words++
			if slices.Contains(dialect, w) {
				m.dialect++
			}
		}
	}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			m.addFunction(fset, name, folder, fn)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StructType:
			for _, field := range n.Fields.List {
				if _, ok := field.Type.(*ast.FuncType); ok {
					m.callbacks += max(len(field.Names), 1)
				}
			}
		case *ast.ReturnStmt:
			if len(n.Results) == 2 && isNil(n.Results[0]) && isNil(n.Results[1]) {
				m.nilNil++
			}
		}
		return true
	})
	return nil
}

func (m *measures) addFunction(fset *token.FileSet, file, folder string, fn *ast.FuncDecl) {
	m.names++
	if strings.IndexFunc(fn.Name.Name[1:], unicode.IsUpper) < 0 {
		m.short++
	}
	key := file + " " + fn.Name.Name
	if fn.Recv != nil {
		t := fn.Recv.List[0].Type
		if star, ok := t.(*ast.StarExpr); ok {
			t = star.X
		}
		if id, ok := t.(*ast.Ident); ok {
			m.methods[folder+"."+id.Name]++
		}
	}
	lines := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1
	m.functions[key] = max(m.functions[key], lines)
}

func isNil(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "nil"
}

// TestHouse_NamesEveryPackage requires that docs/house.md has a row for each package and for no other
// folder.
func TestHouse_NamesEveryPackage(t *testing.T) {
	page, err := os.ReadFile("docs/house.md")
	if err != nil {
		t.Fatal(err)
	}
	packages, err := packageFolders(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range comparePackages(string(page), packages) {
		t.Error(problem)
	}
}

// TestHouse_Refuses shows that missing and wrong rows are found.
func TestHouse_Refuses(t *testing.T) {
	got := comparePackages("## Packages\n\n| `a` | x |\n| `a/b` | x |\n\n| `z` | x |\n", []string{"a", "c"})
	want := []string{"docs/house.md: `a/b` is no package", "docs/house.md has no line for package `c`"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

var packageRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")

// comparePackages returns a message for each difference between the table below the heading "Packages"
// of the page and the folders of packages.
func comparePackages(page string, packages []string) []string {
	_, table, _ := strings.Cut(page, "\n## Packages\n")
	if strings.HasPrefix(page, "## Packages\n") {
		table = strings.TrimPrefix(page, "## Packages\n")
	}
	table, _, _ = strings.Cut(strings.TrimLeft(table, "\n"), "\n\n")
	listed := make(map[string]bool)
	var problems []string
	for _, row := range packageRow.FindAllStringSubmatch(table, -1) {
		listed[row[1]] = true
		if !slices.Contains(packages, row[1]) {
			problems = append(problems, "docs/house.md: `"+row[1]+"` is no package")
		}
	}
	for _, p := range packages {
		if !listed[p] {
			problems = append(problems, "docs/house.md has no line for package `"+p+"`")
		}
	}
	return problems
}

// packageFolders returns the folders of this module that have Go files, sorted. The root folder is
// listed as "main.go".
func packageFolders(root fs.FS) ([]string, error) {
	seen := make(map[string]bool)
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name == "." {
				return nil
			}
			_, err := fs.Stat(root, name+"/go.mod")
			if err == nil || strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"testdata", "node_modules", "data"}, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(name, ".go") {
			folder := filepath.ToSlash(filepath.Dir(name))
			if folder == "." {
				folder = "main.go"
			}
			seen[folder] = true
		}
		return nil
	})
	return slices.Sorted(maps.Keys(seen)), err
}

var (
	glossaryRow  = regexp.MustCompile(`(?m)^\| [^|]+ \| [^|]+ \|([^|]*)\|`)
	glossaryType = regexp.MustCompile("`([a-z][a-z0-9]*)\\.([A-Z][A-Za-z0-9]*)`")
)

// TestGlossary_NamesTypesThatExist requires that every type in the column "in the code" of the glossary
// exists.
func TestGlossary_NamesTypesThatExist(t *testing.T) {
	page, err := os.ReadFile("docs/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	declared, err := declaredTypes(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, row := range glossaryRow.FindAllStringSubmatch(string(page), -1) {
		for _, name := range glossaryType.FindAllStringSubmatch(row[1], -1) {
			seen++
			if !declared[name[1]+"."+name[2]] {
				t.Errorf("docs/glossary.md names the type %s.%s, which does not exist", name[1], name[2])
			}
		}
	}
	if seen < 20 {
		t.Errorf("only %d types seen: the table is not read", seen)
	}
}

// declaredTypes returns the types declared in packages of this module, as package.Type.
func declaredTypes(root fs.FS) (map[string]bool, error) {
	declared := make(map[string]bool)
	folders, err := packageFolders(root)
	if err != nil {
		return nil, err
	}
	for _, folder := range folders {
		files, err := fs.Glob(root, folder+"/*.go")
		if err != nil {
			return nil, err
		}
		for _, name := range files {
			src, err := fs.ReadFile(root, name)
			if err != nil {
				return nil, err
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, src, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			for _, d := range f.Decls {
				g, ok := d.(*ast.GenDecl)
				if !ok {
					continue
				}
				for _, s := range g.Specs {
					if ts, ok := s.(*ast.TypeSpec); ok {
						declared[f.Name.Name+"."+ts.Name.Name] = true
					}
				}
			}
		}
	}
	return declared, nil
}
