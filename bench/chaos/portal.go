package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"agentsite/internal/testing/pgtest"
)

const (
	readyTimeout   = 20 * time.Second
	drainTimeout   = 10 * time.Second // the drain time that the portal promises
	commandTimeout = 60 * time.Second
)

// portal is one process of the binary on a data folder. The caller must end it with kill or stop.
type portal struct {
	cmd     *exec.Cmd
	url     string
	took    time.Duration // from the start of the process until it printed "ready"
	exited  chan struct{} // closed when the process has ended
	err     error         // exit status as an error, valid once exited is closed
	logPath string
}

// listen is the address of all portals.
var listen = "127.0.0.1:0"

// database is the URL of the PostgreSQL database of all portals, "" for files in their data folders.
var database string

// startServer starts a PostgreSQL server for the portals. The caller stops it.
func startServer() (*pgtest.Server, error) {
	s, err := pgtest.NewServer()
	if err == nil {
		err = s.Start(context.Background())
	}
	if err != nil {
		return nil, fmt.Errorf("start a PostgreSQL server: %w", err)
	}
	database = s.URL("postgres")
	return s, nil
}

// environ returns this process's environment without the variables that configure a portal, but for the
// database.
func environ() []string {
	var out []string
	if database != "" {
		out = append(out, "AGENTSITE_DATABASE="+database)
	}
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "AGENTSITE_") {
			out = append(out, e)
		}
	}
	return out
}

// start starts a portal and appends its log to logPath. The channel receives the portal's URL once it
// is ready. The caller must call kill or stop.
func start(binary, data, logPath string) (*portal, <-chan string, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, err
	}
	defer log.Close()
	fmt.Fprintf(log, "--- start %s\n", time.Now().Format(time.RFC3339Nano))
	p := &portal{exited: make(chan struct{}), logPath: logPath}
	p.cmd = exec.Command(binary, "serve", "--listen", listen, "--data", data, "--log-level", "warn")
	p.cmd.Env, p.cmd.Stderr = environ(), log
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, nil, err
	}
	ready := make(chan string, 1)
	go func() {
		in := bufio.NewScanner(stdout)
		for in.Scan() {
			if u, ok := strings.CutPrefix(in.Text(), "ready "); ok {
				select {
				case ready <- u:
				default:
				}
			}
		}
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	return p, ready, nil
}

// startReady starts a portal and waits up to readyTimeout until it is ready. A portal that ends or
// takes longer is a violation.
func startReady(binary, data, logPath string) (*portal, error) {
	began := time.Now()
	p, ready, err := start(binary, data, logPath)
	if err != nil {
		return nil, err
	}
	select {
	case p.url = <-ready:
		p.took = time.Since(began)
	case <-p.exited:
		return nil, violationf(misbehaved, "the portal ended at start (%v): %s", p.err, tail(logPath))
	case <-time.After(readyTimeout):
		p.kill()
		return nil, violationf(misbehaved, "the portal is not ready after %s: %s", readyTimeout, tail(logPath))
	}
	u, err := url.Parse(p.url)
	if err == nil {
		var ip netip.Addr
		if ip, err = netip.ParseAddr(u.Hostname()); err == nil && !ip.IsLoopback() {
			err = errors.New("is not a loopback address")
		}
	}
	if err != nil {
		p.kill()
		return nil, fmt.Errorf("the portal's address %q: %w", p.url, err)
	}
	return p, nil
}

// kill ends the process with SIGKILL, so that it cannot write anything more.
func (p *portal) kill() {
	p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.exited
}

// stop sends SIGTERM and waits for the end. It is a violation if the portal takes longer than it
// promises or exits with an error.
func (p *portal) stop() error {
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(drainTimeout + time.Second):
		p.kill()
		return violationf(misbehaved, "the portal did not end within %s of SIGTERM", drainTimeout)
	}
	if p.err != nil {
		return violationf(misbehaved, "after SIGTERM the portal ended with %v: %s", p.err, tail(p.logPath))
	}
	return nil
}

// tail returns the log since the last start, at most 2,000 bytes of it, as one line.
func tail(path string) string {
	b, _ := os.ReadFile(path)
	if i := bytes.LastIndex(b, []byte("--- start")); i >= 0 {
		b = b[i:]
	}
	if len(b) > 2000 {
		b = b[len(b)-2000:]
	}
	return strings.Join(strings.Fields(string(b)), " ")
}

var (
	logTrouble   = regexp.MustCompile(`(?m)^.*(?:panic|DATA RACE|fatal error|level=ERROR).*$`)
	crashTrouble = regexp.MustCompile(`(?m)^.*(?:panic|DATA RACE|fatal error).*$`)
)

// troubles returns up to 20 lines of a portal's log that report a crash or, unless crashes is true, an error.
func troubles(logPath string, crashes bool) []string {
	b, _ := os.ReadFile(logPath)
	var out []string
	trouble := logTrouble
	if crashes {
		trouble = crashTrouble
	}
	for _, l := range trouble.FindAll(b, 20) {
		out = append(out, string(l))
	}
	return out
}

// command runs the binary with args and returns its standard output; the error includes its standard
// error.
func command(binary, stdin string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env, cmd.Stdin = environ(), strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("agentsite %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// verify runs the portal's verify command on a data folder, on which no portal may be running.
func verify(binary, data string) error {
	out, err := command(binary, "", "verify", "--data", data)
	if err == nil && !strings.Contains(out, " is whole") {
		err = fmt.Errorf("it printed %q", out)
	}
	if err != nil {
		return violationf(changed, "verify does not say that the data is whole: %v", err)
	}
	return nil
}

// copyFolder copies the regular files of a folder without subfolders.
func copyFolder(from, to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	list, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range list {
		if !e.Type().IsRegular() {
			continue
		}
		b, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, e.Name()), b, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// failure is a violation in the form of an error.
type failure struct{ violation }

func (f failure) Error() string { return f.String() }

func violationf(kind, format string, args ...any) error {
	return failure{violation{kind, fmt.Sprintf(format, args...)}}
}
