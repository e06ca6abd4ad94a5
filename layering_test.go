package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "agentsite"

// leaves import nothing of ours, except that egress may use fault.
var leaves = []string{"internal/ident", "internal/fault", "internal/clock", "internal/limit", "internal/meter", "internal/egress", "internal/picture", "internal/strictjson", "internal/plain", "internal/order", "migrations", "static", "docs"}

// inner is everything in internal/ that adapters may use.
var inner = []string{"internal/ident", "internal/ident/httpsig", "internal/fault", "internal/clock", "internal/limit", "internal/meter", "internal/egress", "internal/picture", "internal/strictjson", "internal/plain", "internal/order", "internal/account", "internal/hub",
	"internal/chat", "internal/task", "internal/a2a", "internal/openai", "internal/linkwire", "internal/schema", "internal/index", "internal/index/bm25", "internal/notify", "internal/record", "internal/federation"}

// may is the import table: what each package may import of ours. A package
// without a row has the row of the nearest folder above it that has one, and
// may import that folder's other packages, never the folder's own.
//
// limit and openai joined the leaves: both are vocabulary without a service.
// The adapters' rule, never each other, follows from their rows.
var may = map[string][]string{
	"internal/fault": {},
	"internal/clock": {},
	"internal/ident": {},
	// Signed requests, of drivers and peers, know no ids or actors.
	"internal/ident/httpsig": {},
	"internal/limit":         {},
	// What is counted for scrapers: everybody may count.
	"internal/meter":   {},
	"internal/egress":  {"internal/fault"},
	"internal/picture": {},
	// What every decoder of outside JSON asks first.
	"internal/strictjson": {},
	// What every door shows of a stranger's text.
	"internal/plain": {},
	"internal/raced": {},
	// Sorting that all may do, once in the binary.
	"internal/order":   {},
	"migrations":       {},
	"static":           {},
	"docs":             {},
	"internal/account": leaves,
	"internal/record":  leaves,
	// Tests of others sign records too.
	"internal/record/recordtest": with(leaves, "internal/record"),
	// A search says how much of the network it looked through.
	"internal/hub": with(leaves, "internal/federation"),
	// Who asks is told by a signature.
	"internal/federation": with(leaves, "internal/record", "internal/ident/httpsig"),
	// Tests of others need portals that are known, too.
	"internal/federation/federationtest": with(leaves, "internal/record", "internal/record/recordtest", "internal/federation"),
	// It looks at what the services know, and is one of none.
	"internal/doctor": with(leaves, "internal/hub", "internal/record", "internal/federation"),
	"internal/task":   leaves,
	"internal/chat":   with(leaves, "internal/task"),
	"internal/openai": leaves,
	// What the link door, its driver and the command line say to each other.
	"internal/linkwire": leaves,
	// JSON Schema as forms and checks need it.
	"internal/schema": leaves,
	"internal/a2a":    with(leaves, "internal/task", "internal/hub"),
	"internal/index":  with(leaves, "internal/hub"),
	// What is told outside; services do not know it.
	"internal/notify": with(leaves, "internal/account", "internal/hub", "internal/chat", "internal/task"),
	// The words index knows nothing of agents.
	"internal/index/bm25": {},
	"templates":           {"static"},
	"store":               with(inner, "migrations"),
	// Test helpers open what they help to test.
	"store/storetest": with(inner, "store"),
	"agentruntime":    inner,
	"peering":         inner,
	// serf is for it alone, and it knows no services.
	"peering/gossip": with(leaves, "internal/record", "internal/record/recordtest"),
	// Operators ask in the browser what doctor would say.
	"handlers":     with(inner, "internal/doctor", "templates", "static", "docs"),
	"web":          with(leaves, "handlers"),
	"internal/app": {"*"},
	// The demo builds portals with app, so app cannot have it.
	// What goes wrong in it, a portal that lies, is signed by hand.
	"internal/app/demo": with(leaves, "internal/app", "internal/federation", "internal/record"),
	"internal/cli":      with(leaves, "internal/app", "internal/app/demo", "internal/linkwire"),
	"bench":             {"*"},
	".":                 {"internal/cli"},
}

func with(list []string, more ...string) []string { return append(slices.Clone(list), more...) }

// allowed reports whether the package at from may import the one at to.
func allowed(from, to string) bool {
	row, at := []string(nil), from
	for {
		r, ok := may[at]
		if ok {
			row = r
			break
		}
		if at == "." {
			return false
		}
		at = path.Dir(at)
	}
	if slices.Contains(row, "*") || slices.Contains(row, to) {
		return true
	}
	// Inside one adapter: the adapter uses its subpackages, and they each
	// other, but never the adapter.
	root, _, _ := strings.Cut(at, "/")
	if strings.HasPrefix(at, "internal/") {
		root = at
	}
	return to != root && strings.HasPrefix(to, root+"/")
}

// TestLayering reads every source file itself: asking `go list` would hide its
// reads from the test cache.
func TestLayering(t *testing.T) {
	docs := make(map[string]bool)
	var packages []string
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules" || d.Name() == "data") {
				return filepath.SkipDir
			}
			if name != "." {
				if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil {
					return filepath.SkipDir // a module of its own
				}
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(name))
		test := strings.HasSuffix(name, "_test.go")
		if !test {
			if _, seen := docs[dir]; !seen {
				packages = append(packages, dir)
			}
			docs[dir] = docs[dir] || documented(f)
		}
		for _, imp := range f.Imports {
			p, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				return err
			}
			to, ours := strings.CutPrefix(p, module+"/")
			if !ours {
				continue
			}
			// Tests may look at what they check from outside, the product
			// may not; an import that would be a cycle does not compile.
			if !test && !allowed(dir, to) {
				t.Errorf("%s imports %s: not in the import table (layering_test.go)", name, to)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packages {
		if !docs[p] {
			t.Errorf("package %s has no package comment", p)
		}
	}
	if len(packages) < 20 {
		t.Errorf("only %d packages seen: the walk is broken", len(packages))
	}
}

func documented(f *ast.File) bool {
	return f.Doc != nil && len(strings.TrimSpace(f.Doc.Text())) > 0
}

// TestLayering_Refuses shows that the table can say no.
func TestLayering_Refuses(t *testing.T) {
	for _, c := range []struct {
		from, to string
		want     bool
	}{
		{"store", "handlers", false},
		{"handlers", "store", false},
		{"agentruntime/remote", "agentruntime", false},
		{"agentruntime", "agentruntime/remote", true},
		{"agentruntime/remote", "agentruntime/model", true},
		{"handlers/markup", "docs", true},
		{"internal/hub", "internal/chat", false},
		{"internal/chat", "internal/task", true},
		{"templates", "internal/hub", false},
		{"internal/index/bm25", "internal/hub", false},
		{"internal/cli", "store", false},
	} {
		if got := allowed(c.from, c.to); got != c.want {
			t.Errorf("allowed(%s, %s) = %v, want %v", c.from, c.to, got, c.want)
		}
	}
}
