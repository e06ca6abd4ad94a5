// Command gate runs the project's tests for .ci/run, bench/steady and bench/nightly.
//
//	go run ./bench/gate test [-flaky FILE] [FLAG=VALUE…] PACKAGE…
//	go run ./bench/gate steady [-n N] [-full] [PACKAGE…]
//
// Command test runs `go test` once and repeats up to three failed tests, by the rules in rules.go.
// Command steady runs the test binaries in shuffled order on a busy machine. The program does not
// depend on the product, except for the package names in rules.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// errFailed is the result of a run in which tests failed. The failures are printed already, so main
// prints nothing more.
var errFailed = errors.New("tests failed")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		if !errors.Is(err, errFailed) {
			fmt.Fprintln(os.Stderr, "gate:", err)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	usage := errors.New("usage: gate test [-flaky FILE] [FLAG=VALUE…] PACKAGE… | gate steady [-n N] [-full] [PACKAGE…]")
	if len(args) == 0 {
		return usage
	}
	switch args[0] {
	case "test":
		args = args[1:]
		g := gate{out: stdout, errout: stderr}
		if len(args) > 1 && args[0] == "-flaky" {
			g.flakyFile, args = args[1], args[2:]
		}
		return g.run(ctx, args)
	case "steady":
		flags := flag.NewFlagSet("steady", flag.ContinueOnError)
		flags.SetOutput(stderr)
		s := steady{out: stdout}
		flags.IntVar(&s.rounds, "n", 20, "number of rounds")
		flags.BoolVar(&s.full, "full", false, "set AGENTSITE_TEST_FULL: run the slow suites whole")
		flags.IntVar(&s.busy, "busy", 4, "number of processes that compete with the tests")
		flags.Int64Var(&s.seed, "seed", 0, "shuffle seed of the first round, which later rounds count up (default: the time)")
		flags.DurationVar(&s.timeout, "timeout", steadyTimeout, "time limit of one test binary")
		flags.StringVar(&s.dir, "o", "bench/out/steady", "folder for the output of failed test binaries; emptied first")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		if s.packages = flags.Args(); len(s.packages) == 0 {
			s.packages = []string{"./..."}
		}
		return s.run(ctx)
	case "busy":
		spin(stdin)
		return nil
	}
	return usage
}

// command returns a command in a process group of its own. When ctx ends the
// group is interrupted, and killed if it has not ended ten seconds later.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		pid := cmd.Process.Pid
		time.AfterFunc(10*time.Second, func() { _ = syscall.Kill(-pid, syscall.SIGKILL) })
		return syscall.Kill(-pid, syscall.SIGINT)
	}
	cmd.WaitDelay = 15 * time.Second
	return cmd
}

// splitArgs separates the flags of `go test`, each in the form -flag or
// -flag=value, from the packages after them.
func splitArgs(args []string) (flags, packages []string) {
	for i, a := range args {
		if !strings.HasPrefix(a, "-") {
			return args[:i], args[i:]
		}
	}
	return args, nil
}
