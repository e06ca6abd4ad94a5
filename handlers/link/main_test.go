package link_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	driver "agentsite/agentruntime/link"
	door "agentsite/handlers/link"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/linkwire"
	"agentsite/internal/task"
	"agentsite/internal/testing/agenttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a network of one listener at a time, without sockets.
type memory struct {
	mu   sync.Mutex // guards the rest
	now  *listener
	all  []*line
	fail bool
}

// listener takes the connections made in memory.
type listener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

func (m *memory) listen() *listener {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = &listener{conns: make(chan net.Conn), done: make(chan struct{})}
	return m.now
}

// line is one connection, which may fall silent without being closed. What is
// written to it waits in a queue, as a kernel would keep it.
type line struct {
	net.Conn
	silent chan struct{}
	queue  chan []byte
	closed chan struct{}
	once   sync.Once
}

func newLine(c net.Conn) *line {
	l := &line{Conn: c, silent: make(chan struct{}), queue: make(chan []byte, 1024), closed: make(chan struct{})}
	go func() {
		for {
			select {
			case b := <-l.queue:
				l.Conn.Write(b)
				continue
			default:
			}
			select {
			case b := <-l.queue:
				l.Conn.Write(b)
			case <-l.closed:
				l.Conn.Close()
				return
			}
		}
	}()
	return l
}

// Read implements net.Conn. A silent line hears nothing more.
func (l *line) Read(p []byte) (int, error) {
	for {
		n, err := l.Conn.Read(p)
		select {
		case <-l.silent:
			if err == nil {
				continue
			}
		default:
		}
		return n, err
	}
}

// Write implements net.Conn. What is written to a silent line is lost.
func (l *line) Write(p []byte) (int, error) {
	select {
	case <-l.closed:
		return 0, net.ErrClosed
	case <-l.silent:
		return len(p), nil
	default:
	}
	select {
	case l.queue <- append([]byte(nil), p...):
		return len(p), nil
	case <-l.closed:
		return 0, net.ErrClosed
	}
}

// Close implements net.Conn.
func (l *line) Close() error {
	l.once.Do(func() { close(l.closed) })
	l.Conn.SetReadDeadline(time.Unix(1, 0))
	return nil
}

func (m *memory) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	m.mu.Lock()
	to, fail := m.now, m.fail
	m.mu.Unlock()
	if fail {
		return nil, errors.New("there is no network")
	}
	a, b := net.Pipe()
	select {
	case to.conns <- b:
	case <-to.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l := newLine(a)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, l)
	return l, nil
}

// cut breaks all connections; up says whether new ones can be made.
func (m *memory) cut(up bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.all {
		c.Close()
	}
	m.all, m.fail = nil, !up
}

// hush makes all connections fall silent.
func (m *memory) hush() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.all {
		close(c.silent)
	}
	m.fail = true
}

// world is a door with its driver, on a network in memory.
type world struct {
	t   *testing.T
	net *memory
	drv *driver.Driver
	srv *http.Server
	cfg door.Config

	mu     sync.Mutex // guards the rest
	ended  map[string]bool
	guards map[string][]context.CancelFunc
	live   map[string][]hub.Liveness
}

// token is one of an account; words after the first - tell tokens apart.
func token(account string) string { return ident.TokenPrefix + account }

func open(t *testing.T, edit ...func(*world)) *world {
	w := &world{t: t, ended: make(map[string]bool), guards: make(map[string][]context.CancelFunc), live: make(map[string][]hub.Liveness)}
	w.cfg = door.Config{Callers: w, Accounts: w, Agents: w}
	for _, e := range edit {
		e(w)
	}
	w.start()
	t.Cleanup(w.stop)
	return w
}

// AuthenticateProgram implements link.Callers.
func (w *world) AuthenticateProgram(_ *http.Request, secret string) (ident.Actor, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name, ok := strings.CutPrefix(secret, ident.TokenPrefix)
	if !ok || name == "" || w.ended[secret] {
		return ident.Actor{}, fault.New(fault.Unauthenticated, "Your token is unknown or has ended.")
	}
	account, _, _ := strings.Cut(name, "-")
	return ident.Actor{Kind: ident.Person, ID: account, Name: account, Credential: secret}, nil
}

// Guard implements link.Accounts.
func (w *world) Guard(ctx context.Context, a ident.Actor) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.guards[a.Credential] = append(w.guards[a.Credential], cancel)
	return ctx, cancel
}

// Claim implements link.Agents.
func (w *world) Claim(_ context.Context, a ident.Actor, h linkwire.Hello) (task.Attached, error) {
	if strings.HasPrefix(h.Name, "foreign") {
		return task.Attached{}, fault.New(fault.Conflict, "The name %s is taken.", h.Name)
	}
	return task.Attached{AgentID: h.Name, Name: h.Name, OwnerID: a.ID, Client: h.Client}, nil
}

// Holds implements link.Agents.
func (w *world) Holds(context.Context, ident.Actor, task.Attached) error { return nil }

// Observe implements the driver's Observer.
func (w *world) Observe(_ context.Context, id string, l hub.Liveness) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.live[id] = append(w.live[id], l)
}

func (w *world) start() {
	w.drv = driver.New(driver.Config{Portal: "portal.example", Observer: w})
	w.cfg.Attach = w.drv
	base, cancel := context.WithCancel(context.Background())
	if w.net == nil {
		w.net = &memory{}
	}
	w.srv = &http.Server{Handler: door.New(w.cfg), BaseContext: func(net.Listener) context.Context { return base }}
	w.srv.RegisterOnShutdown(cancel)
	go w.srv.Serve(w.net.listen())
}

// stop ends the portal as it ends itself: connections first.
func (w *world) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := w.srv.Shutdown(ctx); err != nil {
		w.t.Error("stop:", err)
	}
	w.drv.Close()
}

// revoke ends a token.
func (w *world) revoke(secret string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended[secret] = true
	for _, cancel := range w.guards[secret] {
		cancel()
	}
}

func (w *world) last(id string) hub.Liveness {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l := w.live[id]; len(l) > 0 {
		return l[len(l)-1]
	}
	return hub.Liveness{}
}

func (w *world) dial(secret string) func(context.Context) (*linkwire.Socket, error) {
	return func(ctx context.Context) (*linkwire.Socket, error) {
		return linkwire.Dial(ctx, "http://portal.example", secret, w.net.dial)
	}
}

// agent is an agent that runs until it is stopped.
type agent struct {
	*linkwire.Agent
	up   chan linkwire.Welcome
	done chan struct{}
	err  error
	stop context.CancelFunc
}

func (w *world) agent(name string, work func(context.Context, linkwire.Task, *linkwire.Answer) linkwire.Done) *agent {
	a := &agent{up: make(chan linkwire.Welcome, 100), done: make(chan struct{})}
	a.Agent = &linkwire.Agent{Hello: linkwire.Hello{Name: name, Client: "test 1"}, Dial: w.dial(token("ada")), Work: work,
		Connected: func(h linkwire.Welcome) { a.up <- h }}
	w.run(a)
	return a
}

func (w *world) run(a *agent) {
	ctx, cancel := context.WithCancel(context.Background())
	a.stop = cancel
	go func() {
		defer close(a.done)
		a.err = a.Run(ctx)
	}()
	w.t.Cleanup(func() { cancel(); <-a.done })
}

// call is a call of the driver under way.
type call struct {
	agenttest.Recorder
	res  task.Result
	err  error
	done chan struct{}
	stop context.CancelCauseFunc
}

func (w *world) ask(agent, text string) *call {
	return w.run2(task.Call{TaskID: ident.NewID(), ConversationID: "c", MessageID: ident.NewID(), Attempt: 1,
		Agent: task.Target{ID: agent, Name: agent}, Parts: []task.Part{task.TextPart(text)}, Caller: task.Caller{Kind: "person", Handle: "bob"}})
}

func (w *world) run2(k task.Call) *call {
	c := &call{done: make(chan struct{})}
	ctx, cancel := context.WithCancelCause(context.Background())
	c.stop = cancel
	go func() {
		defer close(c.done)
		c.res, c.err = w.drv.Run(ctx, k, &c.Recorder)
		c.Over()
	}()
	return c
}

func (c *call) want(t *testing.T, state task.State, text string) {
	t.Helper()
	<-c.done
	if c.err != nil || c.res.State != state || task.PlainText(c.res.Parts) != text || state == task.Completed && c.Shown() != text {
		t.Errorf("%s %.200q %q %v, shown %.200q; want %s %.200q", c.res.State, task.PlainText(c.res.Parts), c.res.Reason, c.err, c.Shown(), state, text)
	}
	for _, f := range c.Faults() {
		t.Error(f)
	}
}

// count streams numbers, one a second.
func count(n int) func(context.Context, linkwire.Task, *linkwire.Answer) linkwire.Done {
	return func(ctx context.Context, k linkwire.Task, out *linkwire.Answer) linkwire.Done {
		for i := range n {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return linkwire.Done{State: linkwire.Failed, Reason: "stopped"}
			}
			out.Text(fmt.Sprintf("%d ☃ ", i))
		}
		return linkwire.Done{State: linkwire.Completed}
	}
}

func counted(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d ☃ ", i)
	}
	return b.String()
}
