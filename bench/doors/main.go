// Command doors measures what a call through the doors for other people's
// clients costs, beside the sample servers of the protocols' own Go SDKs: a
// blocking send by A2A 1.0 over JSON-RPC, and a tool call by MCP in both of
// its eras. The samples answer from memory, without accounts; the portal
// checks a token and has the task on disk before it answers. All run as
// processes of their own, take turns, and are asked by the same client.
//
//	go run ./bench/doors                  all rows: about four minutes
//	go run ./bench/doors -quick           two short rounds: to see that it works
//	go run ./bench/doors -rows a2a -c 16
//
// It prints a table and ends with status 1 when a bar is missed. What counts
// for A2A is requests answered in a second; both sides and the client share
// the machine.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentsite/bench/proc"
	"agentsite/bench/report"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "doors:", err)
		os.Exit(1)
	}
}

// rowNames in the order in which they run.
var rowNames = []string{"a2a", "mcp"}

// bench is one run.
type bench struct {
	report.Table
	dir    string
	binary string // of the portal
	people int    // who ask in turn
	rounds int
	round  time.Duration
	atOnce []int // connections, a line for each
}

func run(args []string, out io.Writer) error {
	b := &bench{Table: report.Table{Out: out}, rounds: 5, round: 3 * time.Second, atOnce: []int{1, 16, 64}}
	fs := flag.NewFlagSet("doors", flag.ContinueOnError)
	rows := fs.String("rows", strings.Join(rowNames, ","), "which rows")
	fs.IntVar(&b.rounds, "rounds", b.rounds, "rounds of each side")
	fs.IntVar(&b.people, "people", 1, "how many people ask, each with a token")
	quick := fs.Bool("quick", false, "two short rounds at 16 connections: to see that it works")
	product := fs.String("portal", "", "`PATH` of the portal's binary; default: built from here")
	atOnce := fs.String("c", "", "how many connections ask at once, separated by commas")
	sample := fs.String("sample", "", "be the sample server of a protocol: a2a or mcp")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *sample != "" {
		return serveSample(*sample)
	}
	if b.people < 1 {
		return fmt.Errorf("-people %d: somebody has to ask", b.people)
	}
	want := strings.Split(*rows, ",")
	for _, r := range want {
		if !slices.Contains(rowNames, r) {
			return fmt.Errorf("there is no row %q; the rows are %s", r, strings.Join(rowNames, ", "))
		}
	}
	if *quick {
		b.rounds, b.round, b.atOnce = min(b.rounds, 2), 500*time.Millisecond, []int{16}
	}
	if *atOnce != "" {
		b.atOnce = nil
		for s := range strings.SplitSeq(*atOnce, ",") {
			n, err := strconv.Atoi(s)
			if err != nil || n < 1 || n > sessions {
				return fmt.Errorf("-c %q: use numbers from 1 to %d", s, sessions)
			}
			b.atOnce = append(b.atOnce, n)
		}
	}
	var err error
	if b.dir, err = os.MkdirTemp("", "doors-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if b.binary = *product; b.binary == "" {
		b.binary = filepath.Join(b.dir, "agentsite")
		if err := proc.Build(b.binary, "."); err != nil {
			return err
		}
	}
	began := time.Now()
	for _, r := range want {
		row := map[string]func() error{"a2a": b.a2a, "mcp": b.mcp}[r]
		if err := row(); err != nil {
			return fmt.Errorf("row %s: %w", r, err)
		}
	}
	missed := b.Print()
	load, _ := os.ReadFile("/proc/loadavg")
	fmt.Fprintf(out, "\n%d rounds each of %s, %s in all, load average %s", b.rounds, b.round, time.Since(began).Round(time.Second), load)
	if missed > 0 {
		return fmt.Errorf("%d bars missed", missed)
	}
	return nil
}
