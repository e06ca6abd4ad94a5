package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

const readyTimeout = 90 * time.Second

// portal is one portal and its data folder, whether it is running or not.
type portal struct {
	name, binary, addr, data, log, join, token string

	cmd    *exec.Cmd // nil while it is not running
	exited chan struct{}

	// names are the agents registered so far. Only the goroutine that changes agents of this portal
	// uses the fields below.
	names []string
	made  int
}

func (p *portal) replica() string { return filepath.Join(p.data, "replica.db") }

// found creates the data folder with an operator account and an API token.
func (p *portal) found() error {
	if _, err := p.command("a long password for tests\n", "user", "add", "op", "--admin", "--password-stdin", "--data", p.data); err != nil {
		return err
	}
	out, err := p.command("", "token", "add", "--user", "op", "--data", p.data)
	lines := strings.Fields(out)
	if err == nil && len(lines) > 0 {
		p.token = lines[len(lines)-1]
	}
	return err
}

// environ returns this process's environment without the variables that configure a portal.
func environ() (out []string) {
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "AGENTSITE_") {
			out = append(out, e)
		}
	}
	return out
}

// command runs the binary with args and returns its standard output; the error includes all output.
func (p *portal) command(stdin string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.binary, args...)
	var out, errs bytes.Buffer
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = environ(), strings.NewReader(stdin), &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("agentsite %s: %w: %s%s", args[0], err, out.String(), errs.String())
	}
	return out.String(), nil
}

// start starts the portal and waits until it prints that it is ready.
func (p *portal) start() error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	fmt.Fprintf(log, "--- start %s\n", time.Now().Format(time.RFC3339Nano))
	p.cmd = exec.Command(p.binary, "serve", "--listen", p.addr, "--data", p.data, "--log-level", "info")
	if p.join != "" {
		p.cmd.Args = append(p.cmd.Args, "--join", p.join)
	}
	p.cmd.Env, p.cmd.Stderr = environ(), log
	stdout, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		p.cmd = nil
		return err
	}
	ready, exited := make(chan struct{}), make(chan struct{})
	p.exited = exited
	cmd := p.cmd
	go func() {
		in, said := bufio.NewScanner(stdout), false
		for in.Scan() {
			if strings.HasPrefix(in.Text(), "ready ") && !said {
				said = true
				close(ready)
			}
		}
		cmd.Wait()
		close(exited)
	}()
	select {
	case <-ready:
		return nil
	case <-exited:
		return fmt.Errorf("%s ended at its start, see %s", p.name, p.log)
	case <-time.After(readyTimeout):
		return fmt.Errorf("%s is not ready after %s, see %s", p.name, readyTimeout, p.log)
	}
}

// kill ends the process with SIGKILL, so that it cannot write anything more. It does nothing when the
// portal is not running.
func (p *portal) kill() {
	if p.cmd == nil {
		return
	}
	p.cmd.Process.Kill()
	<-p.exited
	p.cmd = nil
}

// stop sends SIGTERM and waits up to 30 s; after that it kills the process and returns an error.
func (p *portal) stop() error {
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
		p.cmd = nil
		return nil
	case <-time.After(30 * time.Second):
		p.kill()
		return fmt.Errorf("%s did not end when it was asked to", p.name)
	}
}

// change registers one agent at random, or changes the description or visibility of one, or deletes
// one.
func (p *portal) change(ctx context.Context, rnd *rand.Rand) error {
	pick := func() string { return p.names[rnd.IntN(len(p.names))] }
	text := fmt.Sprintf("Said %d at last.", rnd.Uint32())
	switch n := rnd.IntN(10); {
	case n < 4 || len(p.names) == 0:
		p.made++
		name := fmt.Sprintf("%s-new-%d", p.name, p.made)
		status, err := p.call(ctx, http.MethodPost, "/agents", map[string]any{"name": name, "kind": "link", "description": text, "visibility": "public"}, nil)
		if err == nil && status == http.StatusCreated {
			p.names = append(p.names, name)
		}
		return err
	case n < 7:
		_, err := p.call(ctx, http.MethodPatch, "/agents/"+pick(), map[string]any{"description": text}, nil)
		return err
	case n < 8:
		_, err := p.call(ctx, http.MethodPatch, "/agents/"+pick(), map[string]any{"visibility": []string{"public", "private"}[rnd.IntN(2)]}, nil)
		return err
	default:
		_, err := p.call(ctx, http.MethodDelete, "/agents/"+pick(), nil, nil)
		return err
	}
}

var client = &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 8}}

// call makes one request to the API and returns its status. It parses a successful answer into out
// unless that is nil.
func (p *portal) call(ctx context.Context, method, path string, in, out any) (int, error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return 0, err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+p.addr+"/api/v1"+path, body)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+p.token)
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 8<<20))
	if err == nil && out != nil && resp.StatusCode < 300 {
		err = json.Unmarshal(b, out)
	}
	return resp.StatusCode, err
}

var logTrouble = regexp.MustCompile(`(?m)^.*(?:panic|DATA RACE|fatal error|level=ERROR|quarantined|left something out|moved aside).*$`)

// troubles returns up to 10 lines of the portal's log that report a crash, an error or a quarantine.
func (p *portal) troubles() (out []string) {
	b, _ := os.ReadFile(p.log)
	for _, l := range logTrouble.FindAll(b, 10) {
		out = append(out, string(l))
	}
	return out
}
