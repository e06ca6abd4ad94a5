// Command links measures what linked agents cost a real portal, which runs as
// a process of its own: memory of each while it is idle, and how long it takes
// until all are back after the portal was killed and started again. It prints
// a table and ends with status 1 when a bar is missed.
//
//	go run ./bench/links            1,000 agents: about two minutes
//	go run ./bench/links -agents N
//
// The agents live in this process and speak the protocol by the same code as
// `agentsite agent run`. Memory is what the kernel says is resident.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"agentsite/internal/linkwire"
)

// The bars.
const (
	maxPerAgent = 64 << 10
	maxBack     = 30 * time.Second
	// perAccount keeps below what an account may register.
	perAccount = 400
	// settle is how long memory gets to become quiet: two rounds of pings and
	// the collector's.
	settle = 20 * time.Second
)

func main() {
	n := flag.Int("agents", 1000, "how many agents")
	flag.Parse()
	if err := run(*n, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "links:", err)
		os.Exit(1)
	}
}

func run(n int, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "links")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{dir: dir, binary: filepath.Join(dir, "agentsite"), data: filepath.Join(dir, "data")}
	if err := b.prepare((n + perAccount - 1) / perAccount); err != nil {
		return err
	}
	p, err := b.start("127.0.0.1:0")
	if err != nil {
		return err
	}
	defer func() { p.Kill() }()
	fmt.Fprintf(out, "%d agents register\n", n)
	began := time.Now()
	f := b.fleet(n, "http://"+p.Addr)
	if err := f.wait(n, 5*time.Minute); err != nil {
		return err
	}
	registered := time.Since(began)
	f.stop()

	// The same agents are known, none is connected.
	p.Kill()
	if p, err = b.start(p.Addr); err != nil {
		return err
	}
	time.Sleep(settle)
	before, _, err := p.Memory()
	if err != nil {
		return err
	}
	began = time.Now()
	f = b.fleet(n, "http://"+p.Addr)
	defer f.stop()
	if err := f.wait(n, time.Minute); err != nil {
		return err
	}
	connected := time.Since(began)
	time.Sleep(settle)
	after, _, err := p.Memory()
	if err != nil {
		return err
	}
	each := (after - before) / int64(n)
	busy, err := p.CPU()
	if err != nil {
		return err
	}
	time.Sleep(settle)
	later, err := p.CPU()
	if err != nil {
		return err
	}

	fmt.Fprintln(out, "the portal is killed and started again")
	p.Kill()
	f.forget()
	if p, err = b.start(p.Addr); err != nil {
		return err
	}
	began = time.Now()
	if err := f.wait(n, 2*time.Minute); err != nil {
		return err
	}
	back := f.took(began)
	if err := b.chat(p.Addr, name(0)); err != nil {
		return err
	}
	if err := b.chat(p.Addr, name(n-1)); err != nil {
		return err
	}

	w := tabwriter.NewWriter(out, 0, 0, 1, ' ', tabwriter.Debug)
	fmt.Fprintf(w, "\n| what\t figure\t bar\t \t\n")
	missed := 0
	row := func(what, figure, bar string, met bool) {
		verdict := ""
		if bar != "–" {
			verdict = "met"
			if !met {
				verdict = "MISSED"
				missed++
			}
		}
		fmt.Fprintf(w, "| %s\t %s\t %s\t %s\t\n", what, figure, bar, verdict)
	}
	row("agents", fmt.Sprint(n), "–", true)
	row("memory of an idle agent", fmt.Sprintf("%.1f KiB", float64(each)/1024), fmt.Sprintf("%d KiB", maxPerAgent>>10), each <= maxPerAgent)
	row("memory of the portal, none and all connected", fmt.Sprintf("%d, %d MiB", before>>20, after>>20), "–", true)
	row("processor while all are idle", fmt.Sprintf("%.1f %% of a core", 100*(later-busy).Seconds()/settle.Seconds()), "–", true)
	row("registered and connected, all", registered.Round(10*time.Millisecond).String(), "–", true)
	row("connected, all", connected.Round(10*time.Millisecond).String(), "–", true)
	row("back after a restart: half", back[len(back)/2].Round(10*time.Millisecond).String(), "–", true)
	row("back after a restart: all", back[len(back)-1].Round(10*time.Millisecond).String(), maxBack.String(), back[len(back)-1] <= maxBack)
	w.Flush()
	if missed > 0 {
		return fmt.Errorf("%d bars missed", missed)
	}
	return nil
}

func name(i int) string { return fmt.Sprintf("linked-%d", i) }

// fleet is many agents that repeat what they are told.
type fleet struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup
	up     chan struct{} // one for each connection
	lost   atomic.Int64

	mu    sync.Mutex // guards the rest
	times []time.Time
	err   error
}

func (b *bench) fleet(n int, portal string) *fleet {
	ctx, cancel := context.WithCancel(context.Background())
	f := &fleet{cancel: cancel, up: make(chan struct{}, 100*n)}
	for i := range n {
		token := b.tokens[i/perAccount]
		a := &linkwire.Agent{
			Hello: linkwire.Hello{Name: name(i), Client: "bench", Description: "Repeats what it is told."},
			Dial: func(ctx context.Context) (*linkwire.Socket, error) {
				return linkwire.Dial(ctx, portal, token, nil)
			},
			Work: func(_ context.Context, t linkwire.Task, out *linkwire.Answer) linkwire.Done {
				out.Text(t.Text)
				return linkwire.Done{State: linkwire.Completed}
			},
			Connected: func(linkwire.Welcome) {
				f.mu.Lock()
				f.times = append(f.times, time.Now())
				f.mu.Unlock()
				f.up <- struct{}{}
			},
			Lost: func(error, time.Duration) { f.lost.Add(1) },
		}
		f.wg.Go(func() {
			if err := a.Run(ctx); err != nil {
				f.mu.Lock()
				f.err = errors.Join(f.err, err)
				f.mu.Unlock()
			}
		})
	}
	return f
}

// wait returns when n connections were made.
func (f *fleet) wait(n int, most time.Duration) error {
	late := time.After(most)
	for i := range n {
		select {
		case <-f.up:
		case <-late:
			f.mu.Lock()
			defer f.mu.Unlock()
			return fmt.Errorf("after %s only %d of %d are connected (%d tries failed): %w", most, i, n, f.lost.Load(), errors.Join(f.err, context.DeadlineExceeded))
		}
	}
	return nil
}

// forget drops the connections made so far from the count.
func (f *fleet) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.times = nil
}

// took is how long each connection took since then, sorted.
func (f *fleet) took(since time.Time) []time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []time.Duration
	for _, t := range f.times {
		all = append(all, max(0, t.Sub(since)))
	}
	slices.Sort(all)
	return all
}

func (f *fleet) stop() {
	f.cancel()
	f.wg.Wait()
}

// chat asks an agent and expects its echo.
func (b *bench) chat(addr, agent string) error {
	said, err := b.command("", "chat", "--portal", "http://"+addr, agent, "are you back?")
	if err == nil && strings.TrimSpace(said) != "are you back?" {
		err = fmt.Errorf("%s answered %q", agent, said)
	}
	return err
}
