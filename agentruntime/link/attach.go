package link

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"agentsite/internal/linkwire"
	"agentsite/internal/task"
)

// What an agent may send in a while: beyond it its messages wait, and so does
// their sender. Every message counts as one of leastCost bytes at least.
const (
	bytesPerSecond = 4 << 20
	burstBytes     = 2 * linkwire.MaxMessage
	leastCost      = 4 << 10
)

// session is one connection of an agent. Its maps are guarded by agent.mu.
type session struct {
	d      *Driver
	agent  *agent
	stream task.Stream
	client string
	max    int   // tasks at once
	turn   int64 // of welcomed

	over    bool // it ended, or another one took its place
	runs    map[string]*run
	offered map[string]int64 // leases the agent holds that nobody took up yet
	calls   map[int64]*run   // our requests without an answer
	nextID  int64

	outMu   sync.Mutex // guards out and sending; agent.mu is never taken under it
	out     [][]byte   // messages on their way, oldest first
	sending bool
}

// maxOut is how many messages may be on their way to an agent that is slow to
// take them.
const maxOut = 256

// tell sends a message after those before it, without waiting for it.
func (s *session) tell(message []byte) {
	s.outMu.Lock()
	defer s.outMu.Unlock()
	if len(s.out) >= maxOut {
		s.stream.Close("busy: the agent does not read what it is sent")
		return
	}
	s.out = append(s.out, message)
	if !s.sending {
		s.sending = s.d.background(s.drain)
	}
}

// drain sends what is on its way. If a message is lost so is the connection.
func (s *session) drain() {
	for {
		s.outMu.Lock()
		if len(s.out) == 0 {
			s.sending, s.out = false, nil
			s.outMu.Unlock()
			return
		}
		b := s.out[0]
		s.out = s.out[1:]
		s.outMu.Unlock()
		s.stream.Send(context.Background(), b)
	}
}

// errProtocol ends a connection whose agent does not keep to the protocol.
type errProtocol struct{ text string }

func (e errProtocol) Error() string { return e.text }

// Attach implements task.Attacher. The first message of the stream is hello.
func (d *Driver) Attach(ctx context.Context, who task.Attached, stream task.Stream) error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		stream.Close(linkwire.ReasonRestart)
		return task.ErrDetached
	}
	d.wg.Add(1)
	d.mu.Unlock()
	defer d.wg.Done()
	a := d.agent(who.AgentID)
	s := &session{d: d, agent: a, stream: stream, client: linkwire.Line(who.Client, 80),
		runs: make(map[string]*run), offered: make(map[string]int64), calls: make(map[int64]*run)}
	b, err := stream.Receive(ctx)
	if err != nil {
		return err
	}
	m, hello, err := s.hello(b)
	if err != nil {
		stream.Close("protocol: " + err.Error())
		return err
	}
	welcome := linkwire.Welcome{
		Agent: who.Name, Portal: d.cfg.Portal, Protocol: linkwire.Version,
		PingSeconds: int(linkwire.PingEvery / time.Second), LeaseSeconds: int(d.cfg.Grace / time.Second),
		MaxMessageBytes: linkwire.MaxMessage, MaxTextBytes: linkwire.MaxText, MaxTasks: s.max,
	}
	if d.cfg.Portal != "" {
		welcome.Agent += "@" + d.cfg.Portal
	}
	a.mu.Lock()
	a.welcomed++
	s.turn = a.welcomed
	a.mu.Unlock()
	if err := stream.Send(ctx, linkwire.Response(m.ID, welcome)); err != nil {
		return err
	}
	if why := d.enter(s, hello.Resume); why != "" {
		stream.Close(why)
		return task.ErrDetached
	}
	defer d.exit(s)
	d.cfg.Log.Debug("agent connected", "agent", who.AgentID, "resumes", len(hello.Resume))
	err = s.read(ctx)
	if p, ok := errors.AsType[errProtocol](err); ok {
		d.cfg.Log.Info("connection of an agent ended", "agent", who.AgentID, "reason", p.text)
		stream.Close("protocol: " + p.text)
	}
	return err
}

// hello reads the first message.
func (s *session) hello(b []byte) (m linkwire.Message, h linkwire.Hello, err error) {
	if m, err = linkwire.Decode(b); err != nil {
		return m, h, errProtocol{err.Error()}
	}
	if m.Method != linkwire.MethodHello || m.ID == nil || json.Unmarshal(m.Params, &h) != nil ||
		h.Protocol != linkwire.Version {
		return m, h, errProtocol{"the first message must be a hello request of protocol 1"}
	}
	if s.max = h.MaxTasks; s.max <= 0 {
		s.max = linkwire.DefaultTasks
	}
	s.max = min(s.max, linkwire.MaxTasks)
	if len(h.Resume) > linkwire.MaxTasks {
		return m, h, errProtocol{"more tasks to resume than an agent may have"}
	}
	return m, h, nil
}

// enter makes s the agent's session, or returns why it cannot be.
func (d *Driver) enter(s *session, held []linkwire.Held) (why string) {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return linkwire.ReasonRestart
	}
	a := s.agent
	a.mu.Lock()
	d.mu.Unlock()
	old := a.session
	if old != nil && old.turn > s.turn { // it was welcomed later and came in first
		a.mu.Unlock()
		return linkwire.ReasonReplaced
	}
	if old != nil {
		old.end()
	}
	a.session, a.seen = s, time.Now()
	for _, h := range held {
		s.offered[h.Task] = h.Lease
	}
	a.notify()
	a.mu.Unlock()
	if old != nil {
		old.stream.Close(linkwire.ReasonReplaced)
	}
	d.watch.soon(a.id)
	// What nobody takes up is told to stop; after a start of the portal its
	// tasks come back one by one.
	if len(held) > 0 {
		wait := max(time.Second, d.cfg.Grace-time.Since(d.started))
		time.AfterFunc(wait, s.sweep)
	}
	return ""
}

// end takes everything that was under way off the session; the caller holds
// agent.mu.
func (s *session) end() {
	s.over = true
	for _, r := range s.runs {
		r.lose()
	}
	clear(s.runs)
	clear(s.calls)
	clear(s.offered)
}

// exit takes the session off its agent.
func (d *Driver) exit(s *session) {
	a := s.agent
	a.mu.Lock()
	current := a.session == s
	if current {
		s.end()
		a.session, a.away, a.seen = nil, time.Now(), time.Now()
		a.notify()
	}
	a.mu.Unlock()
	if current {
		d.watch.later(a.id, d.cfg.Settle)
	}
}

// sweep tells the agent to forget tasks that nobody took up.
func (s *session) sweep() {
	a := s.agent
	a.mu.Lock()
	var out [][]byte
	for id, lease := range s.offered {
		if r := a.runs[id]; r != nil && r.held && r.at.Lease == lease {
			continue // it is about to
		}
		delete(s.offered, id)
		out = append(out, linkwire.Notification(linkwire.MethodCancel,
			linkwire.Cancel{Task: id, Lease: lease, Reason: "The task has ended here."}))
	}
	if len(out) > 0 {
		a.notify()
	}
	a.mu.Unlock()
	for _, b := range out {
		s.tell(b)
	}
}

// read handles what the agent sends until the connection ends.
func (s *session) read(ctx context.Context) error {
	pace := rate.NewLimiter(bytesPerSecond, burstBytes)
	for {
		b, err := s.stream.Receive(ctx)
		if err != nil {
			return err
		}
		m, err := linkwire.Decode(b)
		if err != nil {
			return errProtocol{err.Error()}
		}
		if err := pace.WaitN(ctx, max(len(b), leastCost)); err != nil {
			return err
		}
		answer, err := s.take(m, b)
		if err != nil {
			return err
		}
		if answer != nil {
			if err := s.stream.Send(ctx, answer); err != nil {
				return err
			}
		}
	}
}

// take handles one message and returns what to answer at once, or nil.
func (s *session) take(m linkwire.Message, b []byte) ([]byte, error) {
	a := s.agent
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.over {
		return nil, nil // another session speaks for the agent
	}
	a.seen = time.Now()
	bad := func() ([]byte, error) {
		if m.ID == nil {
			return nil, nil
		}
		return linkwire.Failure(m.ID, &linkwire.Error{Code: linkwire.ErrParams,
			Message: m.Method + ": the params are not as they should be"}), nil
	}
	switch m.Method {
	case "":
		s.answered(m, b)
		return nil, nil
	case linkwire.MethodDelta:
		var p linkwire.Delta
		if json.Unmarshal(m.Params, &p) != nil {
			return bad()
		}
		if r := s.active(p.Task, p.Lease); r != nil {
			r.traced(false, m.Method, b)
			r.delta(p)
		}
	case linkwire.MethodStatus:
		var p linkwire.Status
		if json.Unmarshal(m.Params, &p) != nil {
			return bad()
		}
		if r := s.active(p.Task, p.Lease); r != nil {
			r.traced(false, m.Method, b)
			r.status = linkwire.Line(p.Text, linkwire.MaxStatus)
			r.poke()
		}
	case linkwire.MethodArtifact:
		var p linkwire.Produced
		if json.Unmarshal(m.Params, &p) != nil {
			return bad()
		}
		if r := s.active(p.Task, p.Lease); r != nil {
			r.traced(false, m.Method, b)
			r.artifact(p.Artifact)
		}
	case linkwire.MethodDone:
		var p linkwire.Done
		if m.ID == nil || json.Unmarshal(m.Params, &p) != nil {
			return bad()
		}
		return s.done(m, p, b), nil
	default:
		if m.ID != nil {
			return linkwire.Failure(m.ID, &linkwire.Error{Code: linkwire.ErrMethod,
				Message: "there is no method " + strconv.Quote(linkwire.Line(m.Method, 40))}), nil
		}
	}
	return nil, nil
}

// active is the run that the agent may speak of on this session; the caller
// holds agent.mu. What is said of others is late or foreign and left alone.
func (s *session) active(id string, lease int64) *run {
	if r := s.runs[id]; r != nil && r.at.Lease == lease && r.asked {
		return r
	}
	return nil
}

// done takes the end of a task; its run answers when it is stored.
func (s *session) done(m linkwire.Message, p linkwire.Done, b []byte) []byte {
	r := s.active(p.Task, p.Lease)
	switch {
	case r == nil && s.offered[p.Task] == p.Lease && p.Lease != 0:
		return linkwire.Failure(m.ID, &linkwire.Error{Code: linkwire.ErrNotNow,
			Message: "The task was not resumed on this connection. Wait for resume."})
	case r == nil:
		return linkwire.Failure(m.ID, &linkwire.Error{Code: linkwire.ErrLease,
			Message: "The lease on this task is not held any more. Forget it."})
	case r.done != nil:
		r.doneID = m.ID // said again before it was answered
		return nil
	}
	r.traced(false, m.Method, b)
	r.done, r.doneID = &p, m.ID
	r.poke()
	return nil
}

// answered takes the answer to a request of ours.
func (s *session) answered(m linkwire.Message, b []byte) {
	id, err := strconv.ParseInt(string(m.ID), 10, 64)
	r := s.calls[id]
	if err != nil || r == nil {
		return
	}
	delete(s.calls, id)
	if s.runs[r.call.TaskID] != r {
		return
	}
	r.traced(false, "answer", b)
	var ok linkwire.Accepted
	switch {
	case m.Error != nil:
		r.refused = m.Error
	case json.Unmarshal(m.Result, &ok) != nil || !ok.Accepted:
		r.refused = &linkwire.Error{Code: linkwire.ErrDeclined}
	default:
		r.accepted = true
	}
	r.poke()
}
