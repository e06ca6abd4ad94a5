package main

import (
	"crypto/ed25519"
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// cpu is the processor time that this process used.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it has no way to fail
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// speed is what checking a signature costs here now, in µs of processor time: 50
// on a quiet machine of the kind that other figures are of.
func speed() float64 {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return 0
	}
	text := make([]byte, 256)
	sig := ed25519.Sign(private, text)
	const checks = 5000
	used := cpu()
	for range checks {
		if !ed25519.Verify(public, text, sig) {
			panic("a good signature does not hold")
		}
	}
	return float64((cpu() - used).Microseconds()) / checks
}

// Memory is what lives now, after a collection.
type Memory struct {
	Heap, Stacks int64
	RSS          int64
	Goroutines   int
}

func memory() Memory {
	for range 3 { // finalizers free more
		runtime.GC()
	}
	// Not HeapAlloc: what was not swept yet counts there.
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(s)
	return Memory{int64(s[0].Value.Uint64()), int64(s[1].Value.Uint64()), rss(), runtime.NumGoroutine()}
}

func rss() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	f := strings.Fields(string(b))
	n, _ := strconv.ParseInt(f[1], 10, 64)
	return n * int64(os.Getpagesize())
}

// loopback is how many bytes were sent over it, with all headers.
func loopback() int64 {
	b, err := os.ReadFile("/proc/self/net/dev")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "lo:"); ok {
			f := strings.Fields(rest)
			n, _ := strconv.ParseInt(f[8], 10, 64)
			return n
		}
	}
	return 0
}

// loopbackUp brings up the loopback of a new network namespace.
func loopbackUp() error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	var req struct {
		name  [16]byte
		flags uint16
		_     [22]byte
	}
	copy(req.name[:], "lo")
	req.flags = syscall.IFF_UP | syscall.IFF_RUNNING
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&req))); errno != 0 {
		return errno
	}
	return nil
}

// raiseFiles allows as many open files as the system lets us: 100 nodes have
// some 20,000 connection ends.
func raiseFiles() {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return
	}
	const enough = 1 << 17
	if l.Max < enough { // only root may
		if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: enough, Max: enough}) == nil {
			return
		}
	}
	l.Cur = l.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		fmt.Fprintln(os.Stderr, "peers: open files cannot be raised:", err)
	}
}

func maxFiles() uint64 {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 1024
	}
	return l.Cur
}
