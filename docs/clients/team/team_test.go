package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsite/internal/testing/apptest"
)

func TestMain(m *testing.M) {
	if os.Getenv("AGENTSITE_TEST_TEAM") != "" {
		main()
	}
	os.Exit(m.Run())
}

// example returns the command of an example. AGENTSITE_TEST_CLIENTS is the folder of the public packages of JavaScript and
// Python, see .ci/clients.
func example(t *testing.T, which string) []string {
	t.Helper()
	clients := os.Getenv("AGENTSITE_TEST_CLIENTS")
	if which == "Go" {
		return []string{os.Args[0]}
	}
	if clients == "" {
		t.Skip("AGENTSITE_TEST_CLIENTS is not set")
	}
	if which == "Python" {
		return []string{filepath.Join(clients, "python/bin/python"), "../team.py"}
	}
	b, err := os.ReadFile("../team.mjs")
	dir := t.TempDir()
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "team.mjs"), b, 0o600)
	}
	if err == nil {
		err = os.Symlink(filepath.Join(clients, "node_modules"), filepath.Join(dir, "node_modules"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return []string{"node", filepath.Join(dir, "team.mjs")}
}

// start runs an example and returns its address, once it answers. If another program takes the port in between, it is
// started again on another one.
func start(t *testing.T, which string) string {
	t.Helper()
	args := example(t, which)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 5 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := l.Addr().String()
		l.Close()
		cmd := exec.Command(args[0], append(args[1:], address)...)
		cmd.Env = append(os.Environ(), "AGENTSITE_TEST_TEAM=1")
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { cmd.Wait(); close(ended) }()
		t.Cleanup(func() { cmd.Process.Kill(); <-ended })
		for running := true; running; {
			select {
			case <-ended:
				running = false
			case <-tick.C:
				if servesAdder("http://" + address) {
					return "http://" + address
				}
			}
		}
	}
	t.Fatal("it does not start")
	return ""
}

// servesAdder reports whether the example answers at an address, and no other program that has its port.
func servesAdder(base string) bool {
	resp, err := http.Get(base + "/.well-known/agent-card.json")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	var card struct{ Name string }
	return resp.StatusCode == http.StatusOK && json.NewDecoder(resp.Body).Decode(&card) == nil && card.Name == "Adder"
}

// Each example does one task of a team and declines another one, by moves.
func TestTeam_ExamplesSpeakForThemselves(t *testing.T) {
	t.Parallel()
	for _, which := range []string{"Go", "JavaScript", "Python"} {
		t.Run(which, func(t *testing.T) {
			t.Parallel()
			address := start(t, which)
			p := apptest.Start(t)
			ada := p.User(t, "ada")
			ada.Get(http.MethodPost, "/api/v1/agents", map[string]any{"name": "adder", "kind": "a2a", "endpoint": address}, http.StatusCreated, &struct{}{})
			var g struct{ ID string }
			ada.Get(http.MethodPost, "/api/v1/goals", map[string]any{"goal": "Add 17 and 25. Sing.", "members": []string{"adder"}}, http.StatusAccepted, &g)
			req := ada.Request(t.Context(), http.MethodGet, "/api/v1/goals/"+g.ID+"/events", nil)
			req.Header.Set("Accept", "text/event-stream") // which ends with the goal
			resp, err := ada.HTTP.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			b, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			log := string(b)
			for _, want := range []string{`"state":"completed","text":"The sum is 42."`, `It declined: I add numbers, and here are none.`, `"kind":"conclude"`} {
				if !strings.Contains(log, want) {
					t.Errorf("the log lacks %s:\n%s", want, log)
				}
			}
		})
	}
}

// TestTeam_ExamplesAreShort counts lines of code: not comments, imports and blanks.
func TestTeam_ExamplesAreShort(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"main.go", "../team.mjs", "../team.py"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		n, inside := 0, false
		for line := range strings.Lines(string(b)) {
			line = strings.TrimSpace(line)
			switch {
			case line == "import (", strings.HasPrefix(line, `"""`):
				inside = true
			case inside:
				inside = line != ")" && !strings.HasSuffix(line, `"""`)
			case line != "" && !strings.HasPrefix(line, "//") && !strings.HasPrefix(line, "package ") &&
				!strings.HasPrefix(line, "import ") && !strings.HasPrefix(line, "from "):
				n++
			}
		}
		if n > 40 {
			t.Errorf("%s has %d lines", name, n)
		}
		t.Logf("%s: %d", name, n)
	}
}
