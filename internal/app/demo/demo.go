// Package demo runs a small network of portals in one process: portals on free loopback ports, each
// with agents that need no key, and with simulated people that talk to the agents. It starts
// portals with package app and fills them through their public API, so that it needs no knowledge
// of their internals.
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

// Config holds the flags of the command.
type Config struct {
	// Portals is the number of portals, 1 to MaxPortals.
	Portals int
	// Keep is a folder for the data, which must be empty or not exist; it is kept. Without it the
	// data is in a temporary folder, which Run removes.
	Keep string
	// Kill is the number of portals that are killed at once, drillPause after the start; 0 for
	// none.
	Kill int
	// soon kills them without the pause, for tests.
	soon bool
}

// Validate returns an error that names the first invalid flag and the allowed values.
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
	// startingAtOnce bounds the portals that start at the same time.
	startingAtOnce = 4
	// maxIdle bounds the idle connections between all portals. Each uses two of the file
	// descriptors of the process.
	maxIdle = 3500
	// startWait bounds the time that one portal may take to start.
	startWait = time.Minute
)

// federation holds the running portals and everything else that close must end.
type federation struct {
	dir    string
	keep   bool
	http   *http.Client
	stderr io.Writer
	idle   int        // idle connections that each portal may keep
	errs   sync.Mutex // guards stderr, told and working
	told   time.Time  // time of the last line of progress
	// working is true while a line of progress has no result line after it.
	working bool
	every   time.Duration // minimum time between two lines of progress
	began   time.Time

	portals []*portal // portals that started, in the order of their roles
	// newcomers are the portals that joined in the drill. Only the goroutine of runDrill uses them
	// until it has ended.
	newcomers []*portal
	wrongs    wrongs
	traffic   *traffic
}

// Run starts a network of portals, prints one line for each portal, the pages to open and "ready",
// and serves until ctx ends or the last portal has failed. A portal that fails is reported on
// stderr, and the others go on. When Run returns, all goroutines have ended and the folder is
// removed, unless Config.Keep is set.
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

// openFolder checks cfg and makes the data folder. The caller must call close on the result.
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

// startPortals starts n portals, connects them and waits until each finds the agents of the others.
// If that takes too long, it reports this and returns nil, because the portals can be used. It
// returns an error if no portal starts or ctx ends.
func (f *federation) startPortals(ctx context.Context, n int, stdout io.Writer) error {
	list := castRoles(n)
	// All portals share the file descriptors of this process.
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
	_ = group.Wait() // the functions return nil; errors are in errs
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

// printWelcome prints the addresses and the first steps for the user. If complete is false, some
// portal does not find all agents yet, and the line says "started" and not "ready".
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

// startOne starts a portal within startWait and reports a failure on stderr.
func (f *federation) startOne(ctx context.Context, r role) (*portal, error) {
	starting, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	p, err := startPortal(starting, r, f.dir, f.idle, f.http)
	if err != nil && ctx.Err() == nil { // if ctx has ended, the failure need not be reported
		f.reportError("%s does not start: %v; the others go on", r.name, err)
	}
	return p, err
}

func (f *federation) reportError(format string, args ...any) {
	f.errs.Lock()
	defer f.errs.Unlock()
	fmt.Fprintf(f.stderr, "agentsite: "+format+"\n", args...)
}

// waitEnd waits until ctx ends or all portals have ended, and returns the first error of a portal.
// Killed portals count as ended without error.
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

// close stops the simulated people, then the portals and their agents, then the faulty portals. It
// removes the folder unless it is to be kept.
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
