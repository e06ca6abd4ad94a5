package app_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"agentsite/internal/testing/apptest"
	"agentsite/internal/testing/wasmtest"
)

// A hosted program remembers a person who turned that on, and no other person; without the tool it remembers nothing.
func TestProgram_RemembersWithItsTool(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada, bob := p.User(t, "ada"), p.User(t, "bob")
	rob := p.Operator(t, "rob").NewToken()
	m := wasmtest.New()
	alloc, store := m.Env("alloc", 1, 1), m.Import("extism:host/env", "store_u8", []byte{wasmtest.I64, wasmtest.I32}, nil)
	memory, reply := m.User("memory"), m.User("reply")
	m.Functions[0].Body = slices.Concat(wasmtest.Block(alloc, store, `{"remember":"The person likes green tea."}`),
		wasmtest.Get(0), wasmtest.Call(memory), wasmtest.Call(reply), wasmtest.Drop())
	hash := upload(t, rob, "p.wasm", m.Bytes())
	register := func(tools ...string) string {
		name := apptest.Fresh("minder")
		rob.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": name, "description": "Remembers.", "kind": "wasm",
			"visibility": "public", "config": map[string]any{"module": hash, "tools": tools}}, http.StatusCreated)
		return name
	}
	with, without := register("memory"), register("find")
	turnOn(ada, with)
	if got := talkTo(t, ada, with).say("Hello"); !strings.Contains(got, "Remembered") {
		t.Errorf("with the tool, for a person who allows it: %q", got)
	}
	if got := talkTo(t, ada, without).say("Hello"); !strings.Contains(got, `"error"`) {
		t.Errorf("without the tool: %q", got)
	}
	if got := talkTo(t, bob, with).say("Hello"); !strings.Contains(got, "has not turned your memory on") {
		t.Errorf("for a person who was not asked: %q", got)
	}
	list := memoriesOf(ada, "").Memories
	if len(list) != 1 || list[0].Agent != with || list[0].Text != "The person likes green tea." {
		t.Errorf("the memories: %+v", list)
	}
	if list := memoriesOf(bob, "").Memories; len(list) > 0 {
		t.Errorf("memories of a person who did not agree: %+v", list)
	}
}
