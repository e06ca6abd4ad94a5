package main

import (
	"fmt"
	"os/exec"
	"strings"

	"agentsite/bench/proc"
)

// bench is one run: the program that is measured, its data, and accounts.
type bench struct {
	dir, binary, data string
	tokens            []string
}

// prepare builds the program and makes accounts with a token each.
func (b *bench) prepare(accounts int) error {
	build := exec.Command("go", "build", "-o", b.binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	for i := range accounts {
		user := fmt.Sprintf("owner-%d", i)
		if _, err := b.command("correct horse battery\n", "user", "add", "--password-stdin", user, "--data", b.data); err != nil {
			return err
		}
		said, err := b.command("", "token", "add", "--user", user, "--scope", "agents:write", "--data", b.data)
		if err != nil {
			return err
		}
		lines := strings.Split(strings.TrimSpace(said), "\n")
		b.tokens = append(b.tokens, lines[len(lines)-1])
	}
	return nil
}

func (b *bench) command(stdin string, args ...string) (string, error) {
	cmd := exec.Command(b.binary, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("agentsite %s: %w\n%s", strings.Join(args, " "), err, errs.String())
	}
	return string(out), nil
}

// start starts the portal on the data.
func (b *bench) start(listen string) (*proc.Process, error) {
	return proc.Start("portal", b.binary, "serve", "--data", b.data, "--listen", listen, "--log-level", "warn")
}
