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

// keeperSource is the program that replaces the template's: it stores a memory, lists its memories and writes a file.
const keeperSource = `//go:build wasip1

package main

import "strings"

//go:wasmexport run
func run() int32 {
	var in struct {
		Text     string
		Memories []struct{ Text string }
	}
	if readInput(&in) != nil {
		return 1
	}
	text := "I keep what you like."
	verb, rest, _ := strings.Cut(in.Text, ": ")
	switch verb {
	case "remember":
		text = call(memory, map[string]string{"remember": rest})
	case "write":
		text = call(library, map[string]string{"write": "notes/tea.md", "text": rest})
	case "what do I like?":
		text = "I know nothing of you."
		for _, m := range in.Memories {
			text = "I remember: " + m.Text
		}
	}
	writeOutput(map[string]any{"text": text})
	return 0
}

func call(function func(uint64) uint64, arg map[string]string) string {
	text, err := callPortal(function, arg)
	if err != nil {
		return "Not done: " + err.Error()
	}
	return "Done. " + text
}

func main() {}
`

// writeKeeper makes the folder of the template for Go, writes a program and the manifest as an author does, and builds it.
func writeKeeper(t *testing.T) (manifest, module []byte) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tea-keeper")
	if err := scaffold.MakeFolder(dir, "go"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, scaffold.ManifestFile)
	var m map[string]any
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	m["summary"] = "Keeps what people like."
	m["grants"] = []map[string]string{{"name": "memory", "why": "To know what you like."}, {"name": "library", "why": "To write it down."}}
	if manifest, err = json.Marshal(m); err == nil {
		err = os.WriteFile(file, manifest, 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "main.go"), []byte(keeperSource), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := scaffold.BuildModule(t.Context(), dir, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.Bytes())
	}
	if module, err = scaffold.ReadModule(dir); err != nil {
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
	for name, s := range walked("desk", "phone") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			picture := strings.ReplaceAll(name, " ", "-")
			a := apptest.Start(t)
			c := apptest.Start(t, func(c *app.Config) { c.Join = a.URL() })
			ann, bob, ben := a.Operator(t, "ann"), c.Operator(t, "bob"), c.User(t, "ben")

			author := visit(t, root, a, s).as(ann).checked()
			author.extra = compileTime
			author.open("/packages/new")
			author.axeHere("the form of a package")
			author.upload("#manifest", "agentsite.json", manifest)
			author.upload("#module", "program.wasm", module)
			author.fill("#ask", "hello")
			author.press(`button[name="try"]`)
			author.says("I keep what you like.")
			author.shot("hosted-try-"+picture, true)
			author.axeHere("the tried package")
			author.press(`button[name="publish"]`)
			author.until("the page of the package", `location.pathname === "/packages/tea-keeper"`)
			author.axeHere("the published package")
			author.clean("the author's pages")

			far := "/packages/tea-keeper@" + a.Host
			if !eventually(func() bool {
				r, err := bob.Try(http.MethodGet, "/api/v1"+far, nil)
				return err == nil && r.Status == http.StatusOK
			}) {
				t.Fatal("the other portal does not know the package")
			}
			operator := visit(t, root, c, s).as(bob).checked()
			operator.extra = compileTime
			operator.open(far)
			operator.says("To know what you like.")
			operator.says("To write it down.")
			operator.click(`label[for="grant-memory"]`)
			operator.click(`label[for="grant-library"]`)
			operator.fill("#name", "keeper")
			operator.has(`label.check input[name="public"]:checked`)
			operator.shot("hosted-grants-"+picture, true)
			operator.axeHere("the grants that a package asks for")
			operator.press(`form[action$="/host"] .form-end button`)
			operator.until("the page of the agent", `location.pathname === "/agents/keeper"`)
			operator.axeHere("the agent that runs a package")
			operator.clean("the operator's pages")

			b := visit(t, root, c, s).as(ben).checked()
			b.extra = compileTime
			talk := func() { b.open("/chat/" + ben.Conversation("keeper")) }
			talk()
			b.send("remember: I like green tea.")
			b.answered("has not") // allowed yet
			b.open("/account/memories?agent=keeper")
			b.axeHere("the memory, not allowed yet")
			b.press(`button[name="decision"][value="allow"]`)
			talk()
			b.send("remember: I like green tea.")
			b.answered("Done.")
			talk()
			b.send("what do I like?")
			b.answered("I remember: I like green tea.")
			b.open("/account/memories?agent=keeper")
			b.says("I like green tea.")
			b.shot("hosted-memory-"+picture, true)
			b.axeHere("the memory")
			b.press(`form.row-actions[action$="/delete"] button`)
			b.says("Nothing is remembered")
			b.axeHere("the erased memory")
			talk()
			b.send("what do I like?")
			b.answered("I know nothing of you.")

			b.open("/account/grants")
			b.click(`details:has(form[action="/account/grants"]) summary`)
			b.fill("#agent", "keeper")
			b.fill("#tool", "library_write")
			b.fill("#scope", "notes/")
			b.axeHere("the permission to write")
			b.press(`form[action="/account/grants"] button[value="allow"]`)
			talk()
			b.send("write: Green tea.")
			b.answered("is version 1 now")
			b.until("the written file", `Boolean(document.querySelector(".written form button"))`)
			b.shot("hosted-written-"+picture, false)
			b.axeHere("the written file")
			if got := ben.Do(http.MethodGet, "/api/v1/library/notes/tea.md", nil).Body; got != "Green tea." {
				t.Errorf("written: %q", got)
			}
			b.press(".written button")
			b.says("Undone: the file is as it was before.")
			b.axeHere("the write that was undone")
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
