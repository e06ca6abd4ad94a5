// Dht runs the acceptance numbers of the DHT in the simulator, which drives the
// product's own nodes, and prints them with their bars and the seed:
//
//	go run ./bench/dht -nodes 1000,10000
//	go run ./bench/dht -nodes 100000 -settled -lookups 2000
//
// 10,000 nodes that join by the protocol take some minutes. With -settled they
// begin with tables as of nodes that have long been there: 10,000 take seconds,
// 100,000 some minutes and 5 GB. The same seed prints the same, but for the
// time it took.
package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentsite/peering/kademlia"
	"agentsite/peering/kademlia/sim"
)

const (
	life = 36 * time.Hour
	gap  = 5 * time.Millisecond
)

type bench struct {
	seed    uint64
	lookups int
	settled bool
	rows    string
	missed  int
}

func main() {
	var (
		b     bench
		sizes = flag.String("nodes", "1000", "sizes of networks, with commas between")
		churn = flag.Duration("churn", 12*time.Hour, "how long nodes come and go, 0 for not")
	)
	flag.Uint64Var(&b.seed, "seed", 1, "where all chance comes from")
	flag.IntVar(&b.lookups, "lookups", 10_000, "lookups of each row")
	flag.BoolVar(&b.settled, "settled", false, "nodes begin with tables instead of joining")
	flag.StringVar(&b.rows, "rows", "up,die,half,mute,lie", "what happens to the networks of -nodes, each row another network of that size")
	apart := flag.Duration("apart", time.Hour, "how long a network is parted in halves, 0 for not")
	flag.Parse()
	fmt.Printf("seed %d\n", b.seed)
	for _, s := range strings.Split(*sizes, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 100 {
			fmt.Fprintf(os.Stderr, "dht: -nodes %q: name sizes of 100 or more\n", s)
			os.Exit(2)
		}
		b.size(n)
	}
	if *churn > 0 {
		b.churn(8*time.Hour, *churn, .9999, .15)
		b.churn(time.Hour, *churn, .998, .3)
	}
	if *apart > 0 {
		b.apart(*apart)
	}
	if b.missed > 0 {
		fmt.Printf("dht: %d bars missed\n", b.missed)
		os.Exit(1)
	}
}

// row prints one line, with what of its bars is missed.
func (b *bench) row(what string, got fmt.Stringer, bars ...string) {
	var missed []string
	for _, m := range bars {
		if m != "" {
			missed = append(missed, m)
		}
	}
	verdict := "met"
	if len(missed) > 0 {
		b.missed++
		verdict = "MISSED: " + strings.Join(missed, ", ")
	}
	fmt.Printf("  %s: %v, %s\n", what, got, verdict)
}

func atLeast(what string, got, want float64) string {
	if got < want {
		return fmt.Sprintf("%s ≥ %.5g", what, want)
	}
	return ""
}

func atMost(what string, got, want float64) string {
	if got > want {
		return fmt.Sprintf("%s ≤ %.5g", what, want)
	}
	return ""
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// network makes one whose keys are stored.
func (b *bench) network(n int) (*sim.Net, []kademlia.ID, sim.Puts) {
	// Small ones take a third less time for half as much memory again. The last
	// one goes before there is another: a large one is 3 GB.
	debug.SetGCPercent(200)
	if n > 20_000 {
		debug.SetGCPercent(50)
		debug.FreeOSMemory()
	}
	s := sim.New(sim.Config{Nodes: n, Seed: b.seed, Settled: b.settled})
	if !b.settled {
		s.Run(time.Hour) // the size of the network is known by then
	}
	keys, puts := s.Store(500, 20*time.Millisecond, life)
	return s, keys, puts
}

func (b *bench) size(n int) {
	if b.has("up") {
		b.up(n)
	}
	for _, c := range []struct {
		row, name string
		share     float64
		do        func(*sim.Net, int)
		found     float64
		rpcs      float64
		p99       time.Duration
	}{
		{"die", "30 % die at once", .3, (*sim.Net).Kill, .9999, 6, 700 * time.Millisecond},
		{"half", "50 % die at once", .5, (*sim.Net).Kill, .999, 0, 0},
		{"mute", "30 % mute", .3, (*sim.Net).Mute, .9999, 6, time.Second},
		{"lie", "30 % lie together", .3, (*sim.Net).Corrupt, .999, 13, 0},
	} {
		if !b.has(c.row) {
			continue
		}
		s, keys, _ := b.network(n)
		s.Each(c.share, func(i int) { c.do(s, i) })
		got := s.Look(keys, b.lookups, gap)
		bars := []string{atLeast("found", got.Success(), c.found)}
		if c.rpcs > 0 {
			bars = append(bars, atMost("RPC", got.RPCs, c.rpcs))
		}
		if c.p99 > 0 {
			bars = append(bars, atMost("p99 ms", ms(got.P99), ms(c.p99)))
		}
		b.row(fmt.Sprintf("%d, %s", n, c.name), got, bars...)
	}
}

func (b *bench) has(row string) bool { return slices.Contains(strings.Split(b.rows, ","), row) }

// up is a network in which nothing goes wrong.
func (b *bench) up(n int) {
	began := time.Now()
	s, keys, puts := b.network(n)
	var known, guess float64
	for i := range s.Len() {
		known += float64(s.Node(i).Known()) / float64(n)
		guess += s.Node(i).Size() / float64(n)
	}
	how := fmt.Sprintf("joined by %d requests", s.Delivered)
	if b.settled {
		how = "began with tables"
	}
	fmt.Printf("%d nodes: %s, %.0f contacts each, who guess %.0f (in %v)\n", n, how, known, guess, time.Since(began).Round(time.Second))
	b.row("put", puts, atLeast("copies", float64(puts.Fewest), 15), atMost("RPC", puts.RPCs, 32))
	hops := math.Log2(float64(n)/20)/(1+math.Log2(20)) + .5
	most := math.Ceil(math.Log(float64(n))/math.Log(20)) + 1
	look := s.Look(keys, b.lookups, gap)
	b.row("all are up", look, atLeast("found", look.Success(), 1), atMost("mean hops", look.Hops, hops), atMost("hops", float64(look.MaxHops), most))
}

// churn is 500 nodes that come and go.
func (b *bench) churn(session, long time.Duration, found, rpcs float64) {
	s := sim.New(sim.Config{Nodes: 500, Seed: b.seed, Keys: 2})
	s.Run(30 * time.Minute)
	got := s.Churn(sim.Churn{Session: session, For: long, Probe: 3 * time.Second})
	b.row(fmt.Sprintf("500 nodes that live %v on average, for %v", session, long), got, atLeast("found", got.Success(), found), atMost("RPC/s and node", got.PerNode, rpcs))
}

// apart is 500 nodes of which halves do not reach each other for a while. In it
// each half finds what its own publish; after it all find what was stored then.
func (b *bench) apart(long time.Duration) {
	const heal = 10 * time.Minute
	s := sim.New(sim.Config{Nodes: 500, Seed: b.seed, Keys: 2})
	s.Run(30 * time.Minute)
	half := func(i int) bool { return i%2 == 0 }
	s.Part(func(x, y int) bool { return half(x) != half(y) })
	s.Run(long)
	keys, puts := s.StoreBy(half, 200, 100*time.Millisecond, life)
	b.row(fmt.Sprintf("500 nodes, halves apart for %v, one stores", long), puts, atLeast("copies", float64(puts.Fewest), 15))
	look := s.LookBy(half, keys, b.lookups, gap)
	b.row("the same half looks", look, atLeast("found", look.Success(), .9999))
	s.Part(nil)
	s.Run(heal)
	look = s.LookBy(func(i int) bool { return !half(i) }, keys, b.lookups, gap)
	b.row(fmt.Sprintf("%v after it the other looks", heal), look, atLeast("found", look.Success(), .999))
}
