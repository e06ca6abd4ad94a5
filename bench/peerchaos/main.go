// Peerchaos shows that the portals of a network hold the same agents after crashes and restored
// backups. It runs three real portals, registers, changes and deletes agents on them all the time, and
// kills one portal after the other with SIGKILL at random moments. Then one portal loses its replica,
// one is restored from a backup that is older than its records on the other portals, and one is
// replaced by an older copy of its folder.
//
//	peerchaos -binary PATH [-rounds N] [-agents N] [-seed S] [-data DIR]
//
// At the end, each portal must hold of every other one, record by record, the agents in that portal's
// directory; no portal may be quarantined anywhere, and no log may have an error. After a failure the
// program prints the seed, keeps the data and exits with status 1. A seed repeats the same actions, but
// not their exact timing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

type config struct {
	binary         string
	rounds, agents int
	seed           uint64
	data           string
	within         time.Duration
}

func main() {
	var c config
	flag.StringVar(&c.binary, "binary", "", "the `PATH` of agentsite")
	flag.IntVar(&c.rounds, "rounds", 20, "how often a portal is killed")
	flag.IntVar(&c.agents, "agents", 2000, "how many agents there are at first")
	flag.Uint64Var(&c.seed, "seed", uint64(time.Now().UnixNano()), "what decides what is done")
	flag.StringVar(&c.data, "data", "", "an empty folder to use; without it one that is removed after success")
	flag.DurationVar(&c.within, "within", 5*time.Minute, "how long the portals may take to agree")
	flag.Parse()
	if c.binary == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(context.Background(), c); err != nil {
		fmt.Fprintf(os.Stderr, "peerchaos: seed %d: %v\n", c.seed, err)
		os.Exit(1)
	}
}

// nPortals is the number of portals: the least with which a portal also has records from a third one.
const nPortals = 3

// world is the run: its portals and the random source that decides about kills.
type world struct {
	config
	rand    *rand.Rand // used by the main goroutine only
	portals [nPortals]*portal
	churned sync.WaitGroup
}

func run(ctx context.Context, c config) (err error) {
	dir := c.data
	if dir == "" {
		if dir, err = os.MkdirTemp("", "peerchaos-"); err != nil {
			return err
		}
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w\nkept: %s", err, dir)
		} else if c.data == "" {
			os.RemoveAll(dir)
		}
	}()
	w := &world{config: c, rand: rand.New(rand.NewPCG(c.seed, 1))}
	defer w.end()
	if err := w.begin(dir); err != nil {
		return err
	}
	began := time.Now()
	if err := w.fill(ctx, dir); err != nil {
		return err
	}
	if err := w.agree(ctx, "with what is there at first"); err != nil {
		return err
	}
	if err := w.kills(ctx); err != nil {
		return err
	}
	if err := w.agree(ctx, fmt.Sprintf("after %d kills", c.rounds)); err != nil {
		return err
	}
	if err := w.losses(ctx, dir); err != nil {
		return err
	}
	fmt.Printf("ok: %d kills, seed %d, %s\n", c.rounds, c.seed, time.Since(began).Round(time.Second))
	return nil
}

// begin starts the portals. Each one joins the network by the address of the one before it.
func (w *world) begin(dir string) error {
	for i := range w.portals {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		addr := l.Addr().String()
		l.Close()
		p := &portal{name: string(rune('a' + i)), binary: w.binary, addr: addr, data: filepath.Join(dir, string(rune('a'+i))), log: filepath.Join(dir, string(rune('a'+i))+".log")}
		if i > 0 {
			p.join = "http://" + w.portals[i-1].addr
		}
		w.portals[i] = p
		if err := p.found(); err != nil {
			return err
		}
		if err := p.start(); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) end() {
	for _, p := range w.portals {
		if p != nil {
			p.kill()
		}
	}
}

// fill registers the first agents, nearly all on one portal, so that the others have much to replicate.
func (w *world) fill(_ context.Context, dir string) error {
	for i, p := range w.portals {
		n := w.agents
		if i > 0 {
			n = w.agents / 20
		}
		var b strings.Builder
		for j := range n {
			fmt.Fprintf(&b, `{"name":"%s-%d","kind":"link","description":"Number %d of portal %s at first.","visibility":"public","skills":[{"id":"s","name":"Count","description":"Counts to %d.","tags":["count"]}]}`+"\n", p.name, j, j, p.name, j)
			p.names = append(p.names, fmt.Sprintf("%s-%d", p.name, j))
		}
		file := filepath.Join(dir, p.name+".ndjson")
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			return err
		}
		if _, err := p.command("", "agent", "import", file, "--portal", "http://"+p.addr, "--token", p.token); err != nil {
			return err
		}
	}
	return nil
}

// kills kills and restarts one or two portals in each round while agents change.
func (w *world) kills(ctx context.Context) error {
	stop := w.churn(ctx)
	defer stop()
	for round := range w.rounds {
		w.pause(3 * time.Second)
		list := []*portal{w.portals[round%nPortals]}
		if w.rand.IntN(4) == 0 {
			list = append(list, w.portals[(round+1)%nPortals])
		}
		for _, p := range list {
			p.kill()
		}
		w.pause(2 * time.Second)
		for _, p := range list {
			if err := p.start(); err != nil {
				return err
			}
			if w.rand.IntN(5) == 0 { // sometimes kill it again soon after its start
				w.pause(300 * time.Millisecond)
				p.kill()
				if err := p.start(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// pause sleeps for a random time up to d.
func (w *world) pause(d time.Duration) {
	time.Sleep(time.Duration(w.rand.Int64N(int64(d))))
}

// churn changes agents on all portals in the background until stop is called, which waits for the
// goroutines.
func (w *world) churn(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	for i, p := range w.portals {
		rnd := rand.New(rand.NewPCG(w.seed, uint64(10+i)))
		w.churned.Go(func() {
			for ctx.Err() == nil {
				if err := p.change(ctx, rnd); err != nil { // the portal is down
					time.Sleep(50 * time.Millisecond)
				}
				time.Sleep(time.Duration(rnd.IntN(20)) * time.Millisecond)
			}
		})
	}
	return func() {
		cancel()
		w.churned.Wait()
	}
}

// changeFor changes agents on all portals for the duration d.
func (w *world) changeFor(ctx context.Context, d time.Duration) {
	stop := w.churn(ctx)
	time.Sleep(d)
	stop()
}

// losses removes the replica of one portal, restores another from a backup and replaces the folder of
// the third by an older copy, while agents change. After each step all portals must agree.
func (w *world) losses(ctx context.Context, dir string) error {
	a, b, c := w.portals[0], w.portals[1], w.portals[2]
	a.kill()
	if err := errors.Join(os.Remove(a.replica()), remove(a.replica()+"-wal"), remove(a.replica()+"-shm")); err != nil {
		return err
	}
	if err := a.start(); err != nil {
		return err
	}
	w.changeFor(ctx, 3*time.Second)
	if err := w.agree(ctx, "after a lost its replica"); err != nil {
		return err
	}

	backup := filepath.Join(dir, "b.backup")
	if _, err := b.command("", "backup", backup, "--data", b.data); err != nil {
		return err
	}
	w.changeFor(ctx, 3*time.Second)
	if err := w.agree(ctx, "before b is restored"); err != nil {
		return err
	}
	b.kill()
	b.data += "-restored"
	if _, err := b.command("", "restore", backup, "--data", b.data); err != nil {
		return err
	}
	if err := b.start(); err != nil {
		return err
	}
	w.changeFor(ctx, 3*time.Second)
	if err := w.agree(ctx, "after b came back from a backup"); err != nil {
		return err
	}

	if err := c.stop(); err != nil {
		return err
	}
	copied := c.data + "-copy"
	if err := os.CopyFS(copied, os.DirFS(c.data)); err != nil {
		return err
	}
	if err := c.start(); err != nil {
		return err
	}
	w.changeFor(ctx, 3*time.Second)
	if err := w.agree(ctx, "before c goes back to a copy"); err != nil {
		return err
	}
	c.kill()
	c.data = copied
	if err := c.start(); err != nil {
		return err
	}
	w.changeFor(ctx, 3*time.Second)
	return w.agree(ctx, "after c went back to a copy of its folder")
}

func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
