// Package demo runs a small federation in one process: portals on free loopback ports, each with
// agents of its own that work without any key, and with people that talk to them. It builds portals
// with package app, and registers and talks over their public API. It knows no internals of portals.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Config holds the choices of the user.
type Config struct {
	// Portals is how many there are, 1 to MaxPortals.
	Portals int
	// Keep is a folder for the data, which stays; it must be empty or not be
	// there. Without it the data is in a temporary folder, which goes.
	Keep string
	// Kill is how many portals die at once, some time after all is ready.
	Kill int
	// soon has them die at once: for tests.
	soon bool
}

// Validate returns an error that names the invalid field.
func (c Config) Validate() error {
	if c.Portals < 1 || c.Portals > MaxPortals {
		return fmt.Errorf("--portals %d: use 1 to %d", c.Portals, MaxPortals)
	}
	if c.Kill < 0 || c.Kill > 0 && c.Kill >= c.Portals {
		return fmt.Errorf("--kill %d: fewer than there are portals, %d", c.Kill, c.Portals)
	}
	if c.Keep == "" {
		return nil
	}
	if list, err := os.ReadDir(c.Keep); err == nil && len(list) > 0 {
		return fmt.Errorf("--keep %s: the folder is not empty; name a new one", c.Keep)
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("--keep: %w", err)
	}
	return nil
}

const (
	// startingAtOnce is how many portals start side by side.
	startingAtOnce = 4
	// maxIdle is how many connections between the portals are kept, each of which
	// is two files.
	maxIdle = 3500
	// startWait is how long one may take to start.
	startWait = time.Minute
)

// federation holds the running parts.
type federation struct {
	dir    string
	keep   bool
	http   *http.Client
	stderr io.Writer
	idle   int        // connections that a portal keeps
	errs   sync.Mutex // guards stderr, told and working
	told   time.Time  // when progress was last reported
	// working is true after a line of progress, until finished.
	working bool
	every   time.Duration // between lines of progress
	began   time.Time

	portals []*portal // those that started, in the order of their parts
	// newcomers joined in the drill, which alone knows of them until it is over.
	newcomers []*portal
	wrongs    wrongs
	traffic   *traffic
}

// Run starts a federation, prints one line for each portal, the pages to open and "ready", and serves
// until ctx ends or the last portal has failed. A portal that fails is reported on stderr, and the
// others go on. When Run returns, all goroutines have ended and the folder is removed, unless
// Config.Keep is set.
func Run(ctx context.Context, cfg Config, stdout, stderr io.Writer) error {
	f, err := openFolder(cfg, stderr)
	if err != nil {
		return err
	}
	err = f.startPortals(ctx, cfg.Portals, stdout)
	if err == nil {
		f.traffic = newTraffic(f.portals)
		f.traffic.startTraffic(ctx, f.makeHistory)
		var drill sync.WaitGroup
		if cfg.Kill > 0 {
			drill.Go(func() { f.runDrill(ctx, cfg, stdout) })
		}
		err = f.waitEnd(ctx)
		drill.Wait()
	}
	if ctx.Err() != nil {
		err = nil
	}
	return errors.Join(err, f.close())
}

// openFolder makes the folder. The caller closes the result.
func openFolder(cfg Config, stderr io.Writer) (*federation, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	f := &federation{began: time.Now(), every: tellEvery, told: time.Now(), dir: cfg.Keep, keep: cfg.Keep != "",
		stderr: stderr, http: &http.Client{Timeout: time.Minute,
			Transport: &http.Transport{MaxIdleConnsPerHost: 2, IdleConnTimeout: 10 * time.Second}}}
	var err error
	if f.keep {
		err = os.MkdirAll(f.dir, 0o700)
	} else {
		f.dir, err = os.MkdirTemp("", "agentsite-demo-")
	}
	if err != nil {
		return nil, fmt.Errorf("make the folder of the demo: %w", err)
	}
	return f, nil
}

// startPortals starts n portals, connects them, and returns when each finds the agents of the others, or when
// that takes too long.
func (f *federation) startPortals(ctx context.Context, n int, stdout io.Writer) error {
	list := castRoles(n)
	// The files that one process may have open are for all of them.
	f.idle = min(maxIdle/n, 128)
	started := make([]*portal, n)
	errs := make([]error, n)
	var group errgroup.Group
	group.SetLimit(startingAtOnce)
	var up atomic.Int32
	for i := range n {
		group.Go(func() error {
			started[i], errs[i] = f.startOne(ctx, list[i])
			f.printProgress("%d of %s started", up.Add(1), plural(n, "portal"))
			return nil
		})
	}
	_ = group.Wait() // its functions return nil
	for _, p := range started {
		if p != nil {
			f.portals = append(f.portals, p)
		}
	}
	if len(f.portals) == 0 {
		return fmt.Errorf("no portal started: %w", errors.Join(errs...))
	}
	f.connectPortals(ctx)
	agents, err := f.awaitAgents(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		f.reportError("%v", err)
	} else {
		f.printResult("each portal finds all %s", plural(agents, "agent"))
	}
	f.printWelcome(stdout, agents, err == nil)
	return nil
}

// printWelcome prints the addresses and first steps. If complete is false, a portal
// does not find all agents yet, and the demo is not called ready.
func (f *federation) printWelcome(w io.Writer, agents int, complete bool) {
	for _, p := range f.portals {
		fmt.Fprintf(w, "%-20s %s  sign in as %s: %s\n", p.name, p.url(), p.people[0], p.link)
	}
	at := f.portals[0].url()
	fmt.Fprintf(w, "\nOpen %s/ to search, and %s/network for the map.\n", at, at)
	if f.wrongs.liar != nil {
		fmt.Fprintf(w, "%s goes down now, and %s lies: after half a minute the map shows both. Sign in by the first link above and open %s/admin/peers for what an operator sees.\n",
			f.wrongs.down.name, f.wrongs.liar.name, at)
	}
	portals, all, took := plural(len(f.portals), "portal"), plural(agents, "agent"), time.Since(f.began).Seconds()
	if complete {
		fmt.Fprintf(w, "ready: %s, %s, after %.1f s; data in %s; stop with Ctrl-C\n", portals, all, took, f.dir)
		return
	}
	fmt.Fprintf(w, "started: %s, after %.1f s; the portals can be used, but some do not find all %s yet and go on looking; data in %s; stop with Ctrl-C\n",
		portals, took, all, f.dir)
}

// startOne starts a portal, and says so if it cannot.
func (f *federation) startOne(ctx context.Context, r role) (*portal, error) {
	starting, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	p, err := startPortal(starting, r, f.dir, f.idle, f.http)
	if err != nil && ctx.Err() == nil { // otherwise ctx ended it
		f.reportError("%s does not start: %v; the others go on", r.name, err)
	}
	return p, err
}

func (f *federation) reportError(format string, args ...any) {
	f.errs.Lock()
	defer f.errs.Unlock()
	fmt.Fprintf(f.stderr, "agentsite: "+format+"\n", args...)
}

// waitEnd waits until ctx ends, or until no portal is left.
func (f *federation) waitEnd(ctx context.Context) error {
	var group errgroup.Group
	for _, p := range f.portals {
		group.Go(func() error {
			select {
			case <-ctx.Done():
				return nil
			case <-p.done:
				if p.killed.Load() {
					return nil
				}
				f.reportError("%s stopped: %v; the others go on", p.name, p.err)
				return p.err
			}
		})
	}
	return group.Wait()
}

// close stops everything in order: the people, the portals, their agents. Then it removes the folder.
func (f *federation) close() error {
	if f.traffic != nil {
		f.traffic.close()
	}
	var group errgroup.Group
	for _, p := range append(f.portals, f.newcomers...) {
		group.Go(p.stopPortal)
	}
	err := group.Wait()
	f.wrongs.close()
	f.http.CloseIdleConnections()
	if !f.keep {
		err = errors.Join(err, os.RemoveAll(f.dir))
	}
	return err
}
