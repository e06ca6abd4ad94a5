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

// Limits of the data that an agent may send. Beyond them the portal reads its next message later, which
// slows the sender down. Every message counts as at least leastCost bytes.
const (
	bytesPerSecond = 4 << 20
	burstBytes     = 2 * linkwire.MaxMessage
	leastCost      = 4 << 10
)

// session is one connection of an agent. Its fields up to nextID that change are guarded by agent.mu.
type session struct {
	d      *Driver
	agent  *agent
	stream task.Stream
	client string
	max    int   // largest number of tasks at a time, as the agent asked for in hello
	turn   int64 // order of connections, from agent.welcomed

	over    bool // set once the connection ended or a newer one of the agent replaced it
	runs    map[string]*run
	offered map[string]int64 // leases that the agent holds and no run has resumed yet
	calls   map[int64]*run   // requests to the agent without an answer yet, by request id
	nextID  int64

	outMu   sync.Mutex // guards out and sending; agent.mu is never locked while outMu is held
	out     [][]byte   // messages to be sent, oldest first
	sending bool
}

// maxOut bounds the messages that wait for an agent that reads slowly.
const maxOut = 256

// sendMessage queues a message after earlier ones, without waiting until it is sent. It closes the
// connection when maxOut messages wait, because an agent that does not read would hold memory.
func (s *session) sendMessage(message []byte) {
	s.outMu.Lock()
	defer s.outMu.Unlock()
	if len(s.out) >= maxOut {
		s.stream.Close("busy: the agent does not read what it is sent")
		return
	}
	s.out = append(s.out, message)
	if !s.sending {
		s.sending = s.d.runBackground(s.drainOut)
	}
}

// drainOut sends the queued messages. It ignores errors of Send, because the goroutine that reads the
// stream gets the same end and removes the session.
func (s *session) drainOut() {
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
		_ = s.stream.Send(context.Background(), b) // an error also ends the stream for its reader
	}
}

// errProtocol ends the connection of an agent that violates the protocol.
type errProtocol struct{ text string }

func (e errProtocol) Error() string { return e.text }

// Attach implements task.Attacher. The first message of the stream must be hello. A stream that violates
// the protocol is closed with the reason.
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
	a := d.agentState(who.AgentID)
	s := &session{d: d, agent: a, stream: stream, client: linkwire.Line(who.Client, 80),
		runs: make(map[string]*run), offered: make(map[string]int64), calls: make(map[int64]*run)}
	b, err := stream.Receive(ctx)
	if err != nil {
		return err
	}
	m, hello, err := s.readHello(b)
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
	if err := stream.Send(ctx, linkwire.EncodeResponse(m.ID, welcome)); err != nil {
		return err
	}
	if why := d.addSession(s, hello.Resume); why != "" {
		stream.Close(why)
		return task.ErrDetached
	}
	defer d.removeSession(s)
	d.cfg.Log.Debug("agent connected", "agent", who.AgentID, "resumes", len(hello.Resume))
	err = s.readMessages(ctx)
	if p, ok := errors.AsType[errProtocol](err); ok {
		d.cfg.Log.Info("connection of an agent ended", "agent", who.AgentID, "reason", p.text)
		stream.Close("protocol: " + p.text)
	}
	return err
}

// readHello reads the first message. Its errors are sentences for the author of the agent's program.
func (s *session) readHello(b []byte) (m linkwire.Message, h linkwire.Hello, err error) {
	if m, err = linkwire.DecodeMessage(b); err != nil {
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

// addSession makes s the session of its agent and ends the previous one. It returns the reason for
// closing s instead, when the driver is closed or a newer connection was added first; "" otherwise.
func (d *Driver) addSession(s *session, held []linkwire.Held) (why string) {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return linkwire.ReasonRestart
	}
	a := s.agent
	a.mu.Lock()
	d.mu.Unlock()
	old := a.session
	if old != nil && old.turn > s.turn { // The other connection was welcomed later, although it was added first.
		a.mu.Unlock()
		return linkwire.ReasonReplaced
	}
	if old != nil {
		old.endRuns()
	}
	a.session, a.seen = s, time.Now()
	for _, h := range held {
		s.offered[h.Task] = h.Lease
	}
	a.notifyChange()
	a.mu.Unlock()
	if old != nil {
		old.stream.Close(linkwire.ReasonReplaced)
	}
	d.watch.reportSoon(a.id)
	// Leases that no run resumes are canceled. After a start of the portal its tasks resume one by one,
	// so wait for them.
	if len(held) > 0 {
		wait := max(time.Second, d.cfg.Grace-time.Since(d.started))
		time.AfterFunc(wait, s.cancelUnclaimed)
	}
	return ""
}

// endRuns removes all active runs from the session; the caller holds agent.mu. The runs keep their
// leases until the grace period ends.
func (s *session) endRuns() {
	s.over = true
	for _, r := range s.runs {
		r.loseSession()
	}
	clear(s.runs)
	clear(s.calls)
	clear(s.offered)
}

// removeSession removes a session that ended from its agent, unless another one has replaced it.
func (d *Driver) removeSession(s *session) {
	a := s.agent
	a.mu.Lock()
	current := a.session == s
	if current {
		s.endRuns()
		a.session, a.away, a.seen = nil, time.Now(), time.Now()
		a.notifyChange()
	}
	a.mu.Unlock()
	if current {
		d.watch.reportLater(a.id, d.cfg.Settle)
	}
}

// cancelUnclaimed cancels the leases that the agent offered to resume and no task has taken: their tasks
// ended while the agent was away.
func (s *session) cancelUnclaimed() {
	a := s.agent
	a.mu.Lock()
	var out [][]byte
	for id, lease := range s.offered {
		if r := a.runs[id]; r != nil && r.held && r.at.Lease == lease {
			continue // This run holds the lease and will resume it.
		}
		delete(s.offered, id)
		out = append(out, linkwire.EncodeNotification(linkwire.MethodCancel,
			linkwire.Cancel{Task: id, Lease: lease, Reason: "The task has ended here."}))
	}
	if len(out) > 0 {
		a.notifyChange()
	}
	a.mu.Unlock()
	for _, b := range out {
		s.sendMessage(b)
	}
}

// readMessages handles the agent's messages until the connection ends.
func (s *session) readMessages(ctx context.Context) error {
	pace := rate.NewLimiter(bytesPerSecond, burstBytes)
	for {
		b, err := s.stream.Receive(ctx)
		if err != nil {
			return err
		}
		m, err := linkwire.DecodeMessage(b)
		if err != nil {
			return errProtocol{err.Error()}
		}
		if err := pace.WaitN(ctx, max(len(b), leastCost)); err != nil {
			return err
		}
		if answer := s.handleMessage(m, b); answer != nil {
			if err := s.stream.Send(ctx, answer); err != nil {
				return err
			}
		}
	}
}

// handleMessage handles one message and returns the immediate answer, or nil if there is none or it
// follows later.
func (s *session) handleMessage(m linkwire.Message, b []byte) []byte {
	a := s.agent
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.over {
		return nil // another session has replaced this one
	}
	a.seen = time.Now()
	bad := func() []byte {
		if m.ID == nil {
			return nil
		}
		return linkwire.EncodeFailure(m.ID, &linkwire.Error{Code: linkwire.ErrParams,
			Message: m.Method + ": the params are not as they should be"})
	}
	switch m.Method {
	case "":
		s.takeAnswer(m, b)
		return nil
	case linkwire.MethodDelta:
		var p linkwire.Delta
		if json.Unmarshal(m.Params, &p) != nil {
			return bad()
		}
		if r := s.activeRun(p.Task, p.Lease); r != nil {
			r.traceMessage(false, m.Method, b)
			r.takeDelta(p)
		}
	case linkwire.MethodStatus:
		var p linkwire.Status
		if json.Unmarshal(m.Params, &p) != nil {
			return bad()
		}
		if r := s.activeRun(p.Task, p.Lease); r != nil {
			r.traceMessage(false, m.Method, b)
			r.status = linkwire.Line(p.Text, linkwire.MaxStatus)
			r.wakeRun()
		}
	case linkwire.MethodArtifact:
		var p linkwire.Produced
		if json.Unmarshal(m.Params, &p) != nil {
			return bad()
		}
		if r := s.activeRun(p.Task, p.Lease); r != nil {
			r.traceMessage(false, m.Method, b)
			r.takeArtifact(p.Artifact)
		}
	case linkwire.MethodDone:
		var p linkwire.Done
		if m.ID == nil || json.Unmarshal(m.Params, &p) != nil {
			return bad()
		}
		return s.takeDone(m, p, b)
	default:
		if m.ID != nil {
			return linkwire.EncodeFailure(m.ID, &linkwire.Error{Code: linkwire.ErrMethod,
				Message: "there is no method " + strconv.Quote(linkwire.Line(m.Method, 40))})
		}
	}
	return nil
}

// activeRun returns the run that holds this lease on this session, nil for late or invalid messages,
// which are ignored; the caller holds agent.mu.
func (s *session) activeRun(id string, lease int64) *run {
	if r := s.runs[id]; r != nil && r.at.Lease == lease && r.asked {
		return r
	}
	return nil
}

// takeDone takes the final message of a task. It returns an immediate answer only for a lease that is
// not held; the run confirms an accepted one after its outcome is stored. The caller holds agent.mu.
func (s *session) takeDone(m linkwire.Message, p linkwire.Done, b []byte) []byte {
	r := s.activeRun(p.Task, p.Lease)
	switch {
	case r == nil && s.offered[p.Task] == p.Lease && p.Lease != 0:
		return linkwire.EncodeFailure(m.ID, &linkwire.Error{Code: linkwire.ErrNotNow,
			Message: "The task was not resumed on this connection. Wait for resume."})
	case r == nil:
		return linkwire.EncodeFailure(m.ID, &linkwire.Error{Code: linkwire.ErrLease,
			Message: "The lease on this task is not held any more. Forget it."})
	case r.done != nil:
		r.doneID = m.ID // The agent repeated the message before it was answered: answer the newest id.
		return nil
	}
	r.traceMessage(false, m.Method, b)
	r.done, r.doneID = &p, m.ID
	r.wakeRun()
	return nil
}

// takeAnswer takes the agent's answer to a request of the portal. Answers without a waiting run are
// ignored; the caller holds agent.mu.
func (s *session) takeAnswer(m linkwire.Message, b []byte) {
	id, err := strconv.ParseInt(string(m.ID), 10, 64)
	r := s.calls[id]
	if err != nil || r == nil {
		return
	}
	delete(s.calls, id)
	if s.runs[r.call.TaskID] != r {
		return
	}
	r.traceMessage(false, "answer", b)
	var ok linkwire.Accepted
	switch {
	case m.Error != nil:
		r.refused = m.Error
	case json.Unmarshal(m.Result, &ok) != nil || !ok.Accepted:
		r.refused = &linkwire.Error{Code: linkwire.ErrDeclined}
	default:
		r.accepted = true
	}
	r.wakeRun()
}
