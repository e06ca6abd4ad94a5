package app_test

import (
	"net/http"
	"strings"
	"testing"

	"agentsite/docs"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// The page of the manual about the library: its commands run as they stand, in the order of the page, with a token of
// the scope that it names. It needs bash and curl.
func TestManual_Library(t *testing.T) {
	t.Parallel()
	requireShell(t)
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	token := ada.NewToken("account")
	p.User(t, "eve").NewToken().Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "filer", "description": "Files things.",
		"kind": "prompt", "visibility": "public", "endpoint": agenttest.NewOpenAIServer(t).Base(agenttest.Echo),
		"config": map[string]any{"model": "m", "instructions": "Help.", "tools": []string{"library"}}}, http.StatusCreated)
	page, ok := docs.FindPage("library")
	if !ok {
		t.Fatal("the page is gone")
	}
	blocks := shellBlock.FindAllStringSubmatch(page.Source, -1)
	wants := [][]string{
		{`"version":1`, `"version":2`, "Black tea.\n{", `"excerpt":"black tea."`},
		{`"restores":1`, `"restores":3`, "Green tea.\n"},
		{`"url":"` + p.URL() + `/shared-files/aglib_`},
		{`"tool":"library_write"`, `"scope":"notes/"`},
	}
	if len(blocks) != len(wants) {
		t.Fatalf("%d blocks of commands", len(blocks))
	}
	for i, b := range blocks {
		got := runCommands(t, p, token, b[1])
		for _, want := range wants[i] {
			if !strings.Contains(got, want) {
				t.Errorf("block %d has no %q: %s", i+1, want, got)
			}
		}
	}
	if got := readFile(ada, "notes/tea.md"); got != "Green tea.\n" {
		t.Errorf("after the last command: %s", got)
	}
}
