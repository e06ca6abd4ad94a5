package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"agentsite/bench/corpus"
	"agentsite/internal/hub"
	"agentsite/internal/index"
)

// mixes are what is searched for; i counts the searches. Those with a floor
// are what plain can do as well.
var mixes = []struct {
	name  string
	floor bool
	query func(i int) hub.Query
}{
	{"two words (corpus.Query)", true, func(i int) hub.Query { return hub.Query{Text: corpus.Query(i % 4096)} }},
	{"one word, most of them rare", true, func(i int) hub.Query { return hub.Query{Text: strings.Fields(corpus.Query(i % 4096))[0]} }},
	{"the commonest word", true, func(int) hub.Query { return hub.Query{Text: "answers"} }},
	{"the two commonest words", true, func(int) hub.Query { return hub.Query{Text: "answers text"} }},
	{"a phrase of the two", false, func(int) hub.Query { return hub.Query{Text: `"answers text"`} }},
	{"two words, filtered", false, func(i int) hub.Query {
		return hub.Query{Text: corpus.Query(i % 4096), Kinds: []string{"a2a"}, Live: []string{"alive"}}
	}},
	{"a misspelt word", false, func(i int) hub.Query {
		w := strings.Fields(corpus.Query(i % 4096))[0]
		return hub.Query{Text: w[:2] + "q" + w[2:]}
	}},
	{"three letters", false, func(i int) hub.Query {
		w := strings.Fields(corpus.Query(i % 4096))[0]
		return hub.Query{Text: w[:min(3, len(w))]}
	}},
	{"everything, by name", false, func(int) hub.Query { return hub.Query{Sort: hub.SortName} }},
	{"everything, newest first", false, func(int) hub.Query { return hub.Query{Sort: hub.SortNewest} }},
}

// mixed is what the rows of latency search for: every tenth search is for the
// commonest word.
func mixed(i int) hub.Query {
	if i%10 == 0 {
		return mixes[2].query(i)
	}
	return mixes[i%2].query(i)
}

const maxFloor = 200_000

func cpu() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// measure prints the rows for an index of n agents.
func measure(w io.Writer, n int) error {
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	fmt.Fprintf(w, "%d agents of bench/corpus, %d processors\n", n, runtime.GOMAXPROCS(0))
	agents := make([]hub.Agent, n)
	for i := range agents {
		agents[i] = corpus.Agent(i)
	}
	before := heap()
	x := index.New()
	var during []time.Duration
	stop, done := make(chan struct{}), make(chan struct{})
	go func() { // a search every ten milliseconds
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
				during = append(during, timed(x, mixed(i)))
			}
		}
	}()
	start, startCPU := time.Now(), cpu()
	i := 0
	x.Load(func() (hub.Agent, bool) {
		if i == n {
			return hub.Agent{}, false
		}
		i++
		return agents[i-1], true
	})
	took, work := time.Since(start), cpu()-startCPU
	close(stop)
	<-done
	fmt.Fprintf(w, "filled at %.0f agents/s, %.1f µs CPU each; meanwhile %d searches, p50 %v p99 %v\n",
		float64(n)/took.Seconds(), float64(work.Microseconds())/float64(n), len(during), percentile(during, 0.5), percentile(during, 0.99))
	fmt.Fprintf(w, "memory %d B/agent, the agent included\n", int64(heap()-before)/int64(n))

	var p *plain // the floor takes several times the memory of the index
	if n <= maxFloor {
		p = newPlain()
		startCPU = cpu()
		for _, a := range agents {
			p.put(a)
		}
		fmt.Fprintf(w, "the floor is filled at %.1f µs CPU each\n", float64((cpu()-startCPU).Microseconds())/float64(n))
	}
	agents = nil
	fmt.Fprintf(w, "\n| search | portal CPU | floor CPU | ratio | p50 | p99 |\n|---|---|---|---|---|---|\n")
	for _, m := range mixes {
		rounds(w, x, p, m.name, m.floor && p != nil, m.query)
	}

	fmt.Fprintln(w)
	quiet := latency(w, x, mixed)
	fmt.Fprintf(w, "mix with every tenth search for the commonest word: quiet p50 %v p99 %v\n", percentile(quiet, 0.5), percentile(quiet, 0.99))
	var put atomic.Int64
	put.Store(int64(n))
	var wg sync.WaitGroup
	stop = make(chan struct{})
	wg.Go(func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				x.Put(corpus.Agent(int(put.Add(1) - 1)))
			}
		}
	})
	busy := latency(w, x, mixed)
	close(stop)
	wg.Wait()
	fmt.Fprintf(w, "while 500/s register: p50 %v p99 %v, %.2f and %.2f of quiet\n", percentile(busy, 0.5), percentile(busy, 0.99),
		ratio(busy, quiet, 0.5), ratio(busy, quiet, 0.99))
	// As many come as go, so that the index is as large as before.
	for i := range 100_000 {
		x.Put(corpus.Agent(int(put.Add(1) - 1)))
		x.Remove(corpus.Agent(i % n).ID)
	}
	after := latency(w, x, mixed)
	fmt.Fprintf(w, "after 100,000 registrations: p50 %v p99 %v, %.2f and %.2f of quiet\n", percentile(after, 0.5), percentile(after, 0.99),
		ratio(after, quiet, 0.5), ratio(after, quiet, 0.99))
	return nil
}

// rounds runs portal and floor in turns and takes the medians.
func rounds(w io.Writer, x *index.Index, p *plain, name string, floor bool, query func(int) hub.Query) {
	const turns, turn = 7, 150 * time.Millisecond
	var ours, theirs, ratios []float64
	var times []time.Duration
	at := 0
	for range turns {
		run := func(do func(hub.Query)) float64 {
			start, from := cpu(), time.Now()
			n := 0
			for ; n < 8 || time.Since(from) < turn; n++ {
				do(query(at + n))
			}
			return float64((cpu() - start).Nanoseconds()) / 1e3 / float64(n)
		}
		a := run(func(q hub.Query) { times = append(times, timed(x, q)) })
		ours = append(ours, a)
		if floor {
			b := run(func(q hub.Query) { p.search(q.Text) })
			theirs, ratios = append(theirs, b), append(ratios, a/b)
		}
		at += 501
	}
	fmt.Fprintf(w, "| %s | %.0f µs |", name, median(ours))
	if floor {
		fmt.Fprintf(w, " %.0f µs | %.2f |", median(theirs), median(ratios))
	} else {
		fmt.Fprint(w, " – | – |")
	}
	fmt.Fprintf(w, " %v | %v |\n", percentile(times, 0.5), percentile(times, 0.99))
}

func timed(x *index.Index, q hub.Query) time.Duration {
	start := time.Now()
	if _, err := x.Search(q); err != nil {
		panic(err) // the queries of this file are well-formed
	}
	return time.Since(start).Round(time.Microsecond)
}

// latency measures searches for three seconds.
func latency(w io.Writer, x *index.Index, query func(int) hub.Query) []time.Duration {
	var list []time.Duration
	from := cpu()
	defer func() {
		fmt.Fprintf(w, "(%.0f µs CPU a search, all the process does) ", float64((cpu()-from).Microseconds())/float64(len(list)))
	}()
	for start, i := time.Now(), 0; time.Since(start) < 3*time.Second; i++ {
		list = append(list, timed(x, query(i)))
	}
	return list
}

func percentile(list []time.Duration, p float64) time.Duration {
	if len(list) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(list))
	return s[min(int(p*float64(len(s))), len(s)-1)]
}

func ratio(a, b []time.Duration, p float64) float64 {
	return float64(percentile(a, p)) / float64(max(1, percentile(b, p)))
}

func median(list []float64) float64 { return slices.Sorted(slices.Values(list))[len(list)/2] }
