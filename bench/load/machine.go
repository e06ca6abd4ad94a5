package main

import (
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agentsite/bench/report"
)

// calibration is how fast this machine does a few small things now, beside
// the figures of the machine that the bars were set on.
type calibration struct {
	loop   time.Duration // sha256 over 4 MiB
	verify time.Duration // ed25519, one signature: 49.5 µs there
	fsync  time.Duration // 4 KiB written and flushed: 112–135 µs there
	trip   time.Duration // loopback TCP there and back: 6.1 µs there
	load1  string
}

func calibrate(dir string) (c calibration, err error) {
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
	f, err := os.Create(filepath.Join(dir, "calibrate"))
	if err != nil {
		return c, err
	}
	defer f.Close()
	var times []float64
	for range 100 {
		t := time.Now()
		if _, err := f.WriteAt(block[:4096], 0); err != nil {
			return c, err
		}
		if err := f.Sync(); err != nil {
			return c, err
		}
		times = append(times, float64(time.Since(t)))
	}
	c.fsync = time.Duration(report.Median(times))
	if c.trip, err = roundTrip(); err != nil {
		return c, err
	}
	b, err := os.ReadFile("/proc/loadavg")
	c.load1 = strings.Fields(string(b) + " ?")[0]
	return c, err
}

// fastest is the time of f when nobody disturbed it.
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

func (c calibration) String() string {
	return fmt.Sprintf("sha256 of 4 MiB %.2f ms, ed25519 verify %.1f µs (49.5), write+fsync %.0f µs (112–135), loopback trip %.1f µs (6.1), load %s",
		float64(c.loop.Microseconds())/1e3, us(c.verify), us(c.fsync), us(c.trip), c.load1)
}

func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// jiffies are the machine's processor time so far: busy, and all.
func jiffies() (busy, all float64) {
	b, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(b), "\n")
	for i, f := range strings.Fields(line)[1:] {
		var n float64
		fmt.Sscan(f, &n)
		if i >= 8 {
			break // guests are in user
		}
		all += n
		if i != 3 && i != 4 {
			busy += n
		}
	}
	return busy, all
}
