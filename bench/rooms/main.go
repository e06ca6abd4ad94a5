// Command rooms measures how live conversations scale in a real portal, which
// runs as a process of its own, beside a floor: a bare coder/websocket
// broadcast of the same bytes, a goroutine and a channel for each client, with
// neither accounts nor storage (this program with -floor). Both take turns,
// and what counts is the processor time of the server's process.
//
//	go run ./bench/rooms                  all rows: about ten minutes
//	go run ./bench/rooms -quick           smaller and shorter, two minutes
//	go run ./bench/rooms -rows fan,idle
//
// It prints a table and ends with status 1 when a bar is missed.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"agentsite/bench/proc"
	"agentsite/bench/report"
)

// rows in the order in which they run.
var rowNames = []string{"fan", "stall", "idle", "two", "stream", "many", "storm"}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "rooms:", err)
		os.Exit(1)
	}
}

// bench is one run.
type bench struct {
	report.Table
	dir    string
	binary string // of the portal
	floor  string // of bench/floor, which stores messages
	data   *data
	quick  bool
	rounds int
	round  time.Duration
}

func run(args []string, out io.Writer) (err error) {
	b := &bench{Table: report.Table{Out: out}, rounds: 5, round: 3 * time.Second}
	fs := flag.NewFlagSet("rooms", flag.ContinueOnError)
	rows := fs.String("rows", strings.Join(rowNames, ","), "which rows")
	fs.IntVar(&b.rounds, "rounds", b.rounds, "rounds of each side")
	fs.BoolVar(&b.quick, "quick", false, "fewer readers and shorter rounds: to see that it works")
	product := fs.String("portal", "", "`PATH` of the portal's binary; default: built from here")
	floor := fs.Bool("floor", false, "be the floor")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *floor {
		return serveFloor()
	}
	want := strings.Split(*rows, ",")
	for _, r := range want {
		if !slices.Contains(rowNames, r) {
			return fmt.Errorf("there is no row %q; the rows are %s", r, strings.Join(rowNames, ", "))
		}
	}
	if b.quick {
		b.rounds, b.round = min(b.rounds, 2), time.Second
	}
	if err := moreFiles(); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "rooms-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if b.binary = *product; b.binary == "" {
		b.binary = filepath.Join(b.dir, "agentsite")
		if err := proc.Build(b.binary, "."); err != nil {
			return err
		}
	}
	if slices.Contains(want, "two") {
		b.floor = filepath.Join(b.dir, "floor")
		if err := proc.Build(b.floor, "./bench/floor"); err != nil {
			return err
		}
	}
	if b.data, err = seed(filepath.Join(b.dir, "portal"), 500+crew); err != nil {
		return fmt.Errorf("fill a portal: %w", err)
	}
	began := time.Now()
	for _, r := range want {
		at := time.Now()
		if err := b.row(r); err != nil {
			return fmt.Errorf("row %s: %w", r, err)
		}
		fmt.Fprintf(out, "row %s took %s\n", r, time.Since(at).Round(100*time.Millisecond))
	}
	missed := b.Print()
	fmt.Fprintf(out, "\n%d rounds each of %s, %s in all\n", b.rounds, b.round, time.Since(began).Round(time.Second))
	if missed > 0 {
		return fmt.Errorf("%d bars missed", missed)
	}
	return nil
}

func (b *bench) row(name string) error {
	switch name {
	case "fan":
		for _, w := range []int{1, 32} {
			if err := b.fan(b.pick(300, 1000), w); err != nil {
				return err
			}
		}
		return nil
	case "stall":
		return b.stall(b.pick(100, 1000))
	case "idle":
		for _, n := range []int{b.pick(200, 1000), b.pick(1000, 10_000)} {
			if err := b.idle(n); err != nil {
				return err
			}
		}
		return nil
	case "two":
		return b.two()
	case "stream":
		return b.stream(b.pick(100, 1000))
	case "many":
		return b.many(b.pick(50, 500))
	}
	return b.storm(b.pick(500, 5000))
}

func (b *bench) pick(quick, full int) int {
	if b.quick {
		return quick
	}
	return full
}

// moreFiles lets this process and those it starts hold as many sockets as the
// system allows.
func moreFiles() error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return err
	}
	l.Cur = l.Max
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l)
}
