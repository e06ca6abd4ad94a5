// Package link runs tasks at programs that dialled in: it holds their
// connections, hands out tasks with leases, follows the answers, and takes
// tasks up again after a break of the connection or a restart of the portal.
// The protocol is that of docs/link.md. It believes nothing an agent says
// about its size or whose task it is, and knows nothing of WebSockets,
// accounts or storage.
package link

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/hub"
	"agentsite/internal/linkwire"
	"agentsite/internal/task"
)

// Config is what the driver needs; zero values mean the defaults named.
type Config struct {
	// Portal is the portal's part of handles.
	Portal string
	// Observe is told when an agent has come or gone; calls for one agent come
	// one after the other. It may block.
	Observe func(ctx context.Context, agentID string, l hub.Liveness)
	Log     *slog.Logger
	// Grace is how long a lease outlives the connection it was held on. 60 s.
	Grace time.Duration
	// ConnectWait is how long a new task waits for an agent that is not
	// connected, 10 s; StartWait is the same after the driver's start for one
	// that has not been there since: it may still be on its way back. 30 s.
	ConnectWait, StartWait time.Duration
	// AcceptWait is how long an agent may take to accept a task, 20 s.
	AcceptWait time.Duration
	// Idle is how long it may say nothing about a task it accepted, 10 min.
	Idle time.Duration
	// Settle is how long an agent must be gone to be called unreachable, so
	// that a connection made anew is no news. 3 s.
	Settle time.Duration
}

func (c Config) withDefaults() Config {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&c.Grace, time.Minute)
	def(&c.ConnectWait, 10*time.Second)
	def(&c.StartWait, 30*time.Second)
	def(&c.AcceptWait, 20*time.Second)
	def(&c.Idle, 10*time.Minute)
	def(&c.Settle, 3*time.Second)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Observe == nil {
		c.Observe = func(context.Context, string, hub.Liveness) {}
	}
	return c
}

// Driver is the driver of kind link, and takes the connections of its agents.
// Create it with New; the caller closes it.
type Driver struct {
	cfg     Config
	started time.Time
	watch   *watch

	mu     sync.Mutex // guards agents, closed, and closed against wg.Wait
	agents map[string]*agent
	closed bool
	wg     sync.WaitGroup
}

var (
	_ task.Agent    = (*Driver)(nil)
	_ task.Attacher = (*Driver)(nil)
)

// New returns a driver that runs until Close.
func New(cfg Config) *Driver {
	d := &Driver{cfg: cfg.withDefaults(), started: time.Now(), agents: make(map[string]*agent)}
	d.watch = newWatch(d.cfg.Observe, d.Liveness)
	return d
}

// Close ends all connections, telling their agents to come back, and returns
// when everything of the driver has ended. Tasks still running are their
// callers' to end.
func (d *Driver) Close() {
	d.mu.Lock()
	d.closed = true
	for _, a := range d.agents {
		a.mu.Lock()
		if a.session != nil {
			a.session.stream.Close(linkwire.ReasonRestart)
		}
		a.mu.Unlock()
	}
	d.mu.Unlock()
	d.watch.close()
	d.wg.Wait()
}

// Expect tells the driver which agents there are, at the start of the portal:
// those that have not come by the time new tasks would give up on them are
// observed as unreachable.
func (d *Driver) Expect(agentIDs ...string) {
	for _, id := range agentIDs {
		d.agent(id)
		d.watch.later(id, d.cfg.ConnectWait)
	}
}

// Drop ends the connection of an agent whose right to it may have ended. Its
// program comes back and proves that it may, or is refused; its tasks wait.
func (d *Driver) Drop(agentID string) {
	d.mu.Lock()
	a := d.agents[agentID]
	d.mu.Unlock()
	if a == nil {
		return
	}
	a.mu.Lock()
	s := a.session
	a.mu.Unlock()
	if s != nil {
		s.stream.Close(linkwire.ReasonProve)
	}
}

// Connected reports whether the agent is connected now.
func (d *Driver) Connected(agentID string) bool { return d.Liveness(agentID).State == hub.Alive }

// Liveness is what is known of an agent without asking it: its connection is
// the exchange that liveness rests on.
func (d *Driver) Liveness(agentID string) hub.Liveness {
	l := hub.Liveness{State: hub.Unreachable, CheckedAt: clock.Now(),
		Reason: "Not connected yet. Its program has to be started where it runs."}
	d.mu.Lock()
	a := d.agents[agentID]
	d.mu.Unlock()
	if a == nil {
		return l
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.session != nil:
		l.State, l.Reason = hub.Alive, "Connected."
		if a.session.client != "" {
			l.Reason = "Connected with " + linkwire.Sentence(a.session.client, 80)
		}
	case !a.seen.IsZero():
		l.Reason = fmt.Sprintf("Not connected. It was last here on %s.",
			a.seen.UTC().Format("2 January 2006 at 15:04:05 UTC"))
	case a.known:
		l.Reason = "Not connected since the portal was started."
	}
	return l
}

// agent returns what is kept of an agent. Entries stay: there are as many as
// agents of this kind are registered, and an idle one is small.
func (d *Driver) agent(id string) *agent {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.agents[id]
	if a == nil {
		a = &agent{id: id, away: d.started, known: true, runs: make(map[string]*run), changed: make(chan struct{})}
		d.agents[id] = a
	}
	return a
}

// background runs f unless the driver is closed; Close waits for it.
func (d *Driver) background(f func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.wg.Go(f)
	return true
}

// agent is one agent and everything that is under way for it.
type agent struct {
	id string

	mu      sync.Mutex // guards the rest, and the fields of sessions and runs that say so
	session *session   // nil while it is not connected
	// away is since when it has not been connected; seen when it last was.
	away, seen time.Time
	known      bool
	welcomed   int64           // connections since the start
	runs       map[string]*run // by task
	queue      []*run          // waiting for a place, first come first
	changed    chan struct{}   // closed when any of this changes
}

// notify wakes whoever waits for a change; the caller holds mu.
func (a *agent) notify() {
	close(a.changed)
	a.changed = make(chan struct{})
}
