package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// network is a DHT whose nodes are all in this process. Nodes and keys are
// named by number. Its methods are safe for concurrent use.
type network interface {
	// Base is the memory that was there before there was a DHT, such as that of
	// databases, and Joining when the DHT began.
	Base() Memory
	Joining() time.Time
	// Put stores a value under a key, signed anew, from a node on.
	Put(ctx context.Context, node, key int) error
	// First gets one genuine value of a key, whichever comes first; Full asks
	// all that the implementation asks by itself when it wants the newest.
	First(ctx context.Context, node, key int) error
	Full(ctx context.Context, node, key int) error
	// RPCs is how many requests of the DHT were sent, ever.
	RPCs() int64
	// Table is how many contacts a node has on average.
	Table() float64
	// Value is how many bytes one has as it is stored.
	Value() int
	// Kill ends a node at once, Mute has it answer nothing more although it
	// still takes what comes.
	Kill(node int)
	Mute(node int)
	// CloseIdle closes connections that nobody uses; false where there are none.
	CloseIdle() bool
	// Ends is how many ends of connections there are.
	Ends() int
	Close()
}

// Series is some operations of a kind, one after the other.
type Series struct {
	N, Found int
	RPCs     float64 // for each
	P50, P99 time.Duration
	CPU      time.Duration // for each, of all nodes together
	// Cut says that it was ended before all were done.
	Cut bool
	Why string // an error among those that failed
}

func (s Series) success() float64 {
	if s.N == 0 {
		return 0
	}
	return float64(s.Found) / float64(s.N)
}

// Rush is operations of several clients at once.
type Rush struct {
	PerSecond float64
	CPU       time.Duration // for each
	Failed    int
	RPCs      float64
}

// Result is all that was measured of one network.
type Result struct {
	Alone        bool // in a network namespace
	Joined       time.Duration
	Table        float64
	Value        int
	Put          Series
	First, Full  Series
	GetRush      Rush
	PutRush      Rush
	Base         Memory
	Warm, Closed Memory
	WarmEnds     int
	HasClosed    bool
	IdleCPU      float64 // CPU-ms/s and node
	IdleBytes    float64 // in and out, B/s and node
	KillFirst    Series
	KillFull     Series
	MuteFirst    Series
	MutePut      Series
	MuteFull     Series
	Nodes        int
}

const (
	// opTimeout ends an operation that a user would have given up.
	opTimeout = 30 * time.Second
	// phaseTimeout ends a series in which each operation hangs.
	phaseTimeout = time.Minute
	share        = 0.3 // of nodes that die or fall silent
)

// bench is the load on one network.
type bench struct {
	cfg  Config
	net  network
	rand *rand.Rand
	up   []int // nodes that are asked
	r    Result
}

func load(ctx context.Context, cfg Config, mute bool, profile, name string, make func(context.Context, Config) (network, error)) (*Result, error) {
	profiled, err := profiles(profile, name+".join")
	if err != nil {
		return nil, err
	}
	net, err := make(ctx, cfg)
	profiled()
	if err != nil {
		return nil, err
	}
	defer net.Close()
	b := &bench{cfg: cfg, net: net, rand: rand.New(rand.NewPCG(cfg.Seed, 1))}
	for i := range cfg.Nodes {
		b.up = append(b.up, i)
	}
	fmt.Fprintf(os.Stderr, "  %s has joined after %v, %v of processor time with all before\n", name, time.Since(net.Joining()).Round(time.Second), cpu().Round(time.Second))
	b.r.Joined, b.r.Nodes = time.Since(net.Joining()), cfg.Nodes
	settle(ctx, 2*time.Second)
	b.r.Table = net.Table()
	put := b.series(ctx, cfg.Keys, net.Put, true)
	b.r.Value = net.Value()
	if mute {
		b.lose(net.Mute)
		b.r.MuteFirst = b.series(ctx, cfg.Gets/2, net.First, false)
		b.r.MutePut = b.series(ctx, 50, func(ctx context.Context, node, key int) error { return net.Put(ctx, node, cfg.Keys+key%50) }, true)
		b.r.MuteFull = b.series(ctx, 50, net.Full, false)
		return &b.r, ctx.Err()
	}
	b.r.Put = put
	b.r.First = b.series(ctx, cfg.Gets, net.First, false)
	b.r.Full = b.series(ctx, cfg.Keys, net.Full, false)
	if profiled, err = profiles(profile, name+".get"); err != nil {
		return nil, err
	}
	b.r.GetRush = b.rush(ctx, net.First, func() int { return b.rand.IntN(cfg.Keys) })
	profiled()
	settle(ctx, time.Second)
	b.r.Base, b.r.Warm, b.r.WarmEnds = net.Base(), memory(), net.Ends()
	heap(profile, name+".warm")
	if cfg.Idle > 0 {
		settle(ctx, 2*time.Second)
		c, bytes := cpu(), loopback()
		settle(ctx, time.Duration(cfg.Idle)*time.Second)
		each := float64(cfg.Idle * cfg.Nodes)
		b.r.IdleCPU = float64((cpu() - c).Microseconds()) / 1000 / each
		b.r.IdleBytes = 2 * float64(loopback()-bytes) / each
	}
	var fresh atomic.Int64 // keys of the puts
	if b.r.HasClosed = net.CloseIdle(); b.r.HasClosed {
		settle(ctx, 2*time.Second)
		b.r.Closed = memory()
		heap(profile, name+".closed")
	}
	// Connections are opened again, as puts ask nearly all.
	fresh.Store(1 << 20)
	b.rush(ctx, net.Put, func() int { return b.cfg.Keys + int(fresh.Add(1)) })
	fresh.Store(0)
	if profiled, err = profiles(profile, name+".put"); err != nil {
		return nil, err
	}
	b.r.PutRush = b.rush(ctx, net.Put, func() int { return cfg.Keys + int(fresh.Add(1)) })
	profiled()
	settle(ctx, time.Second)
	b.lose(net.Kill)
	b.r.KillFirst = b.series(ctx, cfg.Gets/2, net.First, false)
	b.r.KillFull = b.series(ctx, 100, net.Full, false)
	return &b.r, ctx.Err()
}

// profiles begins a profile of the processor in a folder, none for "", and
// returns what ends it.
func profiles(folder, name string) (stop func(), err error) {
	if folder == "" {
		return func() {}, nil
	}
	f, err := os.Create(filepath.Join(folder, name+".cpu"))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() { pprof.StopCPUProfile(); f.Close() }, nil
}

// heap writes a profile of what lives.
func heap(folder, name string) {
	if folder == "" {
		return
	}
	if f, err := os.Create(filepath.Join(folder, name+".heap")); err == nil {
		pprof.WriteHeapProfile(f)
		f.Close()
	}
}

func settle(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// lose takes a share of the nodes from those that are asked.
func (b *bench) lose(how func(int)) {
	b.rand.Shuffle(len(b.up), func(i, j int) { b.up[i], b.up[j] = b.up[j], b.up[i] })
	n := int(share * float64(len(b.up)))
	gone := b.up[:n]
	b.up = b.up[n:]
	var wg sync.WaitGroup
	for _, i := range gone {
		wg.Go(func() { how(i) })
	}
	wg.Wait()
}

// series does n operations one after the other, from random nodes, on random
// keys or on each in turn.
func (b *bench) series(ctx context.Context, n int, do func(ctx context.Context, node, key int) error, each bool) Series {
	var s Series
	var took []time.Duration
	began, rpcs, used := time.Now(), b.net.RPCs(), cpu()
	for i := range n {
		if time.Since(began) > phaseTimeout || ctx.Err() != nil {
			s.Cut = true
			break
		}
		key := i % b.cfg.Keys
		if !each {
			key = b.rand.IntN(b.cfg.Keys)
		}
		one, cancel := context.WithTimeout(ctx, opTimeout)
		from := time.Now()
		err := do(one, b.up[b.rand.IntN(len(b.up))], key)
		took = append(took, time.Since(from))
		cancel()
		s.N++
		if err == nil {
			s.Found++
		} else {
			s.Why = err.Error()
		}
	}
	settle(ctx, 500*time.Millisecond) // puts go on after they return
	if s.N > 0 {
		s.RPCs = float64(b.net.RPCs()-rpcs) / float64(s.N)
		s.CPU = (cpu() - used) / time.Duration(s.N)
		slices.Sort(took)
		s.P50, s.P99 = took[len(took)/2], took[min(len(took)-1, len(took)*99/100)]
	}
	if s.Why != "" {
		fmt.Fprintf(os.Stderr, "  %d of %d failed, such as: %s\n", s.N-s.Found, s.N, s.Why)
	}
	return s
}

// rush has clients do the same at once for a while.
func (b *bench) rush(ctx context.Context, do func(ctx context.Context, node, key int) error, key func() int) Rush {
	var (
		r          Rush
		wg         sync.WaitGroup
		mu         sync.Mutex // guards rand and why
		why        error
		done, fail atomic.Int64
	)
	began, rpcs, used := time.Now(), b.net.RPCs(), cpu()
	until := began.Add(time.Duration(b.cfg.Seconds) * time.Second)
	for range b.cfg.Clients {
		wg.Go(func() {
			for time.Now().Before(until) && ctx.Err() == nil {
				mu.Lock()
				node, key := b.up[b.rand.IntN(len(b.up))], key()
				mu.Unlock()
				one, cancel := context.WithTimeout(ctx, opTimeout)
				err := do(one, node, key)
				cancel()
				if done.Add(1); err != nil {
					fail.Add(1)
					mu.Lock()
					why = err
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	settle(ctx, 500*time.Millisecond)
	n := done.Load()
	r.PerSecond, r.Failed = float64(n)/took.Seconds(), int(fail.Load())
	r.CPU = (cpu() - used) / time.Duration(max(n, 1))
	r.RPCs = float64(b.net.RPCs()-rpcs) / float64(max(n, 1))
	if why != nil {
		fmt.Fprintf(os.Stderr, "  %d of %d failed, such as: %v\n", r.Failed, n, why)
	}
	return r
}

// rounds warms tables up: each node looks for 12 random places and four times
// for its own, some nodes at once.
func rounds(nodes int, random func(node int, target [32]byte), self func(node int)) {
	slots := make(chan struct{}, 8)
	var wg sync.WaitGroup
	each := func(do func(node int)) {
		for i := range nodes {
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				do(i)
			})
		}
		wg.Wait()
	}
	for round := range 16 {
		if round%4 == 0 {
			each(self)
			continue
		}
		each(func(i int) {
			var target [32]byte
			for j := range target {
				target[j] = byte(rand.Uint32())
			}
			random(i, target)
		})
	}
}
