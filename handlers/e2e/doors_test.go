package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// clients are the public clients of the protocols, as they are published.
type clients struct {
	t *testing.T
	// at is a folder with ask.mjs and the packages it needs.
	at, a2a, token string
}

// needClients looks where the environment says that they are: packages in the
// folder AGENTSITE_TEST_CLIENTS, the a2a command at AGENTSITE_TEST_A2A. It
// skips the test where there are none.
func needClients(t *testing.T) *clients {
	t.Helper()
	packages, a2a := os.Getenv("AGENTSITE_TEST_CLIENTS"), os.Getenv("AGENTSITE_TEST_A2A")
	if packages == "" || a2a == "" {
		const missing = "AGENTSITE_TEST_CLIENTS and AGENTSITE_TEST_A2A do not name the public clients, which .ci/run installs"
		if strings.Contains(os.Getenv("AGENTSITE_TEST_REQUIRE"), "clients") {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	c := &clients{t: t, at: t.TempDir(), a2a: a2a}
	script, err := os.ReadFile("testdata/ask.mjs")
	if err == nil {
		err = os.WriteFile(filepath.Join(c.at, "ask.mjs"), script, 0o600)
	}
	if err == nil {
		err = os.Symlink(filepath.Join(packages, "node_modules"), filepath.Join(c.at, "node_modules"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// run returns what a command prints.
func (c *clients) run(name string, args ...string) string {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), name, args...)
	// Programs of others get a home of their own to leave their files in.
	cmd.Dir, cmd.Env = c.at, append(os.Environ(), "AGENTSITE_TOKEN="+c.token, "HOME="+c.at, "MCP_CATALOG_PATH="+filepath.Join(c.at, "mcp.json"))
	out, err := cmd.Output()
	if err != nil {
		said := ""
		if e, ok := err.(*exec.ExitError); ok {
			said = string(e.Stderr)
		}
		c.t.Fatalf("%s %q: %v\n%s%s", filepath.Base(name), args, err, out, said)
	}
	return string(out)
}

// inspect runs the MCP inspector on an agent.
func (c *clients) inspect(portal, agent string, args ...string) string {
	c.t.Helper()
	return c.run("node", append([]string{"node_modules/@modelcontextprotocol/inspector/" + c.inspector(), "--cli", portal + "/agents/" + agent + "/mcp",
		"--transport", "http", "--header", "Authorization: Bearer " + c.token}, args...)...)
}

// inspector is the file of the inspector's command in its package.
func (c *clients) inspector() string {
	c.t.Helper()
	about, err := os.ReadFile(filepath.Join(c.at, "node_modules/@modelcontextprotocol/inspector/package.json"))
	if err != nil {
		c.t.Fatal(err)
	}
	var p struct{ Bin map[string]string }
	if err := json.Unmarshal(about, &p); err != nil || p.Bin["mcp-inspector"] == "" {
		c.t.Fatalf("the inspector has no command: %v", err)
	}
	return p.Bin["mcp-inspector"]
}

// TestDoors_CallsOfEveryClientAreItsTasks registers one agent through the form
// and asks it by five public clients; the five calls are tasks of the agent.
func TestDoors_CallsOfEveryClientAreItsTasks(t *testing.T) {
	root := needBrowser(t)
	c := needClients(t)
	t.Parallel()
	p := apptest.Start(t, func(c *app.Config) { c.Name = "Agora" })
	h := newHarbour(t)
	b := visit(t, root, p, desk)
	b.open("/")
	b.press(`a[href="/signup"]`)
	b.fill("#name", "ann")
	b.fill("#password", apptest.Password)
	b.press("main form button")
	b.press(`.ways a[href="/agents/new"]`)
	b.fill("#url", h.URL)
	b.press(".fetch button")
	b.says("Found “Harbour pilot”")
	b.press(`button[name="save"]`)
	b.says("It is registered. Next steps")

	b.open("/account")
	b.click(`details:has(form[action="/account/tokens"]) summary`)
	b.fill("#label", "my programs")
	b.press(`form[action="/account/tokens"] button`)
	b.says("is ready. Copy it now")
	c.token = eval[string](b, `/ags_\S+/.exec(document.querySelector(".new-secret").innerHTML)[0].replace(/["<].*/, "")`)

	const agent = "harbour-pilot"
	var tools struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal([]byte(c.inspect(p.URL(), agent, "--method", "tools/list")), &tools); err != nil || len(tools.Tools) == 0 {
		t.Fatalf("tools of the agent: %+v, %v", tools, err)
	}
	asks := []struct {
		name, by, text string
		ask            func(text string) (answer string)
	}{
		{"A2A JavaScript SDK", "A2A", "When is high water in Bergen?", func(text string) string { return c.run("node", "ask.mjs", "a2a-js", p.URL(), agent, text) }},
		{"A2A command", "A2A", "When is high water in Oslo?", func(text string) string {
			return c.run(c.a2a, "--auth", "Bearer "+c.token, "send", p.URL()+"/agents/"+agent+"/a2a", text)
		}},
		{"MCP inspector", "MCP", "When is high water in Kiel?", func(text string) string {
			return c.inspect(p.URL(), agent, "--method", "tools/call", "--tool-name", tools.Tools[0].Name, "--tool-arg", "text="+text)
		}},
		{"OpenAI SDK", "the OpenAI API", "When is high water in Porto?", func(text string) string { return c.run("node", "ask.mjs", "openai", p.URL(), agent, text) }},
		{"Vercel AI SDK", "the OpenAI API", "When is high water in Brest?", func(text string) string { return c.run("node", "ask.mjs", "ai", p.URL(), agent, text) }},
	}
	var want []string
	for _, a := range asks {
		if said := a.ask(a.text); !strings.Contains(said, agenttest.Echoed(a.text)) {
			t.Errorf("%s was answered %q", a.name, said)
		}
		want = append(want, a.by+": completed")
	}

	b.open("/agents/" + agent + "/owner/work")
	got := eval[[]string](b, `[...document.querySelectorAll("table.calls tbody tr")].map((r) => r.cells[2].innerText.trim() + ": " + r.cells[3].innerText.trim())`)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the owner sees %q instead of %q", got, want)
	}
	b.shot("doors-calls", true)
	// Each is a conversation of hers, with what was said in it.
	for _, a := range asks {
		b.open("/chat")
		at := eval[string](b, `[...document.querySelectorAll('main a[href^="/chat/"]')].find((e) => e.innerText.includes(`+js(a.text)+`))?.getAttribute("href") ?? ""`)
		if at == "" {
			t.Errorf("what was asked by the %s is no conversation", a.name)
			continue
		}
		b.open(at)
		b.answered(agenttest.Echoed(a.text))
	}
	b.clean("asking by every client")
}
