package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestREADME_ConnectsAProgram runs the commands of the README that connect a program as an agent,
// unchanged, as the operator of a portal that was just started.
func TestREADME_ConnectsAProgram(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var commands string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(readme), -1) {
		if strings.Contains(block[1], " agent run ") {
			commands += block[1]
		}
	}
	if commands == "" {
		t.Fatal("README.md has no command that runs an agent")
	}
	// Replace "go run ." by the program under test. The last command replaces the shell by exec, so
	// that a signal ends the command itself.
	script := "go() { shift 2; agentsite \"$@\"; }\n" + strings.Replace(commands, "\ngo run . agent run", "\nexec agentsite agent run", 1)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/readme",
		Setup: func(e *testscript.Env) error {
			e.Vars = append(e.Vars, "HOME="+e.WorkDir)
			e.Values["portals"] = map[string]*exec.Cmd{}
			return os.WriteFile(filepath.Join(e.WorkDir, "readme.sh"), []byte(script), 0o600)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"portal": startPortal, "retry": retry},
	})
}
