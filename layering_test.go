package main

import (
	"fmt"
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

// leaves are small packages that most others may import. They import no package of this module, except
// that egress imports fault.
var leaves = []string{"internal/ident", "internal/fault", "internal/clock", "internal/limit", "internal/meter", "internal/egress", "internal/picture", "internal/agentkind", "internal/plaintext", "internal/lookalike", "internal/wordsplit", "internal/meaning",
	"internal/weborigin", "internal/strictjson", "internal/lenientjson", "internal/reason", "internal/textfile", "internal/quota", "internal/adjust", "internal/diskuse", "internal/team/handover", "internal/team/aware", "migrations", "static", "docs"}

// inner are the packages in internal that adapters (store, handlers, agentruntime, peering) may import.
var inner = []string{"internal/ident", "internal/ident/httpsig", "internal/fault", "internal/clock", "internal/limit", "internal/meter", "internal/egress", "internal/picture", "internal/agentkind", "internal/plaintext", "internal/wordsplit", "internal/meaning",
	"internal/weborigin", "internal/strictjson", "internal/lenientjson", "internal/reason", "internal/textfile", "internal/quota", "internal/adjust", "internal/diskuse", "internal/scheduler", "internal/account", "internal/hub",
	"internal/chat", "internal/task", "internal/grant", "internal/usage", "internal/models", "internal/halt", "internal/hosting", "internal/memory", "internal/library", "internal/packages", "internal/profile", "internal/team", "internal/team/flow", "internal/team/handover", "internal/team/aware", "internal/personal", "internal/a2a", "internal/agentname", "internal/openai", "internal/linkwire", "internal/schema", "internal/index", "internal/index/bm25", "internal/notify", "internal/webpush", "internal/record", "internal/federation"}

// may is the import table: the packages of this module that each package may import. A package without
// a row has the row of the nearest folder above it that has one. It may also import the other packages
// below that folder, but not the package of the folder itself.
//
// An adapter must not import another adapter, which follows from the rows. limit and openai are among
// the packages for all adapters because they define types and contain no service.
var may = map[string][]string{
	"internal/fault": {},
	"internal/clock": {},
	"internal/ident": {"internal/weborigin"},
	// Drivers and peers both sign requests, so the package must not depend on ids or actors.
	"internal/ident/httpsig": {},
	"internal/limit":         {},
	// Every package may count events for metrics.
	"internal/meter":     {},
	"internal/egress":    {"internal/fault", "internal/weborigin"},
	"internal/picture":   {},
	"internal/plaintext": {},
	// Names are compared as texts; the callers know of which agents and people.
	"internal/lookalike": {"internal/fault"},
	// The counts come from a store and go to an index; neither is known here.
	"internal/popularity": {"internal/clock"},
	"internal/profile":    leaves,
	// The counts come from a store and go to pages; neither is known here.
	"internal/figures": {"internal/clock", "internal/diskuse", "internal/fault", "internal/ident"},
	// Searches of agents and of messages divide words alike, on both engines.
	"internal/wordsplit": {},
	// Vectors of texts know nothing of what the texts are about: agents, pages of the manual, queries.
	"internal/meaning": {},
	// The table of agent kinds must not depend on the drivers, which all read it.
	"internal/agentkind": {},
	"internal/weborigin": {},
	// The scheduler decides by names alone. Its runtime and the pages of operators know the rest.
	"internal/scheduler": {},
	// Every decoder of JSON from outside uses strictjson first.
	"internal/strictjson": {},
	// Every decoder of answers of other servers uses lenientjson.
	"internal/lenientjson": {},
	// Clients of models, A2A and MCP agents find the reason in errors of other servers alike.
	"internal/reason": {"internal/lenientjson"},
	// Drivers and the command line read text files of any encoding.
	"internal/textfile": {},
	// The chain of hashes knows no messages, only their fields.
	"internal/transcript": {},
	"migrations":          {},
	"static":              {},
	"docs":                {},
	"internal/account":    leaves,
	"internal/record":     leaves,
	// canonical encodes bytes and does not depend on the types of records.
	"internal/record/canonical": {},
	// A search reports how much of the network it has covered, in terms of federation.
	"internal/hub": with(leaves, "internal/agentname", "internal/federation", "internal/grant"),
	// Portals prove their identity by signed requests.
	"internal/federation": with(leaves, "internal/record", "internal/ident/httpsig"),
	// guard verifies requests by the cards and decisions that federation stores.
	"internal/federation/guard": with(leaves, "internal/record", "internal/ident/httpsig", "internal/federation"),
	// livereport uses one report per site, and federation knows the site of a portal.
	"internal/federation/livereport": with(leaves, "internal/record", "internal/federation"),
	// archive decides which records other portals may read.
	"internal/federation/archive": with(leaves, "internal/record", "internal/federation"),
	// An MCP server with an address is an agent of the directory.
	"internal/registry": with(leaves, "internal/hub"),
	// liveness reads agents and their owners from the directory.
	"internal/liveness": with(leaves, "internal/hub"),
	// doctor reads the results of all services, but is part of none.
	"internal/doctor": with(leaves, "internal/hub", "internal/record", "internal/federation"),
	// attention asks the services which of their matters wait for the operator.
	"internal/attention": with(leaves, "internal/account", "internal/doctor", "internal/federation", "internal/figures",
		"internal/hub", "internal/scheduler"),
	"handlers/api/operator": with(leaves, "handlers/request", "handlers/respond", "internal/attention",
		"internal/figures"),
	"handlers/api/profiles": with(leaves, "handlers/request", "handlers/respond", "internal/profile"),
	"internal/task":         leaves,
	"internal/chat":         with(leaves, "internal/task"),
	// A grant is about an agent's id and facts, whatever the directory knows of it.
	"internal/grant": leaves,
	// usage counts calls by ids and names, whatever the directory knows of agents.
	"handlers/api/spending": with(leaves, "handlers/request", "handlers/respond", "internal/models", "internal/usage"),
	"internal/usage":        leaves,
	// personal writes archives of the records and files that the stores hold about an account.
	"internal/personal": leaves,
	"handlers/personal": with(leaves, "handlers/pages", "handlers/request", "handlers/respond", "internal/personal", "templates"),
	"internal/halt":     with(leaves, "internal/hub"),
	"internal/models":   with(leaves, "internal/usage"),
	// The machine of teams is pure, and so are the rules that decide without a model.
	"internal/team/flow":     {},
	"internal/team/rules":    {"internal/team/flow"},
	"internal/team/handover": {},
	"internal/team/aware":    {},
	"internal/team": with(leaves, "internal/chat", "internal/hub", "internal/task", "internal/team/flow",
		"internal/team/aware", "internal/team/handover", "internal/team/rules"),
	"handlers/api/goals": with(leaves, "handlers/api/spending", "handlers/request", "handlers/respond", "internal/team",
		"internal/team/flow"),
	"internal/openai": leaves,
	// linkwire defines the messages between the link protocol's handler, its driver and the command
	// line.
	"internal/linkwire": leaves,
	// schema reads JSON Schema for forms and validation.
	"internal/schema":    leaves,
	"internal/a2a":       with(leaves, "internal/agentname", "internal/task", "internal/hub"),
	"internal/agentname": {"internal/ident"},
	"internal/index":     with(leaves, "internal/hub"),
	// embedding searches the index by vectors of a server.
	"internal/embedding": with(leaves, "internal/hub", "internal/index"),
	// webpush sends notices to browsers. It is like notify: the services do not depend on it.
	"internal/webpush": with(leaves, "internal/hub"),
	// notify sends notifications to other servers. The services do not depend on it.
	"internal/notify": with(leaves, "internal/account", "internal/hub", "internal/chat", "internal/task"),
	// bm25 is an index of words and does not depend on agents.
	"internal/index/bm25": {"internal/wordsplit"},
	"templates":           {"static"},
	"store":               with(inner, "migrations", "internal/transcript", "internal/federation/guard", "internal/registry"),
	// quota decides by counters and bounds, for the stores and for pages.
	"internal/quota": {"internal/fault"},
	// space watches the disk for the database and its stores.
	"store/space": {"internal/fault"},
	// quotas checks writes of all stores.
	"store/quotas": {"internal/clock", "internal/fault", "internal/ident", "internal/quota"},
	// engine is the port between stores and database.
	"store/engine": {"internal/fault", "store/space"},
	// sqlite manages files and transactions and does not depend on the contents of tables.
	"store/sqlite":   {"internal/fault", "migrations", "store/space"},
	"store/postgres": {"internal/fault", "migrations"},
	// transfer copies the rows of all stores between engines, by the schema.
	"store/transfer": {"internal/clock"},
	// replica stores the records of all portals and does not depend on agents of the directory.
	"store/replica": {"internal/clock", "internal/fault", "internal/federation", "internal/record", "migrations"},
	// rows stores reserved names and the log of decisions, which several stores need.
	"store/rows":     {"internal/clock", "internal/fault", "internal/ident"},
	"store/accounts": {"internal/account", "internal/clock", "internal/fault", "internal/ident"},
	"store/hooks":    {"internal/webpush", "internal/chat", "internal/clock", "internal/fault", "internal/hub", "internal/ident", "internal/notify", "internal/task"},
	// figures counts the failed tasks that agents reports.
	"store/figures": {"internal/figures"},
	"store/agents":  {"store/figures", "internal/clock", "internal/fault", "internal/hub", "internal/ident", "internal/notify", "internal/registry", "internal/task"},
	"store/usages":  {"internal/usage"},
	// personal knows which columns of all stores are personal.
	"store/personal": {"internal/personal"},
	// adjust names the setting and the operator that changes it.
	"internal/adjust":        {"internal/fault", "internal/ident"},
	"store/adjusted":         {"internal/adjust", "internal/clock", "internal/ident", "store/rows"},
	"store/halts":            {"internal/clock", "internal/halt", "internal/ident", "store/rows"},
	"store/teams":            {"internal/clock", "internal/fault", "internal/team", "internal/team/flow"},
	"store/models":           {"internal/clock", "internal/fault", "internal/models", "internal/usage"},
	"store/grants":           {"internal/clock", "internal/fault", "internal/grant"},
	"store/tasks":            {"internal/chat", "internal/clock", "internal/fault", "internal/notify", "internal/task"},
	"store/chats":            {"internal/chat", "internal/clock", "internal/fault", "internal/ident", "internal/task", "internal/transcript", "internal/wordsplit"},
	"store/erasure":          {"internal/fault", "internal/ident", "store/transcripts"},
	"store/transcripts":      {"internal/ident", "internal/transcript", "store/rows"},
	"agentruntime":           with(inner, "internal/liveness"),
	"agentruntime/assistant": with(leaves, "internal/grant", "internal/hub", "internal/task"),
	"agentruntime/detect":    with(leaves, "internal/a2a", "internal/hub", "internal/offer", "internal/task"),
	// The reader of addresses and the form share what was found elsewhere on a host.
	"internal/offer":      {"internal/agentkind", "internal/fault"},
	"agentruntime/remote": with(inner, "internal/liveness", "internal/federation/guard"),
	"peering":             with(inner, "internal/federation/archive", "internal/federation/guard", "internal/federation/livereport"),
	"peering/replication": with(leaves, "internal/record", "internal/federation", "internal/federation/archive"),
	"peering/answer":      with(leaves, "internal/hub", "internal/record", "internal/federation", "internal/federation/archive"),
	"peering/search":      with(leaves, "internal/hub", "internal/index/bm25", "internal/record", "internal/federation", "internal/federation/archive"),
	"peering/catalog":     with(leaves, "internal/hub", "internal/record", "internal/federation", "internal/federation/livereport"),
	"peering/live":        with(inner, "internal/federation/livereport"),
	"peering/client":      with(leaves, "internal/ident/httpsig", "internal/record", "internal/federation", "internal/federation/guard"),
	"peering/publish":     with(leaves, "internal/hub", "internal/index", "internal/record", "internal/federation"),
	// Only gossip uses the serf library, and it depends on no service.
	"peering/gossip": with(leaves, "internal/record"),
	// Operators see the results of doctor on a page.
	"handlers":               with(inner, "internal/attention", "internal/doctor", "internal/figures", "templates", "static", "docs", "internal/registry"),
	"handlers/peer":          with(inner, "internal/federation/archive", "internal/federation/guard"),
	"handlers/address":       with(leaves, "internal/chat", "internal/hub", "internal/federation"),
	"handlers/request":       with(leaves, "internal/account", "internal/chat", "internal/task"),
	"handlers/respond":       with(leaves, "internal/chat", "internal/task"),
	"handlers/search":        with(leaves, "internal/hub", "internal/federation", "templates"),
	"handlers/files":         with(leaves, "internal/chat"),
	"handlers/edits":         with(leaves, "handlers/request", "handlers/respond", "internal/chat", "internal/task"),
	"handlers/live":          with(leaves, "internal/account", "internal/chat", "templates"),
	"handlers/pages":         with(leaves, "internal/account", "internal/hub", "internal/profile", "templates"),
	"handlers/pages/account": with(leaves, "internal/account", "internal/chat", "internal/grant", "internal/hub", "internal/models", "internal/notify", "internal/profile", "internal/task", "internal/usage", "internal/webpush", "templates"),
	"handlers/pages/admin":   with(leaves, "internal/account", "internal/attention", "internal/figures", "internal/halt", "internal/hub", "internal/models", "internal/federation", "internal/record", "internal/doctor", "internal/scheduler", "templates"),
	"handlers/pages/agents": with(leaves, "internal/account", "internal/grant", "internal/halt", "internal/hosting", "internal/hub", "internal/memory", "internal/models", "internal/offer", "internal/packages", "internal/federation", "internal/a2a", "internal/schema",
		"internal/registry", "internal/task", "templates"),
	"handlers/pages/work": with(leaves, "internal/halt", "internal/hub", "internal/task", "internal/usage", "templates"),
	// Persons, owners and operators see the cost of models in one form.
	"handlers/pages/cost": {"internal/usage", "templates"},
	"handlers/pages/chat": with(leaves, "internal/account", "internal/chat", "internal/grant", "internal/hub", "internal/library", "internal/task", "internal/schema",
		"internal/a2a", "templates"),
	// Pages of any kind show what a change did.
	"handlers/pages/linediff": {"templates"},
	"handlers/pages/embed":    with(leaves, "internal/account", "internal/chat", "internal/hub", "internal/task", "templates"),
	"handlers/pages/goals":    with(leaves, "handlers/api/spending", "internal/team", "internal/team/flow", "templates"),
	"handlers/pages/manual":   with(leaves, "internal/account", "internal/hub", "templates"),
	"handlers/pages/people":   with(leaves, "internal/hub", "internal/profile", "templates"),
	"handlers/program":        with(leaves, "handlers/pages", "handlers/address", "handlers/request", "handlers/respond", "internal/account", "internal/hub", "templates"),
	"handlers/pages/pictures": with(leaves, "internal/chat", "internal/hub"),
	"handlers/pages/members":  with(leaves, "internal/chat", "internal/hub", "templates"),
	"handlers/pages/message":  with(leaves, "internal/schema", "internal/chat", "internal/hub", "internal/library", "internal/task", "internal/a2a", "templates"),
	"web":                     with(leaves, "handlers", "handlers/request", "handlers/respond"),
	"internal/app":            {"*"},
	// The packages of a model and of gossip parse their own settings.
	"internal/settings": with(leaves, "internal/account", "internal/hub", "internal/models", "internal/record",
		"internal/usage", "peering/gossip"),
	// The command line opens the data folder of a portal that is not running.
	"internal/control": with(inner, "internal/doctor", "internal/settings", "handlers/api", "store", "store/replica", "store/rows", "store/space"),
	// demo starts portals by app, so app must not import demo. The demo of a lying portal signs false
	// records itself, so it needs guard and record.
	"internal/app/demo": with(leaves, "internal/control", "internal/app", "internal/federation", "internal/federation/guard", "internal/record"),
	// The command line prints texts of other portals, which record cleans of control characters.
	// terminal cleans texts of programs.
	"internal/cli/terminal": {},
	"internal/cli/scaffold": {"internal/packages"},
	"internal/cli":          with(leaves, "agentruntime/pdf/child", "agentruntime/wasm/guest", "internal/control", "internal/app", "internal/app/demo", "internal/linkwire", "internal/personal", "internal/record", "internal/task"),
	"bench":                 {"*"},
	// The process that runs a hosted program holds nothing of the portal.
	// hosting decides about modules by hash, and stores them.
	"internal/hosting": leaves,
	// memory recalls by words and by meaning, with the parts of the search for agents.
	"internal/memory":   with(leaves, "internal/grant", "internal/index/bm25", "internal/index/vector"),
	"store/memories":    {"internal/clock", "internal/fault", "internal/ident", "internal/memory", "store/quotas"},
	"handlers/memories": with(leaves, "handlers/pages", "handlers/request", "handlers/respond", "internal/grant", "internal/hub", "internal/memory", "templates"),
	// library decides about paths and versions; the contents are stored as files of conversations.
	"internal/library": leaves,
	"store/library":    {"internal/clock", "internal/fault", "internal/ident", "internal/library", "store/quotas", "store/rows"},
	"handlers/library": with(leaves, "handlers/files", "handlers/pages", "handlers/pages/linediff", "handlers/request", "handlers/respond",
		"internal/library", "templates"),
	"store/modules":     {"internal/clock", "internal/fault", "internal/hosting", "internal/ident", "store/quotas", "store/rows"},
	"internal/packages": with(leaves, "internal/hosting", "internal/record"),
	"store/packages":    {"internal/clock", "internal/fault", "internal/ident", "internal/packages", "store/rows"},
	"handlers/packages": with(leaves, "handlers/markup", "handlers/pages", "handlers/request", "handlers/respond",
		"internal/federation", "internal/hosting", "internal/hub", "internal/packages", "templates"),
	"handlers/hosting": with(leaves, "handlers/request", "handlers/respond", "internal/hosting"),
	// The tools are compiled to WebAssembly, with the standard library only.
	"agentruntime/bundle/tools":   {},
	"agentruntime/bundle/program": {"agentruntime/bundle/tools"},
	"agentruntime/wasm/frame":     {},
	"agentruntime/wasm/module":    {},
	"agentruntime/wasm/guest":     {"agentruntime/wasm/frame", "agentruntime/wasm/module"},
	// The process that reads PDF files is locked down as that of a hosted program.
	"agentruntime/pdf/child":    {"agentruntime/wasm/frame", "agentruntime/wasm/guest"},
	"agentruntime/pdf":          {"agentruntime/pdf/child", "agentruntime/wasm/sandbox", "internal/limit"},
	"agentruntime/wasm/sandbox": {"agentruntime/wasm/frame", "agentruntime/wasm/module"},
	// Helpers of tests build portals, stores and agents from every package. Only tests and bench import
	// them.
	"internal/testing": {"*"},
	".":                {"internal/cli"},
}

func with(list []string, more ...string) []string { return append(slices.Clone(list), more...) }

// allowed reports whether the import table lets the package in folder from import the package in folder
// to.
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
	// A package below a folder may import the other packages below it, but not the package of the
	// folder itself.
	root, _, _ := strings.Cut(at, "/")
	if strings.HasPrefix(at, "internal/") {
		root = at
	}
	return to != root && strings.HasPrefix(to, root+"/")
}

// TestLayering checks the imports of every package by the import table, and requires a package comment.
// It reads the source files itself, because the test cache would not notice files that `go list` reads.
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
					return filepath.SkipDir // another module
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
			// The imports of tests are not checked by the table: a cycle would not compile.
			if !test && strings.HasPrefix(to, "internal/testing/") && !strings.HasPrefix(dir, "internal/testing/") &&
				dir != "bench" && !strings.HasPrefix(dir, "bench/") {
				t.Errorf("%s imports %s: only tests and bench may", name, to)
			}
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

// TestLayering_Refuses shows that the import table refuses wrong imports.
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

// clockExceptions are the test files that may read the wall clock, each with the reason.
var clockExceptions = map[string]string{
	"agentruntime/link/hostile_test.go":     "the tests run under synctest, by bubble of lease_test.go",
	"internal/liveness/outage_tell_test.go": "the tests run under synctest, by inBubble of run_test.go",
}

// TestClock refuses tests and test helpers that measure time, because their result depends on the speed
// of the machine. Tests of complexity count steps, tests wait for events, and timeouts run under
// testing/synctest, whose clock is virtual. Only benchmarks measure speed.
func TestClock(t *testing.T) {
	used, files := make(map[string]bool), 0
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			hidden := name != "." && strings.HasPrefix(d.Name(), ".")
			if hidden || d.Name() == "testdata" || d.Name() == "node_modules" || name == "data" {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if !strings.HasSuffix(name, "_test.go") && (f.Name.Name == "main" || !imports(f, "testing")) {
			return nil
		}
		files++
		found := clockUses(fset, f)
		name = filepath.ToSlash(name)
		if clockExceptions[name] != "" {
			used[name] = len(found) > 0
			return nil
		}
		for _, use := range found {
			t.Errorf("%s: a test must not depend on the speed of the machine (see TestClock)", use)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range clockExceptions {
		if !used[name] {
			t.Errorf("%s needs no exception", name)
		}
	}
	if files < 100 {
		t.Errorf("only %d test files seen: the walk is broken", files)
	}
}

func imports(f *ast.File, path string) bool {
	return slices.ContainsFunc(f.Imports, func(imp *ast.ImportSpec) bool { return imp.Path.Value == strconv.Quote(path) })
}

// clockUses returns the places where a test file reads the wall clock to measure or to wait, each as
// position and name. The result is empty for a file that imports testing/synctest, because its clock is
// virtual. Benchmarks are left out.
func clockUses(fset *token.FileSet, f *ast.File) []string {
	clock := ""
	for _, imp := range f.Imports {
		switch imp.Path.Value {
		case `"testing/synctest"`:
			return nil
		case `"time"`:
			clock = "time"
			if imp.Name != nil {
				clock = imp.Name.Name
			}
		}
	}
	if clock == "" {
		return nil
	}
	var found []string
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && isBenchmark(fn) {
			continue
		}
		c := clockReader{clock: clock, now: make(map[string]bool)}
		ast.Inspect(d, c.assign)
		ast.Inspect(d, func(n ast.Node) bool {
			if use := c.use(n); use != "" {
				found = append(found, fmt.Sprintf("%s: %s", fset.Position(n.Pos()), use))
			}
			return true
		})
	}
	return found
}

// isBenchmark reports whether fn is a benchmark or a helper of one: it has a parameter of type
// *testing.B.
func isBenchmark(fn *ast.FuncDecl) bool {
	for _, p := range fn.Type.Params.List {
		star, ok := p.Type.(*ast.StarExpr)
		if !ok {
			continue
		}
		if sel, ok := star.X.(*ast.SelectorExpr); ok && sel.Sel.Name == "B" {
			return true
		}
	}
	return false
}

// clockReader finds the uses of the wall clock in one declaration of a file.
type clockReader struct {
	clock string          // the name under which the file imports package time
	now   map[string]bool // variables with a value of time.Now
}

// assign records the variables to which the node n assigns a value of time.Now. It returns true, so
// that ast.Inspect continues.
func (c clockReader) assign(n ast.Node) bool {
	var to, from []ast.Expr
	switch n := n.(type) {
	case *ast.AssignStmt:
		to, from = n.Lhs, n.Rhs
	case *ast.ValueSpec:
		for _, name := range n.Names {
			to = append(to, name)
		}
		from = n.Values
	}
	if len(to) != len(from) {
		return true
	}
	for i, e := range from {
		if id, ok := to[i].(*ast.Ident); ok && c.isNow(e) {
			c.now[id.Name] = true
		}
	}
	return true
}

// isNow reports whether e is time.Now(), a variable with its value, or such a value after a method that
// moves or rounds it, such as time.Now().Add(d).
func (c clockReader) isNow(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return c.isNow(e.X)
	case *ast.Ident:
		return c.now[e.Name]
	case *ast.CallExpr:
		sel, ok := e.Fun.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		if c.isTime(sel) {
			return sel.Sel.Name == "Now"
		}
		switch sel.Sel.Name {
		case "Add", "AddDate", "UTC", "Local", "In", "Truncate", "Round", "Unix", "UnixMilli", "UnixMicro", "UnixNano":
			return c.isNow(sel.X)
		}
	}
	return false
}

func (c clockReader) isTime(sel *ast.SelectorExpr) bool {
	id, ok := sel.X.(*ast.Ident)
	return ok && id.Name == c.clock
}

// use returns the name of the clock use if the node n is one, else "".
func (c clockReader) use(n ast.Node) string {
	switch n := n.(type) {
	case *ast.SelectorExpr:
		if c.isTime(n) && slices.Contains([]string{"Since", "Until", "Sleep"}, n.Sel.Name) {
			return "time." + n.Sel.Name
		}
	case *ast.BinaryExpr:
		switch n.Op {
		case token.LSS, token.GTR, token.LEQ, token.GEQ, token.SUB:
			if c.isNow(n.X) || c.isNow(n.Y) {
				return "time.Now compared by " + n.Op.String()
			}
		}
	case *ast.CallExpr:
		sel, ok := n.Fun.(*ast.SelectorExpr)
		if !ok || len(n.Args) != 1 || !slices.Contains([]string{"Sub", "Before", "After", "Compare"}, sel.Sel.Name) {
			return ""
		}
		if !c.isTime(sel) && (c.isNow(sel.X) || c.isNow(n.Args[0])) {
			return "time.Now compared by " + sel.Sel.Name
		}
	}
	return ""
}

// TestClock_Refuses shows that each use of the wall clock is found.
func TestClock_Refuses(t *testing.T) {
	for _, c := range []struct {
		imports, body string
		want          int
	}{
		{"", "time.Sleep(time.Second)", 1},
		{"", "began := time.Now(); work(); if time.Since(began) > time.Second { t.Fail() }", 1},
		{"", "if time.Until(deadline) < 0 { t.Fail() }", 1},
		{"", "began := time.Now(); if d := time.Now().Sub(began); d > time.Second { t.Fail() }", 1},
		{"", "var began = time.Now().UTC(); end := time.Now(); if end.Sub(began) > time.Second { t.Fail() }", 1},
		{"", "end := time.Now().Add(time.Second); for time.Now().Before(end) { work() }", 1},
		{"", "end := time.Now().Add(time.Second); for !end.Before(time.Now()) { work() }", 1},
		{"", "if at.After(time.Now()) { t.Fail() }", 1},
		{"", "began := time.Now().UnixMilli(); work(); if time.Now().UnixMilli()-began > 100 { t.Fail() }", 1},
		{"", "pause := time.Sleep; pause(time.Second)", 1},
		{"", "go func() { began := time.Now(); work(); took <- time.Since(began) }()", 1},
		{"", "store(time.Now()); at := time.Now().Add(time.Hour); store(at)", 0},
		{"", "select { case <-done: case <-time.After(time.Minute): t.Fatal() }", 0},
		{"", "if first.At.Before(second.At) { t.Fail() }", 0},
		{`import "testing/synctest"`, "began := time.Now(); if time.Since(began) > time.Second { t.Fail() }", 0},
	} {
		src := fmt.Sprintf("package a\nimport \"time\"\n%s\nfunc TestA(t *testing.T) { %s }", c.imports, c.body)
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, "a_test.go", src, parser.SkipObjectResolution)
		if err != nil {
			t.Fatalf("%s: %v", c.body, err)
		}
		if got := clockUses(fset, f); len(got) != c.want {
			t.Errorf("%s: %v, want %d", c.body, got, c.want)
		}
	}
	fset := token.NewFileSet()
	src := `package a; import "time"; func BenchmarkA(b *testing.B) { began := time.Now(); report(time.Since(began)) }`
	f, err := parser.ParseFile(fset, "a_test.go", src, parser.SkipObjectResolution)
	if got := clockUses(fset, f); err != nil || len(got) != 0 {
		t.Errorf("a benchmark may measure: %v %v", got, err)
	}
}
