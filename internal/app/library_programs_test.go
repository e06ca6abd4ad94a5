package app_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/ident"
	"agentsite/internal/testing/apptest"
	"agentsite/internal/testing/wasmtest"
)

// callsLibrary returns a module that calls the function library with an argument and streams the result.
func callsLibrary(argument string) []byte {
	m := wasmtest.New()
	alloc, store := m.Env("alloc", 1, 1), m.Import("extism:host/env", "store_u8", []byte{wasmtest.I64, wasmtest.I32}, nil)
	library, reply := m.User("library"), m.User("reply")
	m.Functions[0].Body = bytes.Join([][]byte{wasmtest.Block(alloc, store, argument), wasmtest.Get(0), wasmtest.Call(library),
		wasmtest.Call(reply), wasmtest.Drop()}, nil)
	return m.Bytes()
}

// A hosted program uses the library by its tool and the person's grant for the path, and is refused without either.
func TestLibrary_ProgramsNeedTheirGrants(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	rob, ada := p.Operator(t, "rob"), p.User(t, "ada")
	putFile(t, ada, "notes/tea.md", "Green tea.")
	putFile(t, ada, "secret.txt", "The secret is 42.")
	host := func(argument string, tools ...string) (name string) {
		name = program(t, rob.NewToken(), callsLibrary(argument), map[string]any{"tools": tools})
		rob.NewToken().Must(http.MethodPatch, "/api/v1/agents/"+name, map[string]any{"visibility": "public"}, http.StatusOK)
		return name
	}
	allow := func(agent, tool, scope string) {
		ada.Must(http.MethodPut, "/api/v1/grants/"+ident.NewID(), map[string]any{"agent": agent, "tool": tool, "scope": scope,
			"decision": "allow"}, http.StatusOK)
	}
	const write = `{"write":"notes/tea.md","text":"Black tea."}`
	bare, writes := host(write), host(write, "library")
	reads, steals := host(`{"read":"notes/tea.md"}`, "library"), host(`{"read":"secret.txt"}`, "library")
	for _, name := range []string{bare, writes, reads, steals} {
		if got := answerOf(ada, name, "go"); !strings.Contains(got, `"error"`) || strings.Contains(got, "Green tea") || strings.Contains(got, "42") || readFile(ada, "notes/tea.md") != "Green tea." {
			t.Errorf("without a grant: %q", got)
		}
	}
	allow(writes, "library_write", "notes/")
	allow(reads, "library_read", "notes/")
	allow(steals, "library_read", "notes/")
	if got := answerOf(ada, writes, "go"); !strings.Contains(got, "is version 2 now") || readFile(ada, "notes/tea.md") != "Black tea." {
		t.Errorf("with the grant to write: %q", got)
	}
	if v := versionsOf(ada, "notes/tea.md")[0]; !strings.HasPrefix(v.Agent, writes) || v.Task == "" {
		t.Errorf("the version names %+v", v)
	}
	if got := answerOf(ada, reads, "go"); !strings.Contains(got, "Black tea.") {
		t.Errorf("with the grant to read: %q", got)
	}
	if got := answerOf(ada, steals, "go"); !strings.Contains(got, `"error"`) || strings.Contains(got, "42") {
		t.Errorf("beyond its folder: %q", got)
	}
	if got := readFile(ada, "secret.txt"); got != "The secret is 42." {
		t.Errorf("the secret: %q", got)
	}
}
