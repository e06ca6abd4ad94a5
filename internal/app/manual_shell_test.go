package app_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"agentsite/internal/testing/apptest"
)

// requireShell skips a test of the manual's commands where bash or curl is missing, and fails it where they are required.
func requireShell(t *testing.T) {
	t.Helper()
	for _, program := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			if strings.Contains(os.Getenv("AGENTSITE_TEST_REQUIRE"), program) {
				t.Fatal(err)
			}
			t.Skip(program + " is not here")
		}
	}
}

// runCommands runs commands of the manual against a portal, with a token, and returns their output.
func runCommands(t *testing.T, p *apptest.Portal, token *apptest.Client, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
	cmd.Env = append(os.Environ(), "AGENTSITE_PORTAL="+p.Base, "AGENTSITE_TOKEN="+token.Token)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, stderr.String(), out)
	}
	return string(out)
}
