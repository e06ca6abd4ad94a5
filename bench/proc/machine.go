package proc

import (
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Speed of the machine for which the absolute bars were set, and the slowdown up to which they are
// judged on another machine.
const (
	barVerify = 49500 * time.Nanosecond // verification of one ed25519 signature
	barFsync  = 135 * time.Microsecond  // writing 4 KiB and flushing them
	tolerance = 1.1
)

// Calibration is the time that this machine takes for a few small jobs.
type Calibration struct {
	loop   time.Duration // SHA-256 of 4 MiB
	verify time.Duration
	fsync  time.Duration
	trip   time.Duration // one byte to a loopback TCP socket and back
	load   string
}

// Calibrate measures the machine. It writes a file in dir, which must be on the disk that the benchmark
// uses.
func Calibrate(dir string) (c Calibration, err error) {
	block := make([]byte, 4<<20)
	c.loop = fastest(15, func() { sha256.Sum256(block) })
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return c, err
	}
	sig := ed25519.Sign(private, block[:200])
	c.verify = fastest(15, func() {
		for range 20 {
			ed25519.Verify(public, block[:200], sig)
		}
	}) / 20
	name := filepath.Join(dir, "calibrate")
	f, err := os.Create(name)
	if err != nil {
		return c, err
	}
	defer os.Remove(name)
	defer f.Close()
	var times []time.Duration
	for range 100 {
		t := time.Now()
		if _, err := f.WriteAt(block[:4096], 0); err != nil {
			return c, err
		}
		if err := f.Sync(); err != nil {
			return c, err
		}
		times = append(times, time.Since(t))
	}
	slices.Sort(times)
	c.fsync = times[len(times)/2]
	if c.trip, err = roundTrip(); err != nil {
		return c, err
	}
	b, err := os.ReadFile("/proc/loadavg")
	c.load = strings.Fields(string(b) + " ?")[0]
	return c, err
}

// fastest runs f n times and returns the shortest time, that of the run that other programs disturbed
// least.
func fastest(n int, f func()) time.Duration {
	best := time.Hour
	for range n {
		t := time.Now()
		f()
		best = min(best, time.Since(t))
	}
	return best
}

func roundTrip() (time.Duration, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err == nil {
			io.Copy(c, c)
			c.Close()
		}
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return 0, err
	}
	defer c.Close()
	var b [1]byte
	return fastest(20, func() {
		for range 100 {
			c.Write(b[:])
			io.ReadFull(c, b[:])
		}
	}) / 100, nil
}

func (c Calibration) String() string {
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
	return fmt.Sprintf("sha256 of 4 MiB %.2f ms, ed25519 verify %.1f µs, write+fsync %.0f µs, loopback trip %.1f µs, load average %s",
		us(c.loop)/1e3, us(c.verify), us(c.fsync), us(c.trip), c.load)
}

// Slow returns the reason why absolute bars cannot be judged in a run between the two calibrations, ""
// if they can.
func Slow(first, last Calibration) string {
	if d := float64(last.loop)/float64(first.loop) - 1; max(d, -d) > tolerance-1 {
		return fmt.Sprintf("the speed of the machine changed by %.0f %%", d*100)
	}
	for _, x := range []struct {
		name      string
		here, bar time.Duration
	}{
		{"an ed25519 check", max(first.verify, last.verify), barVerify},
		{"write+fsync", max(first.fsync, last.fsync), barFsync},
	} {
		if float64(x.here) > tolerance*float64(x.bar) {
			return fmt.Sprintf("machine slower than that of the bars, %s %s instead of %s", x.name, x.here.Round(100*time.Nanosecond), x.bar)
		}
	}
	return ""
}

// OpenFiles raises the limit of open files of this process and its children to n, or as far as the
// system allows, and returns the new limit.
func OpenFiles(n uint64) (uint64, error) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, err
	}
	if l.Max < n { // only root may raise the hard limit
		if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: n, Max: n}) == nil {
			return n, nil
		}
	}
	l.Cur = l.Max
	return l.Cur, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l)
}
