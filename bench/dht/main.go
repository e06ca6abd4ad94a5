// Command dht measures the distributed hash table, with the portal's own parts
// and in the simulator. It prints a table, and ends with status 1 when a judged
// bar is missed.
//
//	go run ./bench/dht                                  about three minutes
//	go run ./bench/dht -quick                           to see that it works
//	unshare --net go run ./bench/dht -rows idle         100 portals without work: eleven minutes
//	go run ./bench/dht -rows up,mute -nodes 10000       a larger network in the simulator
//
// Row get has 100 nodes in this process: databases, registry, guard, client and
// overlay of the portal, with signed requests over TLS and HTTP/2. First all
// answer, then 30 % accept requests and answer none.
//
// Row idle has 100 such nodes that also gossip and get no requests from users.
// Its bytes are those of the whole loopback, so it runs in a network namespace
// of its own or on a machine without other programs.
//
// The other rows run the portal's nodes in the simulator, by a virtual clock:
// all are up, half die, 30 % are mute or lie, nodes come and go for hours, two
// halves of the network do not reach each other for an hour.
// With -settled, nodes begin with full tables instead of joining; 100,000 nodes
// take some minutes and 5 GB then. The same seed gives the same result.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"agentsite/bench/proc"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "dht:", err)
		os.Exit(1)
	}
}

// bench is one run: its settings and its results.
type bench struct {
	proc.Bench
	seed    uint64
	portals int // number of portals in rows get and idle
	// Settings of the simulator:
	sizes    string
	nodes    []int
	lookups  int
	churnFor time.Duration
	settled  bool

	files uint64 // number of files that may be open
}

func run(ctx context.Context, args []string) error {
	if err := loopbackUp(); err != nil {
		return err
	}
	b := &bench{Bench: proc.Bench{Rounds: 5, Round: 3 * time.Second,
		Rows: []string{"get", "up", "half", "mute", "lie", "churn", "apart", "idle"}, Extra: []string{"idle"}}}
	b.Init("dht")
	b.Flags.Uint64Var(&b.seed, "seed", 1, "seed of all random choices")
	b.Flags.IntVar(&b.portals, "portals", 100, "nodes of rows get and idle")
	b.Flags.StringVar(&b.sizes, "nodes", "1000", "sizes of simulated networks, separated by commas")
	b.Flags.IntVar(&b.lookups, "lookups", 10_000, "lookups of each simulated row")
	b.Flags.DurationVar(&b.churnFor, "churn", 4*time.Hour, "how long nodes come and go in row churn")
	b.Flags.BoolVar(&b.settled, "settled", false, "simulated nodes begin with full tables")
	return b.Run(args, b.prepare, func(name string) error {
		switch name {
		case "get":
			return b.get(ctx)
		case "idle":
			return b.idle(ctx)
		case "churn":
			b.churn(8*time.Hour, .9999)
			b.churn(time.Hour, .998)
		case "apart":
			b.apart()
		default:
			for _, n := range b.nodes {
				b.simulate(name, n)
			}
		}
		return ctx.Err()
	})
}

func (b *bench) prepare() (err error) {
	for s := range strings.SplitSeq(b.sizes, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 100 {
			return fmt.Errorf("-nodes %q: use sizes of 100 or more", s)
		}
		b.nodes = append(b.nodes, n)
	}
	if b.portals < 30 {
		return errors.New("-portals: use 30 or more")
	}
	if b.Quick {
		b.portals, b.lookups, b.churnFor = 30, min(b.lookups, 1000), min(b.churnFor, time.Hour)
	}
	// 100 nodes have about 20,000 sockets, because both ends of each connection are in this process.
	b.files, err = proc.OpenFiles(1 << 17)
	return err
}
