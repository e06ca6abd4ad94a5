package app_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"agentsite/internal/testing/apptest"
	"agentsite/internal/testing/wasmtest"
)

// logsAnd returns a module that logs a text and then runs more instructions. Its imports are alloc, store_u8 and
// log_info.
func logsAnd(text string, more ...[]byte) []byte {
	m := wasmtest.New()
	alloc, store := m.Env("alloc", 1, 1), m.Import("extism:host/env", "store_u8", []byte{wasmtest.I64, wasmtest.I32}, nil)
	log := m.Import("extism:host/env", "log_info", []byte{wasmtest.I64}, nil)
	body := slices.Concat(wasmtest.Block(alloc, store, text), wasmtest.Get(0), wasmtest.Call(log))
	m.Functions[0].Body = slices.Concat(append([][]byte{body}, more...)...)
	return m.Bytes()
}

// An author runs a draft before it is registered, and sees its log and its trap. Later the log of the author's own calls
// is on the page of the agent's work, and those of other people's calls are not.
func TestProgramLog_IsForTheOwnersOwnCalls(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada, bob := p.Operator(t, "ada"), p.User(t, "bob")
	hash := upload(t, ada.NewToken(), "p.wasm", logsAnd("the line of the log", wasmtest.Trap()))
	tries := func(c *apptest.Client, status int) string {
		return c.Must(http.MethodPost, "/agents/new/try", url.Values{"kind": {"wasm"}, "module": {hash}, "try": {"Hello"}},
			status).Body
	}
	page := tries(ada, http.StatusOK)
	for _, want := range []string{"log: the line of the log", "trap: ", "The program failed"} {
		if !strings.Contains(page, want) {
			t.Errorf("the answer of a try lacks %q", want)
		}
	}
	if got := tries(bob, http.StatusBadRequest); strings.Contains(got, "the line of the log") {
		t.Error("a person ran the module of another one")
	}
	name := apptest.Fresh("logger")
	ada.NewToken().Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": name, "description": "Logs.", "kind": "wasm",
		"visibility": "public", "config": map[string]any{"module": hash}}, http.StatusCreated)
	if page := ada.Must(http.MethodGet, "/agents/"+name+"/owner/work", nil, http.StatusOK).Body; strings.Contains(page, ">crashed<") {
		t.Error("there is a log without a call")
	}
	for _, c := range []*apptest.Client{bob, ada} {
		room := c.Conversation(name)
		if got := (actor{c, t, room, c.Socket(room)}).say("Hello"); !strings.Contains(got, "The program failed") {
			t.Errorf("%s: %q", name, got)
		}
	}
	page = ada.Must(http.MethodGet, "/agents/"+name+"/owner/work", nil, http.StatusOK).Body
	if n := strings.Count(page, "log: the line of the log"); n != 1 || strings.Count(page, ">crashed<") != 1 {
		t.Errorf("the log of the owner has %d calls", n)
	}
	bob.Must(http.MethodGet, "/agents/"+name+"/owner/work", nil, http.StatusForbidden)
	other := p.Operator(t, "eve").Do(http.MethodGet, "/agents/"+name+"/owner/work", nil)
	if strings.Contains(other.Body, "the line of the log") {
		t.Error("an operator reads the log of the owner's calls")
	}
}
