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

// powerFolder is a folder mounted by the program bench/powerloss, which can simulate a power cut.
type powerFolder struct {
	at    string
	cmd   *exec.Cmd
	in    *os.File
	lines chan string
	done  chan error
}

// mountPower mounts a new folder below work with the files of the folder from, or without files if from
// is "". The caller must call close.
func mountPower(binary, from, work string) (*powerFolder, error) {
	at, err := os.MkdirTemp(work, "mount-")
	if err != nil {
		return nil, err
	}
	f := &powerFolder{at: at, lines: make(chan string, 4), done: make(chan error, 1)}
	f.cmd = exec.Command(binary, "-mount", at)
	if from != "" {
		f.cmd.Args = append(f.cmd.Args, "-from", from)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	f.in, f.cmd.Stdin, f.cmd.Stderr = w, r, os.Stderr
	stdout, err := f.cmd.StdoutPipe()
	if err == nil {
		err = f.cmd.Start()
	}
	if err != nil {
		w.Close()
		return nil, err
	}
	go func() {
		in := bufio.NewScanner(stdout)
		for in.Scan() {
			f.lines <- in.Text()
		}
		close(f.lines)
		f.done <- f.cmd.Wait()
	}()
	if line, err := f.line(); err != nil || line != "mounted" {
		f.close()
		return nil, fmt.Errorf("mount the folder of powerloss: %q, %v", line, err)
	}
	return f, nil
}

func (f *powerFolder) line() (string, error) {
	select {
	case l, ok := <-f.lines:
		if !ok {
			return "", errors.New("powerloss has ended")
		}
		return l, nil
	case <-time.After(30 * time.Second):
		return "", errors.New("powerloss does not answer")
	}
}

// cut writes to image the files that a power cut at this moment would leave. Data that was not flushed
// survives with probability keep. It returns the number of lost bytes.
func (f *powerFolder) cut(image string, keep float64, seed uint64) (lostBytes int64, err error) {
	if _, err := fmt.Fprintf(f.in, "cut %s %g %d\n", image, keep, seed); err != nil {
		return 0, err
	}
	line, err := f.line()
	if err != nil {
		return 0, err
	}
	var files, forgotten, syncs int64
	if _, err := fmt.Sscanf(line, "cut files=%d lost=%d forgotten=%d syncs=%d", &files, &lostBytes, &forgotten, &syncs); err != nil {
		return 0, fmt.Errorf("powerloss: %s", line)
	}
	return lostBytes, nil
}

// close unmounts the folder. The caller must have ended the processes that use it.
func (f *powerFolder) close() {
	f.in.Close()
	select {
	case <-f.done:
	case <-time.After(10 * time.Second):
		f.cmd.Process.Kill()
		<-f.done
		syscall.Unmount(f.at, syscall.MNT_DETACH)
	}
	os.Remove(f.at)
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
