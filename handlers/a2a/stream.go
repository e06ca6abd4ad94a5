package a2a

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"agentsite/handlers/respond"
	"agentsite/internal/a2a"
	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// streamTask answers with the events of a task: first the task itself, then its events until it
// ends or waits for input. It returns errStreamed once the answer has started. The task continues
// without its reader. ctx is from request.Callers.BeginWait.
func (q *methodCall) streamTask(ctx context.Context, actor ident.Actor, t task.Task, how detail) error {
	if q.usesExtension(a2a.ExtEvents) {
		return q.streamNumbered(ctx, actor, t)
	}
	d := q.handler
	f := follower{handler: d, actor: actor, speakers: how.speakers, on: q.method == a2a.SubscribeTask &&
		q.write.Version == a2a.Version10}
	if err := f.followTask(ctx, t); err != nil {
		return err
	}
	defer f.closeStream()
	// The task is read after following has started, so that no event is lost in between. A task that this
	// call created and that has ended already is streamed from its beginning, because its log is
	// complete.
	switch now, err := d.cfg.Chat.Task(ctx, actor, t.ID); {
	case err != nil:
		return err
	case q.method != a2a.StreamMessage || !t.State.Active() || now.State.Active():
		t = now
	}
	first, err := d.viewTask(ctx, actor, t, how)
	if err != nil {
		return err
	}
	var early []a2a.Event
	if q.method == a2a.StreamMessage && q.agent.Kind == hub.Builtin {
		m, events, err := f.firstSign(ctx, t)
		if err != nil {
			return err
		}
		if early = events; m != nil {
			if out, err := respond.OpenEvents(q.w); err == nil {
				out.Write(q.encodeEvent(a2a.Event{Message: m}))
			}
			return errStreamed
		}
	}
	out, err := respond.OpenEvents(q.w)
	if err != nil {
		return errStreamed
	}
	b := q.encodeEvent(a2a.Event{Task: &first})
	for _, e := range early {
		b = append(b, q.encodeEvent(e)...)
	}
	if out.Write(b) != nil || !t.State.Active() && !f.on {
		return errStreamed
	}
	lost := false
	out.Run(ctx, func(ctx context.Context) ([]byte, error) {
		if lost {
			return nil, io.EOF
		}
		events, err := f.nextEvents(ctx)
		if err != nil {
			if e := fault.As(err); e.Kind != fault.Internal && !errors.Is(err, context.DeadlineExceeded) {
				lost = true
				return q.encodeFailure(err), nil
			}
			return nil, err
		}
		var b []byte
		for _, ev := range events {
			b = append(b, q.encodeEvent(ev)...)
		}
		return b, nil
	})
	return errStreamed
}

// follower converts the events of a task to events of the protocol. Create it, then call
// followTask; one goroutine uses it.
type follower struct {
	handler *Handler
	actor   ident.Actor
	// on is true for readers that stay while the task waits for input, until it ends.
	on       bool
	speakers bool
	s        *respond.Stream
	g        growing
}

// followTask starts following a task from its present state. Call closeStream afterwards.
func (f *follower) followTask(ctx context.Context, t task.Task) error {
	from := t
	if f.on && !t.State.Active() { // the client has seen the agent's question already
		from.MessageSeq = max(t.MessageSeq, t.AnswerSeq)
	}
	s, err := respond.Follow(ctx, f.handler.cfg.Chat, f.actor, from)
	if err != nil {
		return err
	}
	f.closeStream()
	f.s, f.g = s, growing{task: t, state: t.State}
	return nil
}

func (f *follower) closeStream() {
	if f.s != nil {
		f.s.Close()
	}
}

// nextEvents returns the next events, and waits for them until ctx ends. It returns io.EOF after
// the last.
func (f *follower) nextEvents(ctx context.Context) ([]a2a.Event, error) {
	if f.g.ended {
		if !f.on || f.g.task.State.Terminal() {
			return nil, io.EOF
		}
		if err := f.followTask(ctx, f.g.task); err != nil {
			return nil, err
		}
	}
	e, err := f.s.Next(ctx)
	if err != nil {
		return nil, err
	}
	return f.handler.taskEvents(ctx, &f.g, e, f.speakers), nil
}

// maxOpening is how long a stream waits for the first sign of whether the agent answers with a task or a
// plain message. Agents that run in this process show it at once.
const maxOpening = time.Second

// firstSign waits up to maxOpening for the agent's first event. If the answer is a plain message,
// firstSign returns that message, and the stream has no task (§3.1.2); otherwise it returns the events so
// far.
func (f *follower) firstSign(ctx context.Context, t task.Task) (*a2a.Message, []a2a.Event, error) {
	var seen []a2a.Event
	wait, cancel := context.WithTimeout(ctx, maxOpening)
	defer cancel()
	for t.State.Active() && !f.g.said {
		events, err := f.nextEvents(wait)
		if err != nil {
			if wait.Err() != nil && ctx.Err() == nil {
				return nil, seen, nil
			}
			return nil, nil, err
		}
		if seen = append(seen, events...); f.g.ended {
			t = f.g.task
		}
	}
	if !t.Direct {
		return nil, seen, nil
	}
	m, err := f.handler.replyMessage(ctx, f.actor, t, f.speakers)
	return m, seen, err
}

// encodeEvent encodes one event of the stream in the call's version and binding.
func (q *methodCall) encodeEvent(e a2a.Event) []byte {
	return encodeFrame(q.binding.wrapEvent(q.write.Event(q.addCost(e))))
}

// encodeFailure encodes the error that ends a stream, as its last event.
func (q *methodCall) encodeFailure(err error) []byte {
	f := q.handler.failureOf(q.r, err)
	return encodeFrame(q.binding.wrapFailure(f))
}

// encodeFrame encodes v as one server-sent event without an id.
func encodeFrame(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil { // answers hold only types that encode
		panic(err)
	}
	return append(append([]byte("data: "), b...), "\n\n"...)
}

// growing is the part of a task that the reader of a stream has received so far.
type growing struct {
	task   task.Task
	state  task.State
	status string
	begun  bool // a piece of the answer was sent
	said   bool // the agent has sent more than the state "working"
	ended  bool
}

// taskEvents converts an event of a task to events of the protocol and updates g. It returns nil if the
// reader sees no change.
func (d *Handler) taskEvents(ctx context.Context, g *growing, e respond.Event, speakers bool) []a2a.Event {
	id, room := g.task.ID, g.task.ConversationID
	piece := func(a task.Artifact, more, last bool) a2a.Event {
		return a2a.Event{Artifact: &a2a.ArtifactUpdate{TaskID: id, ContextID: room, Artifact: a, Append: more,
			Last: last}}
	}
	switch {
	case e.Task != nil:
		if e.Task.State == g.state && e.Task.Status == g.status {
			return nil
		}
		g.state, g.status = e.Task.State, e.Task.Status
		g.said = g.said || g.status != ""
		s := a2a.Status{State: g.state, At: clock.Now()}
		if g.status != "" {
			s.Message = &a2a.Message{ID: ident.NewID(), ContextID: room, TaskID: id, FromAgent: true,
				Parts: []task.Part{task.TextPart(g.status)}}
		}
		return []a2a.Event{{Status: &a2a.StatusUpdate{TaskID: id, ContextID: room, Status: s}}}
	case e.Text != "" || e.Restart:
		more := g.begun && !e.Restart
		g.begun, g.said = true, g.said || !e.Whole
		return []a2a.Event{piece(task.Artifact{ID: answerID, Name: "Answer", Parts: []task.Part{task.TextPart(e.Text)}},
			more, false)}
	case e.End == nil:
		return nil // artifacts are sent at the end, because only then do their files have addresses
	}
	t, m := e.End.Task, e.End.Message
	g.task, g.ended, g.said = t, true, true
	t2 := t
	t2.MessageSeq = max(t.MessageSeq, m.Seq)
	files := d.cfg.Chat.Files.ForTask(t2)
	var out []a2a.Event
	if t.State.Terminal() {
		var answer []task.Part
		if m.Kind == chat.Text {
			answer = m.Parts
		}
		switch {
		case len(answer) == 0:
		// the text was sent in pieces, so only the end of the artifact is left to send
		case len(m.Parts) == 1 && m.Parts[0].Text != "" && g.begun:
			out = append(out, piece(task.Artifact{ID: answerID, Name: "Answer", Parts: []task.Part{{}}}, true, true))
		default:
			out = append(out, piece(task.Artifact{ID: answerID, Name: "Answer",
				Parts: fetchableParts(ctx, files, m.Parts)}, false, true))
		}
		for _, a := range madeArtifacts(ctx, files, t, answer) {
			out = append(out, piece(a, false, true))
		}
	}
	s := a2a.Status{State: t.State, At: m.CreatedAt, Message: d.statusMessage(ctx, files, t, &m, speakers)}
	return append(out, a2a.Event{Status: &a2a.StatusUpdate{TaskID: id, ContextID: room, Status: s}})
}
