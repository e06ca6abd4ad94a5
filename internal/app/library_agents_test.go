package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/ident"
	"agentsite/internal/openai"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// filer registers a public prompt agent that may use the library, and whose model calls the tools in a message with lines such as
// `library_write {"path":"x","text":"y"}`.
func filer(t *testing.T, owner *apptest.Client) string {
	t.Helper()
	model := agenttest.NewOpenAIServer(t)
	model.Script(func(n int, req openai.ChatRequest) agenttest.Turn {
		last := req.Messages[len(req.Messages)-1]
		var calls []openai.ToolCall
		for line := range strings.Lines(string(last.Content)) {
			if name, args, ok := strings.Cut(line, " "); ok && strings.HasPrefix(name, "library_") {
				calls = append(calls, agenttest.Want(fmt.Sprint("f", n, len(calls)), name, args))
			}
		}
		if last.Role == openai.ToolRole || len(calls) == 0 {
			return agenttest.Turn{Text: "Tool: " + string(last.Content)}
		}
		return agenttest.Turn{Calls: calls}
	})
	name := apptest.Fresh("filer")
	owner.NewToken().Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": name, "description": "Files things.",
		"kind": "prompt", "visibility": "public", "endpoint": model.Base(agenttest.Scripted),
		"config": map[string]any{"model": "m", "instructions": "Help.", "tools": []string{"library"}}}, http.StatusCreated)
	return name
}

// An agent writes only where the person allows it, each write names it and its task and can be undone, and a permission
// that was taken back counts no more.
func TestLibrary_AgentsWriteByGrant(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	putFile(t, ada, "secret.txt", "The secret is 42.")
	putFile(t, ada, "notes/tea.md", "Green tea.")
	agent := filer(t, p.User(t, "eve"))
	talk := talkTo(t, ada, agent)
	const write = `library_write {"path":"notes/tea.md","text":"Black tea."}`
	if got := talk.say(write); !strings.Contains(got, "May I write `notes/tea.md` in your library") || !strings.Contains(got, "Black tea.") {
		t.Fatalf("it did not ask: %q", got)
	}
	if got := talk.say("no"); readFile(ada, "notes/tea.md") != "Green tea." {
		t.Fatalf("it wrote after a no: %q", got)
	}
	grantID := ident.NewID()
	ada.Must(http.MethodPut, "/api/v1/grants/"+grantID, map[string]any{"agent": agent, "tool": "library_write", "scope": "notes/", "decision": "allow"}, http.StatusOK)
	if got := talk.say(write); !strings.Contains(got, "is version 2 now") || readFile(ada, "notes/tea.md") != "Black tea." {
		t.Fatalf("it did not write with a grant: %q", got)
	}
	v := versionsOf(ada, "notes/tea.md")[0]
	if !strings.HasPrefix(v.Agent, agent) || v.Task == "" || v.Conversation != talk.talk {
		t.Errorf("the version names %+v", v)
	}
	if got := talk.say(`library_read {"path":"notes/tea.md"}`); !strings.Contains(got, "Black tea.") {
		t.Errorf("it does not read what it may write: %q", got)
	}
	for _, path := range []string{"secret.txt", "notesx"} {
		if got := talk.say(`library_read {"path":"` + path + `"}`); strings.Contains(got, "42") || !strings.Contains(got, "May I read") {
			t.Errorf("it reads %s beyond its grant: %q", path, got)
		}
		talk.say("no")
	}
	// A long text comes in parts that begin and end between characters, and each says where it ends.
	putFile(t, ada, "notes/long.md", "x"+strings.Repeat("é", 10_000))
	for at, want := range map[int]string{0: "bytes 0 to 12287 of 20001:\n\nxé", 2: "bytes 1 to 12289 of 20001:\n\né",
		12287: "bytes 12287 to 20001 of 20001:\n\né"} {
		if got := talk.say(fmt.Sprintf(`library_read {"path":"notes/long.md","offset":%d}`, at)); !strings.Contains(got, want) {
			t.Errorf("from byte %d: %.100q", at, got)
		}
	}
	if got := talk.say(`library_read {"path":"notes/../secret.txt"}`); strings.Contains(got, "42") {
		t.Errorf("it reads a file above its folder: %q", got)
	}
	ada.Must(http.MethodPost, "/library/undo", form("path", "notes/tea.md", "version", "2", "next", "/chat/"+talk.talk), http.StatusSeeOther)
	if got := readFile(ada, "notes/tea.md"); got != "Green tea." {
		t.Errorf("undone: %q", got)
	}
	// What a task wrote in two steps is undone in one.
	talk.say(strings.Replace(write, "Black", "White", 1) + "\n" + strings.Replace(write, "Black", "Red", 1))
	if got := readFile(ada, "notes/tea.md"); got != "Red tea." {
		t.Errorf("written twice: %q", got)
	}
	newest := versionsOf(ada, "notes/tea.md")[0].Version
	ada.Must(http.MethodPost, "/library/undo", form("path", "notes/tea.md", "version", fmt.Sprint(newest), "next", "/library"), http.StatusSeeOther)
	if got := readFile(ada, "notes/tea.md"); got != "Green tea." {
		t.Errorf("undone in one step: %q", got)
	}
	ada.Must(http.MethodDelete, "/api/v1/grants/"+grantID, nil, http.StatusNoContent)
	if got := talk.say(`library_write {"path":"notes/tea.md","text":"Oolong."}`); !strings.Contains(got, "May I write") || readFile(ada, "notes/tea.md") != "Green tea." {
		t.Errorf("it wrote without the permission: %q", got)
	}
}

// A list leaves out the files that the agent may never read.
func TestLibrary_ListsNothingDenied(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	putFile(t, ada, "secret/plan.md", "42")
	putFile(t, ada, "notes/tea.md", "Green tea.")
	agent := filer(t, p.User(t, "eve"))
	for scope, decision := range map[string]string{"/": "allow", "secret": "deny"} {
		ada.Must(http.MethodPut, "/api/v1/grants/"+ident.NewID(), map[string]any{"agent": agent, "tool": "library_read", "scope": scope, "decision": decision}, http.StatusOK)
	}
	talk := talkTo(t, ada, agent)
	if got := talk.say("library_list {}"); !strings.Contains(got, "notes/tea.md (version 1") || strings.Contains(got, "plan") {
		t.Errorf("listed: %q", got)
	}
	if got := talk.say(`library_list {"prefix":"secret/"}`); strings.Contains(got, "plan") {
		t.Errorf("listed below secret/: %q", got)
	}
}
