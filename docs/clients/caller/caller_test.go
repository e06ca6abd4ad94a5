package main

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"agentsite/internal/testing/apptest"
)

func TestMain(m *testing.M) {
	if os.Getenv("AGENTSITE_TEST_CALLER") != "" {
		main()
	}
	os.Exit(m.Run())
}

// endpoint starts an example and returns its base.
func endpoint(t *testing.T, which, portal string) string {
	t.Helper()
	args := []string{os.Args[0], portal}
	if which == "JavaScript" {
		node, err := exec.LookPath("node")
		if err != nil {
			if strings.Contains(os.Getenv("AGENTSITE_TEST_REQUIRE"), "node") {
				t.Fatal(err)
			}
			t.Skip("node is not here")
		}
		args = []string{node, "../caller.mjs", portal}
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "AGENTSITE_TEST_CALLER=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

func TestCaller_TellsWhoAsks(t *testing.T) {
	t.Parallel()
	for _, which := range []string{"Go", "JavaScript"} {
		t.Run(which, func(t *testing.T) {
			t.Parallel()
			ours, other := apptest.Start(t), apptest.Start(t)
			base := endpoint(t, which, ours.URL())
			// Signed probes are answered, so the agent lives.
			bob := ours.User(t, "bob").NewToken()
			name := bob.Agent("public", base)
			if a := bob.Must(http.MethodPost, "/api/v1/agents/"+name+"/check", nil, http.StatusOK); !strings.Contains(a.Body, `"alive"`) {
				t.Error(a.Body)
			}
			ask := func(c *apptest.Client, agent string, want int) string {
				t.Helper()
				return c.Must(http.MethodPost, "/v1/chat/completions", map[string]any{"model": agent, "messages": []any{map[string]string{"role": "user", "content": "Who am I? ä"}}}, want).Body
			}
			first := ask(bob, name, http.StatusOK)
			if again := ask(bob, name, http.StatusOK); !strings.Contains(first, `kind=person, id=\"`) || said(again) != said(first) {
				t.Errorf("%s\n%s", first, again)
			}
			if visitor := ask(ours.Guest(t), name, http.StatusOK); !strings.Contains(visitor, "kind=guest") || said(visitor) == said(first) {
				t.Error(visitor)
			}
			// Another portal signs as itself, and nobody without a signature.
			ada := other.User(t, "ada").NewToken()
			if a := ask(ada, ada.Agent("public", base), http.StatusBadGateway); !strings.Contains(a, "agent_failed") {
				t.Error(a)
			}
			resp, err := http.Get(base + "/models")
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusUnauthorized {
				t.Error("who does not sign gets", resp.Status)
			}
		})
	}
}

// said is the answer in a completion.
func said(body string) string {
	_, rest, _ := strings.Cut(body, `"content":"`)
	return rest[:strings.Index(rest, `},`)]
}
