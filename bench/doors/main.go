// Command doors compares calls by clients of other protocols with the same calls of sample servers,
// which are built with the protocols' own Go SDKs: a blocking send by A2A 1.0 over JSON-RPC, and a tool
// call by both versions of MCP. The samples answer from memory, without accounts; the portal checks a
// token and has the task on disk before it answers. All servers are processes of their own, take turns,
// and are called by the same client. The program prints a table, and ends with status 1 when a judged
// bar is missed.
//
//	go run ./bench/doors                  all rows: about two minutes
//	go run ./bench/doors -quick           to see that it works
//	go run ./bench/doors -rows a2a -c 16
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"agentsite/bench/proc"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "doors:", err)
		os.Exit(1)
	}
}

// bench is one run: its settings and its results.
type bench struct {
	proc.Bench
	people      int // number of accounts that make the requests in turn
	connections string
	atOnce      []int
}

func run(args []string) error {
	if len(args) == 2 && args[0] == "-sample" {
		return serveSample(args[1])
	}
	b := &bench{Bench: proc.Bench{Rounds: 5, Round: 1200 * time.Millisecond, Rows: []string{"a2a", "mcp"}}}
	b.Init("doors")
	b.Flags.IntVar(&b.people, "people", 64, "accounts that call, each with a token: one may be in 10,000 conversations only")
	b.Flags.StringVar(&b.connections, "c", "16,64", "connections that call at once, one line of row a2a for each; row mcp takes the first")
	return b.Run(args, b.prepare, func(name string) error {
		return map[string]func() error{"a2a": b.a2a, "mcp": b.mcp}[name]()
	})
}

func (b *bench) prepare() error {
	for s := range strings.SplitSeq(b.connections, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > sessions {
			return fmt.Errorf("-c %q: use numbers from 1 to %d", s, sessions)
		}
		b.atOnce = append(b.atOnce, n)
	}
	if b.people < 1 {
		return fmt.Errorf("-people %d: use 1 or more", b.people)
	}
	return b.BuildPortal()
}
