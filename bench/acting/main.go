// Command acting measures prompt agents with a scripted model, which answers at once, in a process of its own.
//
// Row streams: readers of the OpenAI door get streams of a model through a prompt agent, and in turn through a plain
// reverse proxy, which is the floor. The model writes the time into each chunk, so that the time on the way is known.
// Row hops: an agent asks a second one, which asks a third one, and so on. All are prompt agents, each on another portal
// than the one before, of three portals of a network on this machine.
//
//	go run ./bench/acting                  both rows: about eight minutes
//	go run ./bench/acting -rows streams -streams 100
//	go run ./bench/acting -rows hops
package main

import (
	"fmt"
	"os"
	"time"

	"agentsite/bench/proc"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "acting:", err)
		os.Exit(1)
	}
}

// bench is one run: its settings and its results.
type bench struct {
	proc.Bench
	streams int
	rate    int // chunks a second of each stream
}

func run(args []string) error {
	if len(args) == 2 && args[0] == "-model" {
		return serveModel(args[1])
	}
	if len(args) == 2 && args[0] == "-proxy" {
		return serveProxy(args[1])
	}
	b := &bench{Bench: proc.Bench{Rounds: 5, Round: 5 * time.Second, Rows: []string{"streams", "hops"}}}
	b.Init("acting")
	b.Flags.IntVar(&b.streams, "streams", 500, "streams at the same time")
	b.Flags.IntVar(&b.rate, "rate", 30, "chunks a second of each stream")
	return b.Run(args, b.BuildPortal, func(name string) error {
		return map[string]func() error{"streams": b.measureStreams, "hops": b.measureHops}[name]()
	})
}

// startChild starts this program as a model or as a proxy. The caller must end it.
func startChild(role, argument string) (*proc.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return proc.Start(role, self, "-"+role, argument)
}
