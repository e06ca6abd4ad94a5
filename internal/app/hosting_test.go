package app_test

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentsite/internal/testing/apptest"
	"agentsite/internal/testing/wasmtest"
)

// upload stores a module and returns its hash.
func upload(t *testing.T, c *apptest.Client, name string, b []byte) string {
	t.Helper()
	var m struct{ Hash string }
	c.Get(http.MethodPost, "/api/v1/hosting/modules?name="+name, bytes.NewReader(b), http.StatusCreated, &m)
	return m.Hash
}

// program registers a hosted program and returns its name.
func program(t *testing.T, c *apptest.Client, b []byte, config map[string]any) string {
	t.Helper()
	if config == nil {
		config = map[string]any{}
	}
	config["module"] = upload(t, c, "p.wasm", b)
	name := apptest.Fresh("hosted")
	c.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": name, "description": "Runs here.", "kind": "wasm",
		"config": config}, http.StatusCreated)
	return name
}

// The example of the manual, built from its source, asks back and answers.
func TestHosting_RunsTheExample(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "split.wasm")
	build := exec.Command("go", "build", "-trimpath", "-buildmode=c-shared", "-ldflags=-s -w", "-o", file, "agentsite/docs/clients/program")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=-mod=readonly")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p := apptest.Start(t)
	rob := p.Operator(t, "rob")
	name := program(t, rob.NewToken(), b, nil)
	ada := p.User(t, "ada")
	talk := ada.Conversation(name)
	stream := ada.Socket(talk)
	for _, x := range []struct{ say, want string }{
		{"84.60", "How many people share it?"}, {"4", "Each of 4 pays 21.15."}, {"hello", "Send me an amount"},
	} {
		said := ada.Say(talk, x.say)
		got := stream.Wait("the answer to "+x.say, func(e apptest.Event) bool {
			return e.Type == "message" && e.Seq > said.Seq && e.Kind == "text" && e.Sender.Kind == "agent"
		}).Plain()
		if !strings.Contains(got, x.want) {
			t.Errorf("%q was answered with %q", x.say, got)
		}
	}
}

// A program asks another agent by a function, once the person agreed, and streams the answer.
func TestHosting_AsksWithPermission(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	rob := p.Operator(t, "rob")
	m := wasmtest.New()
	alloc, store := m.Env("alloc", 1, 1), m.Import("extism:host/env", "store_u8", []byte{wasmtest.I64, wasmtest.I32}, nil)
	ask, reply := m.User("ask"), m.User("reply")
	m.Functions[0].Body = bytes.Join([][]byte{wasmtest.Block(alloc, store, `{"agent":"calc","text":"6*7"}`), wasmtest.Get(0),
		wasmtest.Call(ask), wasmtest.Call(reply), wasmtest.Drop()}, nil)
	asking := program(t, rob.NewToken(), m.Bytes(), map[string]any{"tools": []string{"ask"}})
	without := program(t, rob.NewToken(), append(m.Bytes(), wasmtest.Raw(0, wasmtest.Name("other"))...), nil)
	ada := p.User(t, "ada")
	for _, x := range []struct {
		agent string
		talk  [][2]string
	}{
		{asking, [][2]string{{"go", "May I ask `calc`"}, {"yes", "42"}, {"go", "May I ask `calc`"}, {"no", "did not agree"}}},
		{without, [][2]string{{"go", "no grant"}}},
	} {
		talk := ada.Conversation(x.agent)
		stream := ada.Socket(talk)
		for _, turn := range x.talk {
			said := ada.Say(talk, turn[0])
			got := stream.Wait("the answer to "+turn[0], func(e apptest.Event) bool {
				return e.Type == "message" && e.Seq > said.Seq && e.Kind == "text" && e.Sender.Kind == "agent"
			}).Plain()
			if !strings.Contains(got, turn[1]) {
				t.Fatalf("%q was answered with %q, want %q", turn[0], got, turn[1])
			}
		}
	}
}

// Accounts host programs only as the operator allows, and not those of others.
func TestHosting_FollowsTheRules(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	rob := p.Operator(t, "rob").NewToken()
	ada := p.User(t, "ada")
	mine := ada.NewToken()
	b := wasmtest.Says("Hello.").Bytes()
	send := func(c *apptest.Client, want int) apptest.Answer {
		t.Helper()
		return c.Must(http.MethodPost, "/api/v1/hosting/modules?name=x.wasm", bytes.NewReader(b), want)
	}
	send(mine, http.StatusForbidden)
	hash := upload(t, rob, "x.wasm", b)
	agent := map[string]any{"name": apptest.Fresh("h"), "description": "x", "kind": "wasm", "config": map[string]any{"module": hash}}
	if a := mine.Must(http.MethodPost, "/api/v1/agents", agent, http.StatusBadRequest); a.Fields()["config.module"] == "" {
		t.Errorf("a program of another account: %v", a.Fields())
	}
	rob.Must(http.MethodPut, "/api/v1/hosting", map[string]any{"policy": "everything"}, http.StatusBadRequest)
	rob.Must(http.MethodPut, "/api/v1/hosting", map[string]any{"policy": "list", "list": []string{"ada"}}, http.StatusOK)
	send(mine, http.StatusCreated)
	mine.Must(http.MethodPost, "/api/v1/agents", agent, http.StatusCreated)
	mine.Must(http.MethodDelete, "/api/v1/hosting/modules/"+hash, nil, http.StatusConflict)
	b = []byte("no module")
	if a := send(mine, http.StatusBadRequest); !strings.Contains(a.Fields()["module"], "WebAssembly") {
		t.Errorf("a text: %v", a.Fields())
	}
	rob.Must(http.MethodPut, "/api/v1/hosting", map[string]any{"policy": "off"}, http.StatusOK)
	talk := ada.Conversation(agent["name"].(string))
	stream := ada.Socket(talk)
	said := ada.Say(talk, "hello")
	stream.Wait("the refusal", func(e apptest.Event) bool {
		return e.Seq > said.Seq && e.Sender.Kind == "agent" && strings.Contains(string(e.Raw), "cannot run here now")
	})
}
