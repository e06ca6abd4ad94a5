package app_test

import (
	"bytes"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentsite/docs"
	"agentsite/internal/app"
	"agentsite/internal/cli/scaffold"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
	"agentsite/internal/testing/racetest"
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

// buildExample builds the example of the manual. It skips the test under the race detector, as TestManual_Host does.
func buildExample(t *testing.T) []byte {
	t.Helper()
	racetest.Skip(t)
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
	return b
}

// A program that asked a person goes on with the answer after a restart of the portal.
func TestHosting_WaitsOverARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start := func() *apptest.Portal {
		return apptest.Start(t, func(c *app.Config) { c.Data = dir })
	}
	p := start()
	rob := p.Operator(t, "rob")
	name := program(t, rob.NewToken(), buildExample(t), nil)
	talk := rob.Conversation(name)
	if got := (actor{rob, t, talk, rob.Socket(talk)}).say("84.60"); !strings.Contains(got, "How many people") {
		t.Fatalf("84.60: %q", got)
	}
	p.Stop()
	p = start()
	rob = p.LogIn(t, "rob")
	if got := (actor{rob, t, talk, rob.Socket(talk)}).say("4"); !strings.Contains(got, "Each of 4 pays 21.15.") {
		t.Fatalf("4: %q", got)
	}
}

// A program asks the model and the hosts that its owner granted, and no others.
func TestHosting_AsksModelsAndHosts(t *testing.T) {
	t.Parallel()
	model := agenttest.NewOpenAIServer(t)
	model.Script(agenttest.Turns(agenttest.Turn{Text: "The model says 42."}))
	keys := make(chan string, 1)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys <- r.Header.Get("Idempotency-Key")
		fmt.Fprint(w, "The host says 43.")
	}))
	t.Cleanup(site.Close)
	p := apptest.Start(t, func(c *app.Config) { c.LLMURL, c.LLMModel = model.Base(agenttest.Scripted), "house" })
	rob := p.Operator(t, "rob")
	env := func(m *wasmtest.Module) (alloc, store, reply int) {
		return m.Env("alloc", 1, 1), m.Import("extism:host/env", "store_u8", []byte{wasmtest.I64, wasmtest.I32}, nil),
			m.User("reply")
	}
	asks := wasmtest.New()
	alloc, store, reply := env(asks)
	ask := asks.User("model")
	asks.Functions[0].Body = bytes.Join([][]byte{wasmtest.Block(alloc, store,
		`{"messages":[{"role":"user","content":"6*7"}],"max_tokens":50}`), wasmtest.Get(0), wasmtest.Call(ask),
		wasmtest.Call(reply), wasmtest.Drop()}, nil)
	calls := wasmtest.New()
	alloc, store, reply = env(calls)
	send := calls.Env("http_request", 2, 1)
	calls.Functions[0].Body = bytes.Join([][]byte{wasmtest.Block(alloc, store, `{"method":"POST","url":"`+site.URL+`/x"}`),
		wasmtest.Get(0), wasmtest.Const(0), wasmtest.Call(send), wasmtest.Call(reply), wasmtest.Drop()}, nil)
	host := strings.TrimPrefix(site.URL, "http://")
	for _, x := range []struct {
		module *wasmtest.Module
		config map[string]any
		want   string
	}{
		{asks, map[string]any{"model": "default"}, "The model says 42."},
		{asks, nil, "no grant for a model"},
		{calls, map[string]any{"hosts": []string{host}}, "The host says 43."},
		{calls, map[string]any{"hosts": []string{"other.example"}}, "no grant"},
	} {
		name := program(t, rob.NewToken(), append(x.module.Bytes(), wasmtest.Raw(0, wasmtest.Name(apptest.Fresh("m")))...),
			x.config)
		if got := answerOf(rob, name, "go"); !strings.Contains(got, x.want) {
			t.Errorf("%v: %q, want %q", x.config, got, x.want)
		}
	}
	if key := <-keys; key == "" {
		t.Error("a request that changes something has no key")
	}
}

// The example of the manual, built from its source, asks back and answers.
func TestHosting_RunsTheExample(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	rob := p.Operator(t, "rob")
	name := program(t, rob.NewToken(), buildExample(t), nil)
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

// The form of the page takes a module, and shows the reason if it is refused.
func TestHosting_FormTakesAModule(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	rob := p.Operator(t, "rob")
	name := strings.ToLower(apptest.Fresh("form"))
	send := func(module []byte) apptest.Answer {
		t.Helper()
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		for k, v := range map[string]string{"kind": "wasm", "name": name, "description": "Says hello.", "visibility": "public",
			"save": "1", "program_tools": "find", "hosts": "api.example.org"} {
			if err := w.WriteField(k, v); err != nil {
				t.Fatal(err)
			}
		}
		f, err := w.CreateFormFile("module_file", "hello.wasm")
		if err == nil {
			_, err = f.Write(module)
		}
		if err = errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		return rob.Do(http.MethodPost, "/agents/new", &b, func(r *http.Request) {
			r.Header.Set("Content-Type", w.FormDataContentType())
		})
	}
	if a := send([]byte("no module")); a.Status != http.StatusUnprocessableEntity && a.Status != http.StatusBadRequest ||
		!strings.Contains(string(a.Body), "is no WebAssembly module") {
		t.Fatalf("a text: %d\n%.2000s", a.Status, a.Body)
	}
	if a := send(wasmtest.Says("Hello.").Bytes()); a.Status >= 400 {
		t.Fatalf("a module: %d\n%.2000s", a.Status, a.Body)
	}
	var agent struct {
		Config struct {
			Module       string
			Tools, Hosts []string
		}
	}
	rob.NewToken().Get(http.MethodGet, "/api/v1/agents/"+name, nil, http.StatusOK, &agent)
	if len(agent.Config.Module) != 64 || len(agent.Config.Tools) != 1 || len(agent.Config.Hosts) != 1 {
		t.Errorf("%+v", agent)
	}
	if a := rob.Do(http.MethodGet, "/agents/"+name+"/edit", nil); !strings.Contains(string(a.Body), agent.Config.Module) {
		t.Error("the form for a change has no module")
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

// The commands of the manual run as they stand, and make the agent that it describes. They need bash and curl.
//
// The race detector would only slow the compiler of WebAssembly, which takes its minute then.
func TestManual_Host(t *testing.T) {
	t.Parallel()
	racetest.Skip(t)
	requireShell(t)
	p := apptest.Start(t)
	rob := p.Operator(t, "rob")
	page, ok := docs.FindPage("host")
	blocks := shellBlock.FindAllStringSubmatch(page.Source, -1)
	if !ok || len(blocks) != 4 {
		t.Fatalf("%d blocks of commands", len(blocks))
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Somebody has a folder with the binary of the portal only.
	dir := t.TempDir()
	binary := "#!/bin/sh\nexec env GOFLAGS= " + asCommand + "=1 '" + self + "' \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "agentsite"), []byte(binary), 0o700); err != nil {
		t.Fatal(err)
	}
	script := blocks[0][1] + blocks[1][1] + blocks[2][1] + blocks[3][1] +
		"./agentsite package fetch bill-splitter\ncmp bill-splitter-0.1.0.wasm bill-splitter/program.wasm\n"
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = dir
	token := rob.NewToken("agents:write", "agents:read").Token
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "AGENTSITE_PORTAL="+p.Base, "AGENTSITE_TOKEN="+token)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, agent := range []string{"splitter", "sharer"} {
		splitsBills(t, rob, agent)
	}
}

// splitsBills asks an agent that is made of the example, and returns the id of the task that answered.
func splitsBills(t *testing.T, c *apptest.Client, agent string) string {
	t.Helper()
	talk := c.Conversation(agent)
	stream := c.Socket(talk)
	var answer apptest.Event
	for _, x := range []struct{ say, want string }{{"84.60", "How many people"}, {"4", "21.15"}} {
		seq := c.Say(talk, x.say).Seq
		answer = stream.Wait("the answer to "+x.say, func(e apptest.Event) bool {
			return e.Type == "message" && e.Seq > seq && (e.Kind == "text" || e.Task.State != "") && e.Sender.Kind == "agent"
		})
		if got := answer.Plain(); !strings.Contains(got, x.want) {
			t.Fatalf("%s: %s: %q", agent, x.say, got)
		}
	}
	return answer.Task.ID
}

// The templates of packages are built and answer. Those that need tools which are not here are skipped; bench/nightly
// requires all.
func TestPackages_Templates(t *testing.T) {
	t.Parallel()
	racetest.Skip(t)
	tools := map[string]string{"go": "go", "rust": "rustc", "as": "npm"}
	for _, lang := range scaffold.Languages() {
		t.Run(lang, func(t *testing.T) {
			t.Parallel()
			required := strings.Contains(os.Getenv("AGENTSITE_TEST_REQUIRE"), "programs")
			if lang != "go" && !required {
				t.Skip("bench/nightly builds it")
			}
			if _, err := exec.LookPath(tools[lang]); err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(t.TempDir(), "splits-"+lang)
			var out bytes.Buffer
			err := scaffold.MakeFolder(dir, lang)
			if err == nil {
				err = scaffold.BuildModule(t.Context(), dir, &out)
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, out.Bytes())
			}
			b, err := scaffold.ReadModule(dir)
			if err != nil {
				t.Fatal(err)
			}
			rob := apptest.Start(t).Operator(t, "rob")
			task := splitsBills(t, rob, program(t, rob.NewToken(), b, nil))
			const want = "person,pays\n1,21.15\n2,21.15\n3,21.15\n4,21.15\n"
			if name, _, text := returnedFile(t, rob, task); name != "bill.csv" || text != want {
				t.Errorf("the file %q has %q", name, text)
			}
		})
	}
}

// The compiled code of a module goes with its account, unless another account has the module.
func TestHosting_ForgetsTheCodeOfErasedAccounts(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	rob, eve := p.Operator(t, "rob"), p.Operator(t, "eve")
	shared, own := wasmtest.Says("Shared.").Bytes(), wasmtest.Says("Own.").Bytes()
	upload(t, rob, "a.wasm", shared)
	both, alone := upload(t, eve, "a.wasm", shared), upload(t, eve, "b.wasm", own)
	has := func(hash string) bool {
		_, err := os.Stat(filepath.Join(p.Dir, "programs", hash))
		return err == nil
	}
	if !has(both) || !has(alone) {
		t.Fatal("no compiled code was kept")
	}
	eve.Must(http.MethodDelete, "/api/v1/me", map[string]any{"confirm": "eve"}, http.StatusNoContent)
	if has(alone) || !has(both) {
		t.Errorf("of the erased account %v, of another %v", has(alone), has(both))
	}
	rob.Must(http.MethodDelete, "/api/v1/hosting/modules/"+both, nil, http.StatusNoContent)
	if has(both) {
		t.Error("the code of a deleted module is left")
	}
}
