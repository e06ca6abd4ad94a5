package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// readyTimeout is long, because a start that takes too long is a figure.
const readyTimeout = 60 * time.Second

// server is a process under load.
type server struct {
	name   string
	addr   string // host:port
	took   time.Duration
	cmd    *exec.Cmd
	exited chan struct{}
}

// start runs a program until it prints "ready URL". Whoever starts it ends it
// with stop or kill.
func start(name, program string, args ...string) (*server, error) {
	s := &server{name: name, cmd: exec.Command(program, args...), exited: make(chan struct{})}
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "AGENTSITE_") {
			s.cmd.Env = append(s.cmd.Env, e)
		}
	}
	var trouble strings.Builder
	s.cmd.Stderr = &trouble
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	ready := make(chan string, 1)
	go func() {
		in := bufio.NewScanner(stdout)
		for in.Scan() {
			if u, ok := strings.CutPrefix(in.Text(), "ready http://"); ok {
				s.took = time.Since(began)
				ready <- u
			}
		}
		s.cmd.Wait()
		close(s.exited)
	}()
	select {
	case s.addr = <-ready:
		return s, nil
	case <-s.exited:
		return nil, fmt.Errorf("%s ended at start: %s", name, trouble.String())
	case <-time.After(readyTimeout):
		s.kill()
		return nil, fmt.Errorf("%s is not ready after %s", name, readyTimeout)
	}
}

func (s *server) stop() {
	s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
	case <-time.After(15 * time.Second):
		s.kill()
	}
}

func (s *server) kill() {
	s.cmd.Process.Kill()
	<-s.exited
}

// cpu is the processor time the process has used, to the nanosecond: the
// kernel's clock of that process, which /proc/PID/stat rounds to 10 ms.
func (s *server) cpu() (time.Duration, error) {
	const cpuclockSched = 2
	clock := uintptr(uint32(^s.cmd.Process.Pid<<3 | cpuclockSched))
	var ts syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return 0, fmt.Errorf("processor time of %s: %w", s.name, errno)
	}
	return time.Duration(ts.Nano()), nil
}

// memory is the resident and the proportional set size in bytes.
func (s *server) memory() (rss, pss int64, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", s.cmd.Process.Pid))
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

// forget drops a folder's files from the page cache, so that they are read
// from the disk again.
func forget(dir string) error {
	list, err := filepath.Glob(filepath.Join(dir, "*"))
	for _, name := range list {
		f, ferr := os.Open(name)
		if ferr != nil {
			continue // a socket
		}
		f.Sync()
		const dontNeed = 4
		if _, _, errno := syscall.Syscall6(syscall.SYS_FADVISE64, f.Fd(), 0, 0, dontNeed, 0, 0); errno != 0 {
			err = errors.Join(err, errno)
		}
		f.Close()
	}
	return err
}
