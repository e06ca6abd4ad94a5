package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// prefix begins the name of every namespace made here. The id of the process that made it follows, so
// that sweep finds the namespaces of processes that have ended.
const prefix = "agentsite-"

// spaces are network namespaces, one for each portal. Two bridges join them into two halves, and a
// cable (a veth pair) joins the halves. The bridges are in a namespace of their own, hub, so that this
// program's namespace stays unchanged.
type spaces struct {
	hub   string
	names []string

	restore func() // undoes raiseNeighbours; nil if there is nothing to undo
}

// able returns the reason why namespaces cannot be made on this machine, "" if they can.
func able() string {
	if os.Geteuid() != 0 {
		return "namespaces need root"
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return "the program ip is not installed"
	}
	name := fmt.Sprintf("%s%d-try", prefix, os.Getpid())
	defer ip("netns", "del", name)
	if err := ip("netns", "add", name); err != nil {
		return "namespaces cannot be made here: " + err.Error()
	}
	if err := ip("-n", name, "link", "add", "try", "type", "bridge"); err != nil {
		return "bridges cannot be made here: " + err.Error()
	}
	return ""
}

func ip(args ...string) error {
	if b, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(b)))
	}
	return nil
}

// sweep removes the namespaces of earlier runs whose process was killed.
func sweep() {
	left, _ := filepath.Glob("/run/netns/" + prefix + "*")
	for _, path := range left {
		name := filepath.Base(path)
		owner, _, _ := strings.Cut(strings.TrimPrefix(name, prefix), "-")
		if pid, err := strconv.Atoi(owner); err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			remove(name)
		}
	}
}

func remove(name string) {
	ip("netns", "del", name)
	os.RemoveAll("/etc/netns/" + name)
}

// address returns the IPv4 address of the i-th namespace, from 0.
func address(i int) string { return fmt.Sprintf("10.77.0.%d", i+1) }

// raiseNeighbours raises the kernel's limit of neighbour entries so that it can hold an entry for every
// pair of n namespaces. All namespaces share one table of 1,024 entries, and connections beyond that
// fail. The caller must call restore, also after an error.
func raiseNeighbours(n int) (restore func(), err error) {
	const file = "/proc/sys/net/ipv4/neigh/default/gc_thresh3"
	if 2*n*n <= 1024 {
		return func() {}, nil
	}
	was, err := os.ReadFile(file)
	if err != nil {
		return func() {}, err
	}
	if most, _ := strconv.Atoi(strings.TrimSpace(string(was))); most >= 2*n*n {
		return func() {}, nil
	}
	return func() { os.WriteFile(file, was, 0) }, os.WriteFile(file, []byte(strconv.Itoa(2*n*n)), 0)
}

// newSpaces makes n namespaces; host names resolve in each of them by a hosts file. The caller must
// call close, also after an error.
func newSpaces(n int, host func(i int) string) (*spaces, error) {
	sweep()
	s := &spaces{hub: fmt.Sprintf("%s%d-hub", prefix, os.Getpid())}
	hosts := "127.0.0.1 localhost\n"
	for i := range n {
		s.names = append(s.names, fmt.Sprintf("%s%d-%d", prefix, os.Getpid(), i))
		hosts += address(i) + " " + host(i) + "\n"
	}
	steps := [][]string{
		{"netns", "add", s.hub},
		{"-n", s.hub, "link", "add", "half0", "type", "bridge"},
		{"-n", s.hub, "link", "add", "half1", "type", "bridge"},
		{"-n", s.hub, "link", "add", "cable0", "type", "veth", "peer", "name", "cable1"},
	}
	for _, half := range []string{"0", "1"} {
		steps = append(steps, []string{"-n", s.hub, "link", "set", "cable" + half, "master", "half" + half},
			[]string{"-n", s.hub, "link", "set", "cable" + half, "up"}, []string{"-n", s.hub, "link", "set", "half" + half, "up"})
	}
	for i, name := range s.names {
		port := fmt.Sprintf("port%d", i)
		steps = append(steps, []string{"netns", "add", name},
			[]string{"link", "add", port, "netns", s.hub, "type", "veth", "peer", "name", "eth0", "netns", name},
			[]string{"-n", s.hub, "link", "set", port, "master", fmt.Sprintf("half%d", s.half(i))},
			[]string{"-n", s.hub, "link", "set", port, "up"},
			[]string{"-n", name, "addr", "add", address(i) + "/24", "dev", "eth0"},
			[]string{"-n", name, "link", "set", "eth0", "up"}, []string{"-n", name, "link", "set", "lo", "up"})
	}
	var err error
	if s.restore, err = raiseNeighbours(n); err != nil {
		return s, err
	}
	for _, step := range steps {
		if err := ip(step...); err != nil {
			return s, err
		}
	}
	for _, name := range s.names {
		dir := filepath.Join("/etc/netns", name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return s, err
		}
		if err := os.WriteFile(filepath.Join(dir, "hosts"), []byte(hosts), 0o644); err != nil {
			return s, err
		}
	}
	return s, nil
}

// half returns the half, 0 or 1, to which the i-th namespace belongs.
func (s *spaces) half(i int) int {
	if i < len(s.names)/2 {
		return 0
	}
	return 1
}

// cut disconnects the two halves when on is true, and connects them again when it is false.
func (s *spaces) cut(on bool) error {
	state := "up"
	if on {
		state = "down"
	}
	return ip("-n", s.hub, "link", "set", "cable0", state)
}

func (s *spaces) close() {
	for _, name := range append(s.names, s.hub) {
		remove(name)
	}
	if s.restore != nil {
		s.restore()
	}
}

// within runs fn on an OS thread that has entered the namespace. Sockets that fn opens stay in the
// namespace. fn must not start goroutines that open sockets, because they run on other threads.
func within(name string, fn func() error) error {
	there, err := os.Open("/run/netns/" + name)
	if err != nil {
		return err
	}
	defer there.Close()
	runtime.LockOSThread()
	here, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer here.Close()
	if err := enter(there); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer func() {
		// When the thread cannot return to its own namespace, it stays locked: the runtime then ends it
		// with the goroutine instead of running other goroutines in the wrong namespace.
		if enter(here) == nil {
			runtime.UnlockOSThread()
		}
	}()
	return fn()
}

func enter(ns *os.File) error {
	if _, _, errno := syscall.RawSyscall(sysSetns, ns.Fd(), syscall.CLONE_NEWNET, 0); errno != 0 {
		return fmt.Errorf("enter %s: %w", ns.Name(), errno)
	}
	return nil
}

// listen opens a TCP listener in the namespace of that name. The listener may be used from any
// goroutine.
func listen(name, addr string) (l net.Listener, err error) {
	err = within(name, func() error {
		l, err = net.Listen("tcp4", addr)
		return err
	})
	return l, err
}

// dial connects to an IPv4 address from the namespace of that name. addr must not need name resolution,
// which would run on another thread.
func dial(ctx context.Context, name, addr string) (c net.Conn, err error) {
	err = within(name, func() error {
		c, err = new(net.Dialer).DialContext(ctx, "tcp4", addr)
		return err
	})
	return c, err
}
