// Package proc runs benchmarks: it starts the programs under load as processes of their own, reads
// their processor time and memory from the kernel, repeats rounds that other programs disturbed, and
// calibrates the machine.
package proc

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

const (
	// readyTimeout is longer than any start should take, because a slow start is a result to report,
	// not an error.
	readyTimeout = time.Minute
	stopTimeout  = 15 * time.Second
)

// Process is a program that printed that it is ready. The caller must end it with Stop or Kill.
type Process struct {
	Name string
	Addr string // host:port at which it serves HTTP
	// Took is the time from the start of the process until it was ready.
	Took time.Duration

	cmd    *exec.Cmd
	exited chan struct{}
}

// Build builds a package of this module without symbols, as releases are built. The working directory
// must be inside the module.
func Build(out, pkg string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w: %s", pkg, err, bytes.TrimSpace(b))
	}
	return nil
}

// Start starts a program and waits until it prints "ready http://ADDR". Environment variables that
// configure a portal are removed. The caller must call Stop or Kill.
func Start(name, program string, args ...string) (*Process, error) {
	p := &Process{Name: name, cmd: exec.Command(program, args...), exited: make(chan struct{})}
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "AGENTSITE_") {
			p.cmd.Env = append(p.cmd.Env, e)
		}
	}
	var trouble strings.Builder
	p.cmd.Stderr = &trouble
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	setLive(p, true)
	ready := make(chan string, 1)
	go func() {
		in := bufio.NewScanner(stdout)
		for in.Scan() {
			if addr, ok := strings.CutPrefix(in.Text(), "ready http://"); ok {
				p.Took = time.Since(began)
				ready <- addr
			}
		}
		p.cmd.Wait()
		setLive(p, false)
		close(p.exited)
	}()
	select {
	case p.Addr = <-ready:
		return p, nil
	case <-p.exited:
		return nil, fmt.Errorf("%s ended at start: %s", name, trouble.String())
	case <-time.After(readyTimeout):
		p.Kill()
		return nil, fmt.Errorf("%s is not ready after %s", name, readyTimeout)
	}
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Stop sends SIGTERM, and kills the process if it does not end in time.
func (p *Process) Stop() {
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(stopTimeout):
		p.Kill()
	}
}

// Kill ends the process with SIGKILL, as a crash would. It may be called twice.
func (p *Process) Kill() {
	p.cmd.Process.Kill()
	<-p.exited
}

// CPU returns the processor time that the process has used, in nanoseconds. It reads the kernel's clock
// of the process, because /proc/PID/stat has a resolution of 10 ms only.
func (p *Process) CPU() (time.Duration, error) {
	const cpuclockSched = 2
	clock := uintptr(uint32(^p.PID()<<3 | cpuclockSched))
	var ts syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return 0, fmt.Errorf("processor time of %s: %w", p.Name, errno)
	}
	return time.Duration(ts.Nano()), nil
}

// Memory returns the resident and the proportional set size in bytes.
func (p *Process) Memory() (rss, pss int64, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.PID()))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		n, _ := strconv.ParseInt(f[1], 10, 64)
		switch f[0] {
		case "Rss:":
			rss = n << 10
		case "Pss:":
			pss = n << 10
		}
	}
	return rss, pss, nil
}
