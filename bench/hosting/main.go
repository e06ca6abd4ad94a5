// Command hosting measures hosted programs in their processes, as the portal runs them: the way to the first byte
// beside bare wazero in such a process, the start from the cache on disk, the end of an endless loop, and many programs
// at once. With real portals it measures the way of a package from one to another, and the harm that hostile modules do
// to a portal.
//
//	go run ./bench/hosting                       all rows: about three minutes
//	go run ./bench/hosting -rows fetch,hostile   some, of first, cold, loop, many, fetch, hostile
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"agentsite/agentruntime/wasm/guest"
	"agentsite/agentruntime/wasm/sandbox"
	"agentsite/bench/proc"
	"agentsite/bench/report"
	"agentsite/internal/testing/wasmtest"
)

func main() {
	if len(os.Args) == 2 {
		switch os.Args[1] {
		case guest.Argument:
			os.Exit(guest.Run())
		case bareArgument:
			os.Exit(runBare())
		}
	}
	calls := flag.Int("calls", 300, "calls of a round")
	rows := flag.String("rows", "first,cold,loop,many,fetch,hostile", "rows to measure")
	portal := flag.String("portal", "", "`PATH` of the portal's binary (default: built from this tree)")
	flag.Parse()
	if err := run(context.Background(), *calls, *rows, *portal); err != nil {
		log.Fatal(err)
	}
}

// The bars of the rows.
const (
	maxFirst = 2 * time.Millisecond
	maxRatio = 1.5
	maxCold  = 150 * time.Millisecond
	maxEnd   = 100 * time.Millisecond
	maxMany  = 50 * time.Millisecond
	maxBytes = 1536 << 20
)

// bench has the modules and the table.
type bench struct {
	dir     string
	portal  string   // the portal's binary
	program []byte   // the example of the manual
	modules sync.Map // by their hash; an int is the number of a variant of the program
	table   report.Table
}

// ReadModule implements sandbox.Modules.
func (b *bench) ReadModule(_ context.Context, hash string) ([]byte, error) {
	m, ok := b.modules.Load(hash)
	if !ok {
		return nil, errors.New("no such module")
	}
	if n, ok := m.(int); ok {
		return b.variant(n), nil
	}
	return m.([]byte), nil
}

// variant returns the program with a custom section that makes it another module. It is made anew for each use, because
// hundreds of modules in this process would count in the measured memory.
func (b *bench) variant(n int) []byte {
	return append(append([]byte{}, b.program...), wasmtest.Raw(0, append(wasmtest.Name("n"), byte(n), byte(n>>8)))...)
}

func (b *bench) addModule(m []byte) string {
	hash := hashOf(m)
	b.modules.Store(hash, m)
	return hash
}

func hashOf(m []byte) string {
	sum := sha256.Sum256(m)
	return hex.EncodeToString(sum[:])
}

func (b *bench) newPool(children int, limits sandbox.Limits) *sandbox.Pool {
	return sandbox.New(sandbox.Config{Command: []string{"/proc/self/exe", guest.Argument},
		Folder: filepath.Join(b.dir, "cache"), CacheBytes: 4 << 30, Children: children, Limits: limits, Modules: b,
		Log: slog.New(slog.DiscardHandler)})
}

// host notes the time of the first reply.
type host struct {
	first time.Time
}

func (h *host) Call(context.Context, string, []byte) ([]byte, error) {
	if h.first.IsZero() {
		h.first = time.Now()
	}
	return nil, nil
}

func (*host) Log(string) {}

func run(ctx context.Context, calls int, wanted, portal string) error {
	dir, err := os.MkdirTemp("", "hosting")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{dir: dir, table: report.Table{Out: os.Stdout}}
	first, err := proc.Calibrate(dir)
	if err != nil {
		return err
	}
	fmt.Println("before:", first)
	file := filepath.Join(dir, "program.wasm")
	build := exec.Command("go", "build", "-buildmode=c-shared", "-o", file, "agentsite/docs/clients/program")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the example: %w: %s", err, out)
	}
	if b.program, err = os.ReadFile(file); err != nil {
		return err
	}
	if b.portal = portal; portal == "" {
		b.portal = filepath.Join(dir, "agentsite")
		if err := proc.Build(b.portal, "."); err != nil {
			return err
		}
	}
	rows := map[string]func(context.Context, int) error{"first": b.measureFirst, "cold": b.measureCold, "loop": b.measureLoop,
		"many": b.measureMany, "fetch": b.measureFetch, "hostile": b.measureHostile}
	for name := range strings.SplitSeq(wanted, ",") {
		row, ok := rows[name]
		if !ok {
			return fmt.Errorf("there is no row %q", name)
		}
		if err := row(ctx, calls); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	last, err := proc.Calibrate(dir)
	if err != nil {
		return err
	}
	b.table.Slow = proc.Slow(first, last)
	if missed := b.table.Print(); missed > 0 {
		return fmt.Errorf("%d bars are missed", missed)
	}
	return nil
}

// pair has the times of a round with the portal's process and with the bare one.
type pair struct{ ours, bare []time.Duration }

// measureFirst measures the time from a call to the first byte that the program streams.
func (b *bench) measureFirst(ctx context.Context, calls int) error {
	module := wasmtest.Says("Hello.").Bytes()
	hash := b.addModule(module)
	p := b.newPool(1, sandbox.DefaultLimits())
	defer p.Close()
	bare, err := startBare(module)
	if err != nil {
		return err
	}
	defer bare.stop()
	rounds, err := proc.Measure(5, func() (r pair, err error) {
		for range calls {
			h, began := &host{}, time.Now()
			if _, err := p.Call(ctx, hash, nil, []byte(`{}`), h); err != nil {
				return r, err
			}
			r.ours = append(r.ours, h.first.Sub(began))
			took, err := bare.call()
			if err != nil {
				return r, err
			}
			r.bare = append(r.bare, took)
		}
		return r, nil
	})
	if err != nil {
		return err
	}
	var all, bareAll []time.Duration
	var ours, floor []time.Duration // the median of each round
	for _, r := range rounds.List {
		all, bareAll = append(all, r.ours...), append(bareAll, r.bare...)
		ours, floor = append(ours, report.Percentile(r.ours, 0.5)), append(floor, report.Percentile(r.bare, 0.5))
	}
	ratios := report.Ratios(ours, floor)
	ratio, p99 := report.Median(ratios), report.Percentile(all, 0.99)
	b.table.Add(report.Line{What: "call of a prepared instance to the first byte", Floor: report.Millis(report.Median(floor)),
		Portal: report.Millis(report.Median(ours)), Ratio: report.Spread(ratios),
		P50: report.Join(report.Millis(report.Percentile(bareAll, 0.5)), report.Millis(report.Percentile(all, 0.5))),
		P99: report.Join(report.Millis(report.Percentile(bareAll, 0.99)), report.Millis(p99)), Others: rounds.Share(),
		Doubt: rounds.Doubt, Bar: "≤ " + report.Millis(maxFirst), Absolute: true, Judged: true,
		Met: report.Percentile(all, 0.5) <= maxFirst})
	b.table.Add(report.Line{What: "the same, by bare wazero in such a process", Ratio: fmt.Sprintf("%.2f", ratio),
		Others: rounds.Share(), Doubt: rounds.Doubt, Bar: fmt.Sprintf("≤ %.1f", maxRatio), Judged: true,
		Met: ratio <= maxRatio})
	return nil
}

// measureCold measures the first answer of a program without a process, with its code in the cache.
func (b *bench) measureCold(ctx context.Context, _ int) error {
	hash := b.addModule(b.program)
	p := b.newPool(1, sandbox.DefaultLimits())
	defer p.Close()
	rounds, err := proc.Measure(5, func() (time.Duration, error) {
		p.Drop(hash)
		began := time.Now()
		_, err := p.Call(ctx, hash, nil, []byte(`{"text":"84.60"}`), &host{})
		return time.Since(began), err
	})
	if err != nil {
		return err
	}
	cold := report.Median(rounds.List)
	b.table.Add(report.Line{What: "an answer from the cache on disk, with the start of the process", Portal: report.Millis(cold),
		Others: rounds.Share(), Doubt: rounds.Doubt, Bar: "≤ " + report.Millis(maxCold), Absolute: true, Judged: true,
		Met: cold <= maxCold})
	return nil
}

// measureLoop measures how late an endless loop ends after its time.
func (b *bench) measureLoop(ctx context.Context, _ int) error {
	limits := sandbox.DefaultLimits()
	limits.Run = 200 * time.Millisecond
	hash := b.addModule(wasmtest.New(wasmtest.Forever()).Bytes())
	p := b.newPool(1, limits)
	defer p.Close()
	rounds, err := proc.Measure(10, func() (time.Duration, error) {
		began := time.Now()
		_, err := p.Call(ctx, hash, nil, []byte(`{}`), &host{})
		took := time.Since(began)
		if f, ok := errors.AsType[*sandbox.Failure](err); !ok {
			return 0, fmt.Errorf("the loop ended with %w", err)
		} else if f == nil {
			return 0, errors.New("the loop did not fail")
		}
		return took - limits.Run, nil
	})
	if err != nil {
		return err
	}
	worst := report.Percentile(rounds.List, 1)
	b.table.Add(report.Line{What: "an endless loop, after its deadline, the worst of ten", Portal: report.Millis(worst),
		Others: rounds.Share(), Doubt: rounds.Doubt, Bar: "≤ " + report.Millis(maxEnd), Absolute: true, Judged: true,
		Met: worst <= maxEnd})
	return nil
}

// The size of the row of many programs.
const (
	hosted = 200
	used   = 20
	rate   = 50 // calls a second
)

// measureMany hosts many programs and calls some of them at a steady rate, whether answers have come or not.
func (b *bench) measureMany(ctx context.Context, calls int) error {
	p := b.newPool(used, sandbox.DefaultLimits())
	defer p.Close()
	var hashes []string
	for i := range hosted {
		hash := hashOf(b.variant(i))
		b.modules.Store(hash, i)
		hashes = append(hashes, hash)
	}
	debug.FreeOSMemory()
	for _, h := range hashes[:used] {
		if _, err := p.Call(ctx, h, nil, []byte(`{"text":"1"}`), &host{}); err != nil {
			return err
		}
	}
	var peak int64
	rounds, err := proc.Measure(3, func() ([]time.Duration, error) {
		times, err := b.callSteadily(ctx, p, hashes[:used], calls)
		if err != nil {
			return nil, err
		}
		m, err := memoryOfAll()
		peak = max(peak, m)
		return times, err
	})
	if err != nil {
		return err
	}
	var all []time.Duration
	for _, r := range rounds.List {
		all = append(all, r...)
	}
	p99 := report.Percentile(all, 0.99)
	b.table.Add(report.Line{What: fmt.Sprintf("%d programs hosted, %d in use, %d calls/s: a call", hosted, used, rate),
		P50: report.Millis(report.Percentile(all, 0.5)), P99: report.Millis(p99), Others: rounds.Share(), Doubt: rounds.Doubt,
		Bar: "p99 ≤ " + report.Millis(maxMany), Absolute: true, Judged: true, Met: p99 <= maxMany})
	b.table.Add(report.Line{What: "the same: memory of all processes", Portal: fmt.Sprintf("%d MiB", peak>>20),
		Bar: fmt.Sprintf("≤ %d MiB", maxBytes>>20), Judged: true, Met: peak <= maxBytes})
	return nil
}

// callSteadily makes calls at the rate of the row and returns their times from the planned beginning.
func (b *bench) callSteadily(ctx context.Context, p *sandbox.Pool, hashes []string, calls int) ([]time.Duration, error) {
	times, errs := make([]time.Duration, calls), make([]error, calls)
	var wait sync.WaitGroup
	tick := time.NewTicker(time.Second / rate)
	defer tick.Stop()
	for i := range calls {
		began := <-tick.C
		wait.Go(func() {
			_, errs[i] = p.Call(ctx, hashes[i%len(hashes)], nil, []byte(`{"text":"84.60"}`), &host{})
			times[i] = time.Since(began)
		})
	}
	wait.Wait()
	return times, errors.Join(errs...)
}
