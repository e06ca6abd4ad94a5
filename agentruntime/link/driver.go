// Package link runs tasks at programs that connect to the portal: it holds their connections, gives out
// tasks with leases, follows the answers, and resumes tasks after a break of the connection or a
// restart of the portal. The protocol is that of docs/link.md. Data of an agent is untrusted in size
// and in the tasks that it names. The package does not depend on WebSockets, accounts or storage.
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

// Observer follows the connections of agents.
type Observer interface {
	// Observe is called when an agent has connected or disconnected; calls for one agent never overlap. It may block.
	Observe(ctx context.Context, agentID string, l hub.Liveness)
}

// Config holds the dependencies of the driver; zero values mean the defaults named.
type Config struct {
	// Portal is the host in handles, as in name@host; "" leaves it out of messages.
	Portal string
	// Observer, when set, follows the connections of agents.
	Observer Observer
	// Tools gives agents the portal's tools; nil when there are none.
	Tools task.ToolServer
	Log   *slog.Logger
	// Grace is how long a lease outlives its connection, so that an agent can reconnect and continue.
	// Default 60 s.
	Grace time.Duration
	// ConnectWait is how long a new task waits for an agent that is not connected, 10 s. StartWait is
	// the same for an agent that has not connected since the driver's start, because it may be about to
	// reconnect. 30 s.
	ConnectWait, StartWait time.Duration
	// AcceptWait is how long an agent may take to accept a task, 20 s.
	AcceptWait time.Duration
	// Idle is how long it may send nothing about a task that it accepted, 10 min.
	Idle time.Duration
	// Settle is how long an agent must be disconnected before it counts as unreachable, so that a quick
	// reconnect changes nothing. 3 s.
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
	return c
}

// Driver is the driver of kind link, and takes the connections of its agents. Create it with New; the
// caller closes it.
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

// New returns a driver that runs until Close. Zero values of cfg get their defaults.
func New(cfg Config) *Driver {
	d := &Driver{cfg: cfg.withDefaults(), started: time.Now(), agents: make(map[string]*agent)}
	d.watch = newWatch(d)
	return d
}

// Close ends all connections with a reason that makes agents reconnect, and returns when all goroutines
// of the driver have ended. It does not end running tasks; their callers do.
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
	d.watch.closeWatch()
	d.wg.Wait()
}

// ExpectAgents lists the agents at the start of the portal. Those that have not connected when new
// tasks would stop waiting for them are observed as unreachable.
func (d *Driver) ExpectAgents(agentIDs ...string) {
	for _, id := range agentIDs {
		d.agentState(id)
		d.watch.reportLater(id, d.cfg.ConnectWait)
	}
}

// Drop ends the connection of an agent after its credential or permission was revoked. Its program
// reconnects and authenticates anew, or is refused. Its tasks wait meanwhile, as after any lost
// connection.
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

// Liveness returns the liveness of an agent without a request, from the state of its connection.
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

// agentState returns the state of an agent. Entries are never removed: there is one per registered
// agent of this kind, and an idle one is small.
func (d *Driver) agentState(id string) *agent {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.agents[id]
	if a == nil {
		a = &agent{id: id, away: d.started, known: true, runs: make(map[string]*run), changed: make(chan struct{})}
		d.agents[id] = a
	}
	return a
}

// runBackground runs f in a goroutine that Close waits for. It returns false and does nothing after
// Close.
func (d *Driver) runBackground(f func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.wg.Go(f)
	return true
}

// agent is one agent with its connection and its tasks.
type agent struct {
	id string

	mu      sync.Mutex // guards the fields below, and the fields of sessions and runs that name it
	session *session   // nil while it is not connected
	// away is the time since which the agent has not been connected; seen is when a connection last
	// began or ended, zero for none since the start.
	away, seen time.Time
	known      bool
	welcomed   int64           // connections since the start
	runs       map[string]*run // by task
	queue      []*run          // waiting for a slot, first in first out
	changed    chan struct{}   // closed and replaced when any field above changes; see notifyChange
}

// notifyChange wakes all goroutines that wait for a change of the agent, by closing changed; the caller
// holds mu.
func (a *agent) notifyChange() {
	close(a.changed)
	a.changed = make(chan struct{})
}
