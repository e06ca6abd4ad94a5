package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsite/internal/app"
	"agentsite/internal/cli/scaffold"
	"agentsite/internal/testing/apptest"
	"agentsite/internal/testing/racetest"
)

// keeperSource replaces what the program of the template does: it remembers, says what it remembers, and writes a file.
const keeperSource = `	out := map[string]any{"text": "I keep what you like."}
	verb, rest, _ := strings.Cut(in.Text, ": ")
	switch verb {
	case "remember":
		out["text"] = "Noted. " + call(memory, map[string]string{"remember": rest})
	case "write":
		out["text"] = "Done. " + call(library, map[string]string{"write": "notes/tea.md", "text": rest})
	case "what do I like?":
		out["text"] = "I know nothing of you."
		for _, m := range in.Memories {
			out["text"] = "I remember: " + m.Text
		}
	}
`

// keeperCalls are the functions of the portal that it calls.
const keeperCalls = `//go:wasmimport extism:host/user memory
func memory(at uint64) uint64

//go:wasmimport extism:host/user library
func library(at uint64) uint64

//go:wasmimport extism:host/env length
func length(at uint64) uint64

//go:wasmimport extism:host/env load_u8
func loadByte(at uint64) uint32

// call calls a function of the portal and returns its result, or the reason why it did nothing.
func call(f func(uint64) uint64, arg map[string]string) string {
	b, _ := json.Marshal(arg)
	at := alloc(uint64(len(b)))
	for i, c := range b {
		storeByte(at+uint64(i), uint32(c))
	}
	at = f(at)
	b = make([]byte, length(at))
	for i := range b {
		b[i] = byte(loadByte(at + uint64(i)))
	}
	var out struct{ Text, Error string }
	if err := json.Unmarshal(b, &out); err != nil {
		return err.Error()
	}
	return out.Text + out.Error
}

//go:wasmexport run
`

// writeKeeper makes the folder of the template for Go, changes its program and manifest as an author does, and builds it.
func writeKeeper(t *testing.T) (manifest, module []byte) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tea-keeper")
	if err := scaffold.MakeFolder(dir, "go"); err != nil {
		t.Fatal(err)
	}
	change := func(name string, edit func(string) string) []byte {
		path := filepath.Join(dir, name)
		b, err := os.ReadFile(path)
		if err == nil {
			b = []byte(edit(string(b)))
			err = os.WriteFile(path, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	between := func(s, from, to, with string) string {
		head, rest, _ := strings.Cut(s, from)
		_, tail, ok := strings.Cut(rest, to)
		if !ok {
			t.Fatalf("the template has no %q before %q", from, to)
		}
		return head + with + to + tail
	}
	change("main.go", func(s string) string {
		s = between(s, "	out := map", "	b, _ = json.Marshal(out)", keeperSource)
		s = strings.Replace(s, "//go:wasmexport run\n", keeperCalls, 1)
		s = strings.Replace(s, "Text, Answer string", "Memories []struct{ Text string }\n		Text, Answer string", 1)
		return strings.NewReplacer("	\"fmt\"\n", "", "	\"strconv\"\n", "").Replace(s)
	})
	manifest = change(scaffold.ManifestFile, func(s string) string {
		var m map[string]any
		if err := json.Unmarshal([]byte(s), &m); err != nil {
			t.Fatal(err)
		}
		m["summary"] = "Keeps what people like."
		m["grants"] = []map[string]string{{"name": "memory", "why": "To know what you like."}, {"name": "library", "why": "To write it down."}}
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	})
	var out bytes.Buffer
	if err := scaffold.BuildModule(t.Context(), dir, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.Bytes())
	}
	module, err := scaffold.ReadModule(dir)
	if err != nil {
		t.Fatal(err)
	}
	return manifest, module
}

// compileTime is how long a portal may take to compile the program, beside all other tests.
const compileTime = 3 * time.Minute

// TestHosted_FromTheTemplateToAnotherPortal is the whole way of a hosted program: an author writes one from the template
// for Go, tries it and publishes it on one portal. On another one an operator reads what it asks for and hosts it. A
// person talks to it there, lets it remember, sees and erases the memory, lets it write a file and undoes that. The first
// portal stops, and the agent still answers.
func TestHosted_FromTheTemplateToAnotherPortal(t *testing.T) {
	root := needBrowser(t)
	racetest.Skip(t) // building and compiling the program takes minutes there
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("the program is built with Go, which is not installed")
	}
	t.Parallel()
	manifest, module := writeKeeper(t)
	for name, s := range walked("desk") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			picture := strings.ReplaceAll(name, " ", "-")
			a := apptest.Start(t)
			c := apptest.Start(t, func(c *app.Config) { c.Join = a.URL() })
			ann, bob, ben := a.Operator(t, "ann"), c.Operator(t, "bob"), c.User(t, "ben")

			author := visit(t, root, a, s).as(ann)
			author.extra = compileTime
			author.open("/packages/new")
			author.upload("#manifest", "agentsite.json", manifest)
			author.upload("#module", "program.wasm", module)
			author.fill("#ask", "hello")
			author.press(`button[name="try"]`)
			author.says("I keep what you like.")
			author.shot("hosted-try-"+picture, true)
			author.press(`button[name="publish"]`)
			author.until("the page of the package", `location.pathname === "/packages/tea-keeper"`)
			author.clean("the author's pages")

			far := "/packages/tea-keeper@" + a.Host
			if !eventually(func() bool {
				r, err := bob.Try(http.MethodGet, "/api/v1"+far, nil)
				return err == nil && r.Status == http.StatusOK
			}) {
				t.Fatal("the other portal does not know the package")
			}
			operator := visit(t, root, c, s).as(bob)
			operator.extra = compileTime
			operator.open(far)
			operator.says("To know what you like.")
			operator.says("To write it down.")
			operator.click(`label[for="grant-memory"]`)
			operator.click(`label[for="grant-library"]`)
			operator.fill("#name", "keeper")
			operator.has(`label.check input[name="public"]:checked`)
			operator.shot("hosted-grants-"+picture, true)
			operator.press(`form[action$="/host"] .form-end button`)
			operator.until("the page of the agent", `location.pathname === "/agents/keeper"`)
			operator.clean("the operator's pages")

			b := visit(t, root, c, s).as(ben)
			b.extra = compileTime
			talk := func() { b.open("/chat/" + ben.Conversation("keeper")) }
			talk()
			b.send("remember: I like green tea.")
			b.answered("has not") // allowed yet
			b.open("/account/memories?agent=keeper")
			b.press(`button[name="decision"][value="allow"]`)
			talk()
			b.send("remember: I like green tea.")
			b.answered("Noted.")
			talk()
			b.send("what do I like?")
			b.answered("I remember: I like green tea.")
			b.open("/account/memories?agent=keeper")
			b.says("I like green tea.")
			b.shot("hosted-memory-"+picture, true)
			b.press(`form.row-actions[action$="/delete"] button`)
			b.says("Nothing is remembered")
			talk()
			b.send("what do I like?")
			b.answered("I know nothing of you.")

			b.open("/account/grants")
			b.click(`details:has(form[action="/account/grants"]) summary`)
			b.fill("#agent", "keeper")
			b.fill("#tool", "library_write")
			b.fill("#scope", "notes/")
			b.press(`form[action="/account/grants"] button[value="allow"]`)
			talk()
			b.send("write: Green tea.")
			b.answered("is version 1 now")
			b.until("the written file", `Boolean(document.querySelector(".written form button"))`)
			b.shot("hosted-written-"+picture, false)
			if got := ben.Do(http.MethodGet, "/api/v1/library/notes/tea.md", nil).Body; got != "Green tea." {
				t.Errorf("written: %q", got)
			}
			b.press(".written button")
			b.says("Undone: the file is as it was before.")
			if got := ben.Do(http.MethodGet, "/api/v1/library/notes/tea.md", nil).Status; got != http.StatusNotFound {
				t.Errorf("undone, the file answers %d", got)
			}

			a.Stop()
			talk()
			b.send("hello")
			b.answered("I keep what you like.")
			b.clean("the person's pages")
		})
	}
}
