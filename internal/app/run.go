package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"

	"agentsite/internal/control"
	"agentsite/internal/hub"
	"agentsite/internal/popularity"
	"agentsite/internal/task"
	"agentsite/web"
)

// Run serves until ctx ends or a part fails for good, then stops in order: requests under way are finished, running
// agents are stopped (their tasks continue at the next start), and the database is closed. It prints "ready URL" on
// stdout once the portal accepts requests.
func (p *Portal) Run(ctx context.Context, stdout, stderr io.Writer) error {
	defer p.Close()
	p.log.Info("starting", append([]any{"version", Version(), "portal", p.URL(),
		"uses", p.db.Name()}, p.set.Redacted()...)...)
	p.checkDescriptors()
	setup, err := p.accounts.Setup(ctx)
	if err != nil {
		return err
	}
	if p.control, err = control.Listen(control.ServerConfig{Dir: p.set.Data, URL: p.URL(), Accounts: p.accounts,
		DB: p.db, Replica: p.replica, Peers: p.peers, Keyring: p.newKeyring(), Examiner: p, Rooms: p.chats, Agents: p.hub,
		Programs: keptPrograms{p}, Log: p.log}); err != nil {
		return err
	}
	// The workers stop after the server, so that requests under way are served.
	work, cancelWork := context.WithCancelCause(context.WithoutCancel(ctx))
	stopWork := func() { cancelWork(task.ErrShutdown) }
	defer stopWork()
	workers, work := errgroup.WithContext(work)
	workers.Go(func() error { return p.monitor.Run(work) })
	workers.Go(func() error { return p.worker.Run(work) })
	workers.Go(func() error { return p.accounts.Run(work) })
	workers.Go(func() error { return p.teams.Run(work) })
	workers.Go(func() error { return p.keeper.Run(work) })
	workers.Go(func() error { p.endWork(work); return nil })
	workers.Go(func() error {
		err := p.hub.Load(work)
		close(p.loaded)
		limitGarbage(p.hub.Count())
		return err
	})
	workers.Go(func() error { return p.encodeAgents(work) })
	workers.Go(func() error { return p.embedAgents(work) })
	workers.Go(func() error { return popularity.New(p.db.Hub, p.index, p.log).Run(work) })
	workers.Go(func() error { return p.control.Run(work) })
	workers.Go(func() error { return p.packages.Run(work) })
	workers.Go(func() error { return p.figures.Run(work) })
	workers.Go(func() error { return p.expectLinks(work) })
	workers.Go(func() error { return p.notifier.run(work) })
	workers.Go(func() error { return p.hooks.Run(work) })
	workers.Go(func() error { return p.pushes.Run(work) })
	workers.Go(func() error { return p.indexMessages(work) })
	workers.Go(func() error { return p.sweepData(work) })
	workers.Go(func() error { return p.db.TendDisk(work) })
	workers.Go(func() error { watchClock(work, p.clock, p.log); return nil })
	workers.Go(func() error { return p.scrubData(work) })
	if p.node == nil {
		workers.Go(func() error { return p.peers.Run(work) })
	} else {
		workers.Go(func() error { return p.node.Run(work, p.loaded) })
		workers.Go(func() error { return p.portalCalls.Run(work) })
	}

	serving, stopServing := context.WithCancel(ctx)
	defer stopServing()
	group, serving := errgroup.WithContext(serving)
	group.Go(func() error {
		return web.Serve(serving, p.listener, p.newRouter(), web.ServerConfig{Penalized: p.shun,
			Connections: p.limits.clients, Operators: p.routes, Count: &p.open, Log: p.log})
	})
	group.Go(func() error { return p.serveMetrics(serving) })
	group.Go(func() error { return p.watchPlaces(serving) })
	group.Go(func() error {
		select {
		case <-p.db.Fatal():
			return fmt.Errorf("%w; start the portal again: what was confirmed is safe", p.db.Err())
		case <-work.Done():
			return context.Cause(work)
		case <-serving.Done():
			return nil
		}
	})
	select {
	case <-p.loaded:
	case <-time.After(loadWait):
	case <-serving.Done():
	}
	if setup != "" {
		fmt.Fprintf(stderr, "This portal has no operator yet. Open this link once to become it:\n  %s/signup?setup=%s\n", p.URL(), setup)
	}
	fmt.Fprintf(stdout, "ready %s\n", p.URL())
	err = group.Wait()
	stopWork()
	werr := workers.Wait()
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	if errors.Is(werr, context.Canceled) {
		werr = nil
	}
	p.log.Info("stopped")
	return errors.Join(err, werr)
}

// limitGarbage reduces memory use after the directory was loaded: it returns free memory to the system
// and starts garbage collection at 50 % of growth instead of 100 %, which costs about 4 % of processor
// time. For few agents it does nothing, because the gain is small. The number of agents decides, not the
// heap, because one test process holds many portals.
func limitGarbage(agents int) {
	const (
		fewAgents      = 5_000 // about 15 MiB of memory
		defaultPercent = 100
	)
	if agents < fewAgents {
		return
	}
	if set := debug.SetGCPercent(defaultPercent / 2); set != defaultPercent { // keep a value that was set by GOGC
		debug.SetGCPercent(set)
	}
	debug.FreeOSMemory()
}

// endWork stops the tasks of disabled accounts, and updates the visibility of their agents, until ctx
// ends.
func (p *Portal) endWork(ctx context.Context) {
	for {
		select {
		case id := <-p.accounts.Ended():
			a, err := p.db.Accounts.AccountByID(ctx, id)
			if err != nil {
				p.log.Warn("look up an ended account", "account", id, "error", err)
				continue
			}
			if a.Disabled() {
				if _, err := p.teams.CancelAll(ctx, id, "The account of this goal was disabled."); err != nil {
					p.log.Warn("cancel the goals of a disabled account", "account", id, "error", err)
				}
				if _, err := p.tasks.StopCaller(ctx, id); err != nil {
					p.log.Warn("stop the work of a disabled account", "account", id, "error", err)
				}
			}
			if err := p.hub.OwnerChanged(ctx, id, a.Disabled()); err != nil {
				p.log.Warn("update the agents of an account", "account", id, "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// expectLinks gives the driver of linked agents the ids of all such agents, so that they count as
// reconnecting and not as unknown.
func (p *Portal) expectLinks(ctx context.Context) error {
	ids, err := p.db.Hub.AgentsOfKind(ctx, hub.Link)
	if err != nil {
		return err
	}
	p.drivers.link.ExpectAgents(ids...)
	return nil
}
