package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
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

// portal is the process under test.
type portal struct {
	cmd  *exec.Cmd
	addr string
}

func (b *bench) start(listen string) (*portal, error) {
	p := &portal{cmd: exec.Command(b.binary, "serve", "--data", b.data, "--listen", listen, "--log-level", "warn")}
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "AGENTSITE_") {
			p.cmd.Env = append(p.cmd.Env, e)
		}
	}
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	in := bufio.NewScanner(out)
	for in.Scan() {
		if addr, ok := strings.CutPrefix(in.Text(), "ready http://"); ok {
			p.addr = addr
			return p, nil
		}
	}
	p.end()
	return nil, fmt.Errorf("the portal did not get ready")
}

// end kills the process, as a crash does. It may be called twice.
func (p *portal) end() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

// memory is what is resident, in bytes.
func (p *portal) memory() (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmRSS:" {
			kib, err := strconv.ParseInt(f[1], 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("the kernel does not say how much memory is resident")
}

// ticks is how many of its units of time the kernel counts in a second.
const ticks = 100

// cpu is the processor time used so far.
func (p *portal) cpu() (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0, fmt.Errorf("the kernel does not say how much time was used")
	}
	var sum int64
	for _, s := range f[11:13] {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return time.Duration(sum) * time.Second / ticks, nil
}
