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

// The commands of the README that make a program an agent work as they stand,
// for the operator of a portal that has just been started.
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
	// "go run ." is the program under test. The last command takes the place of
	// the shell, so that a signal ends it.
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
