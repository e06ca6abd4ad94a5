package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/bench/proc"
	"agentsite/bench/report"
)

const (
	maxGet = 1.2 // largest permitted processor time, in ms
	// clients is the number of clients that call at once in the rounds of row get.
	clients = 16
	// muteShare is the share of nodes that stop answering.
	muteShare = 0.3
	// callTimeout is the time after which a user would have given up.
	callTimeout = 30 * time.Second
)

// gets is the result of one round of row get.
type gets struct {
	cpu    float64 // ms of processor time per get, over all nodes
	speed  float64 // gets per second
	failed int64
}

// get measures the processor time of a get while all nodes are up, and then whether all values are
// found while some nodes do not answer.
func (b *bench) get(ctx context.Context) error {
	net, err := b.build(ctx, nil)
	if err != nil {
		return err
	}
	defer net.Close()
	r := rand.New(rand.NewPCG(b.seed, 1))
	keys := b.Pick(50, 200)
	up := make([]int, b.portals)
	for i := range up {
		up[i] = i
	}
	puts := series(ctx, keys, func(ctx context.Context, i int) error { return net.Put(ctx, up[r.IntN(len(up))], i) })
	b.addSeries(fmt.Sprintf("%d nodes: a record is stored", b.portals), puts)
	rounds, err := proc.Measure(b.Rounds, func() (gets, error) { return net.rush(ctx, b.Round, keys) })
	if err != nil {
		return err
	}
	var cpu, speed []float64
	failed := int64(0)
	for _, g := range rounds.List {
		cpu, speed, failed = append(cpu, g.cpu), append(speed, g.speed), failed+g.failed
	}
	b.Add(report.Line{What: fmt.Sprintf("%d nodes, a get by one of %d clients: CPU of all nodes", b.portals, clients),
		Portal: fmt.Sprintf("%.2f ms, %.0f/s, %d failed", report.Median(cpu), report.Median(speed), failed), Others: rounds.Share(), Doubt: rounds.Doubt,
		Bar: fmt.Sprintf("≤ %.1f ms", maxGet), Judged: true, Absolute: true, Met: report.Median(cpu) <= maxGet && failed == 0})

	r.Shuffle(len(up), func(i, j int) { up[i], up[j] = up[j], up[i] })
	gone := int(muteShare * float64(len(up)))
	for _, i := range up[:gone] {
		net.nodes[i].mute.Store(true)
	}
	up = up[gone:]
	any := func() int { return up[r.IntN(len(up))] }
	b.addSeries("30 % are mute: a first value is found", series(ctx, b.Pick(50, 300), func(ctx context.Context, i int) error { return net.Get(ctx, any(), r.IntN(keys), 1) }))
	b.addSeries("30 % are mute: a record is stored", series(ctx, b.Pick(10, 30), func(ctx context.Context, i int) error { return net.Put(ctx, any(), keys+i) }))
	b.addSeries("30 % are mute: all values are looked for", series(ctx, b.Pick(10, 30), func(ctx context.Context, i int) error { return net.Get(ctx, any(), i, 0) }))
	return ctx.Err()
}

// result is the result of a series of calls, one after the other.
type result struct {
	n, found int
	times    []time.Duration
	err      error // error of one of the failed calls, nil if none failed
}

func series(ctx context.Context, n int, call func(ctx context.Context, i int) error) (r result) {
	for i := range n {
		one, cancel := context.WithTimeout(ctx, callTimeout)
		began := time.Now()
		err := call(one, i)
		r.times = append(r.times, time.Since(began))
		cancel()
		if r.n++; err == nil {
			r.found++
		} else {
			r.err = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	slices.Sort(r.times)
	return r
}

func (b *bench) addSeries(name string, r result) {
	l := report.Line{What: name, Portal: fmt.Sprintf("%d of %d", r.found, r.n), P50: report.Millis(report.Percentile(r.times, 0.5)),
		P99: report.Millis(report.Percentile(r.times, 0.99)), Bar: "100 %", Judged: true, Met: r.found == r.n}
	if r.err != nil {
		l.Portal += fmt.Sprintf(", such as: %v", r.err)
	}
	b.Add(l)
}

// rush has all clients get values from random nodes for the duration during.
func (o *network) rush(ctx context.Context, during time.Duration, keys int) (g gets, err error) {
	var wg sync.WaitGroup
	var done, failed atomic.Int64
	began, used := time.Now(), cpu()
	for range clients {
		wg.Go(func() {
			for time.Since(began) < during && ctx.Err() == nil {
				one, cancel := context.WithTimeout(ctx, callTimeout)
				if o.Get(one, rand.IntN(len(o.nodes)), rand.IntN(keys), 1) != nil {
					failed.Add(1)
				}
				cancel()
				done.Add(1)
			}
		})
	}
	wg.Wait()
	n := float64(max(done.Load(), 1))
	g.speed, g.failed = n/time.Since(began).Seconds(), failed.Load()
	sleep(ctx, 500*time.Millisecond) // a get may continue in the background after its first value
	g.cpu = (cpu() - used).Seconds() * 1e3 / n
	return g, ctx.Err()
}

// sleep waits for the duration d or until the run ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
