package main

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"agentsite/internal/cli"
)

// parallel is the number of scripts that run at once. It is larger than the number of processors,
// because scripts mostly wait for processes.
const parallel = "8"

// TestMain makes this test binary run as the program agentsite inside scripts.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", parallel); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){
		"agentsite": func() {
			os.Exit(cli.Run(context.Background(), os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr))
		},
	})
}

// TestScripts runs the scripts in testdata/script, which do what users do. Each script may start
// several portals.
//
// In addition to the commands of testscript there are
//
//	portal NAME [FLAG…]   start a portal on ./NAME; sets $NAME_URL and $NAME_SETUP
//	portal-stop NAME      SIGTERM, wait until it has drained
//	portal-kill NAME      SIGKILL
//	retry CMD [ARG…]      exec, again and again until it succeeds
//
// and the condition [full], which is true when AGENTSITE_TEST_FULL is set. It is for commands that wait
// for a timeout of the product.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Vars = append(e.Vars, "HOME="+e.WorkDir)
			e.Values["portals"] = map[string]*exec.Cmd{}
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name != "full" {
				return false, fmt.Errorf("there is no condition %s", name)
			}
			return os.Getenv("AGENTSITE_TEST_FULL") != "", nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"portal":      startPortal,
			"portal-stop": func(ts *testscript.TestScript, neg bool, args []string) { endPortal(ts, args[0], syscall.SIGTERM) },
			"retry":       retry,
			"portal-kill": func(ts *testscript.TestScript, neg bool, args []string) { endPortal(ts, args[0], syscall.SIGKILL) },
		},
	})
}

// readyWait is long, because a start takes long on a busy machine under the race detector.
const readyWait = 3 * time.Minute

func startPortal(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 {
		ts.Fatalf("usage: portal NAME [FLAG…]")
	}
	name := args[0]
	cmd := exec.Command(os.Args[0], append([]string{"serve", "--listen", "127.0.0.1:0", "--data", ts.MkAbs(name)}, args[1:]...)...)
	// Package testscript selects the program by the name with which the binary is called.
	cmd.Args[0] = "agentsite"
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "HOME="+ts.Getenv("HOME"))
	var stderr lockedBuffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	portals := ts.Value("portals").(map[string]*exec.Cmd)
	portals[name] = cmd
	ts.Defer(func() {
		if portals[name] == cmd {
			cmd.Process.Kill()
			cmd.Wait()
		}
	})
	ready := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(out).ReadString('\n')
		ready <- line
		io.Copy(io.Discard, out)
	}()
	select {
	case line := <-ready:
		url, ok := strings.CutPrefix(strings.TrimSpace(line), "ready ")
		if !ok {
			cmd.Process.Kill()
			cmd.Wait()
			delete(portals, name)
			ts.Fatalf("portal %s did not get ready: %q\n%s", name, line, stderr.String())
		}
		ts.Setenv(name+"_URL", url)
		if _, rest, ok := strings.Cut(stderr.String(), "setup="); ok {
			secret, _, _ := strings.Cut(rest, "\n")
			ts.Setenv(name+"_SETUP", strings.TrimSpace(secret))
		}
	case <-time.After(readyWait):
		ts.Fatalf("portal %s said nothing in %s", name, readyWait)
	}
}

// retryEvery is the time between two tries of the command retry. It polls, because a process cannot
// notify the script that it is ready.
const retryEvery = 100 * time.Millisecond

// retry is a script command that runs a command until it succeeds and, with -stdout PATTERN, prints
// text that matches the pattern. It fails the test after readyWait.
func retry(ts *testscript.TestScript, neg bool, args []string) {
	says := regexp.MustCompile("")
	if len(args) > 2 && args[0] == "-stdout" {
		re, err := regexp.Compile("(?m)" + args[1])
		ts.Check(err)
		says, args = re, args[2:]
	}
	if len(args) == 0 || neg {
		ts.Fatalf("usage: retry [-stdout PATTERN] CMD [ARG…]")
	}
	tick := time.NewTicker(retryEvery)
	defer tick.Stop()
	for late := time.After(readyWait); ; {
		err := ts.Exec(args[0], args[1:]...)
		if err == nil && says.MatchString(ts.ReadFile("stdout")) {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			ts.Fatalf("%s did not succeed or print %q in %s: %v", args[0], says, readyWait, err)
		}
	}
}

// lockedBuffer is a buffer that can be read while a process writes to it.
type lockedBuffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func endPortal(ts *testscript.TestScript, name string, sig syscall.Signal) {
	portals := ts.Value("portals").(map[string]*exec.Cmd)
	cmd := portals[name]
	if cmd == nil {
		ts.Fatalf("no portal %s runs", name)
	}
	delete(portals, name)
	ts.Check(cmd.Process.Signal(sig))
	err := cmd.Wait()
	if sig == syscall.SIGTERM && err != nil {
		ts.Fatalf("portal %s ended with %v\n%s", name, err, fmt.Sprint(cmd.Stderr))
	}
}
