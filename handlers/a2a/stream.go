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

// stream answers with the events of a task: first the task itself, then what
// happens to it until it ends or asks for something. It returns errStreamed
// once it has begun to answer. The task goes on without its reader.
// ctx is of request.Callers.BeginWait.
func (q *methodCall) stream(ctx context.Context, actor ident.Actor, t task.Task, how detail) error {
	if q.follows(a2a.ExtEvents) {
		return q.numbered(ctx, actor, t)
	}
	d := q.door
	f := follower{door: d, actor: actor, speakers: how.speakers, on: q.method == a2a.SubscribeTask && q.write.Version == a2a.Version10}
	if err := f.begin(ctx, t); err != nil {
		return err
	}
	defer f.close()
	// Read after following has begun, so that nothing falls in between. Work that
	// was asked for just now and is done already is told from its beginning: what
	// is followed has all of it.
	switch now, err := d.cfg.Chat.Task(ctx, actor, t.ID); {
	case err != nil:
		return err
	case q.method != a2a.StreamMessage || !t.State.Active() || now.State.Active():
		t = now
	}
	first, err := d.view(ctx, actor, t, how)
	if err != nil {
		return err
	}
	var early []a2a.Event
	if q.method == a2a.StreamMessage && q.agent.Kind == hub.Builtin {
		m, events, err := f.opening(ctx, t)
		if err != nil {
			return err
		}
		if early = events; m != nil {
			if out, err := respond.OpenEvents(q.w); err == nil {
				out.Write(q.event(a2a.Event{Message: m}))
			}
			return errStreamed
		}
	}
	out, err := respond.OpenEvents(q.w)
	if err != nil {
		return errStreamed
	}
	b := q.event(a2a.Event{Task: &first})
	for _, e := range early {
		b = append(b, q.event(e)...)
	}
	if out.Write(b) != nil || !t.State.Active() && !f.on {
		return errStreamed
	}
	lost := false
	out.Run(ctx, func(ctx context.Context) ([]byte, error) {
		if lost {
			return nil, io.EOF
		}
		events, err := f.next(ctx)
		if err != nil {
			if e := fault.As(err); e.Kind != fault.Internal && !errors.Is(err, context.DeadlineExceeded) {
				lost = true
				return q.lost(err), nil
			}
			return nil, err
		}
		var b []byte
		for _, ev := range events {
			b = append(b, q.event(ev)...)
		}
		return b, nil
	})
	return errStreamed
}

// follower makes events of the protocol out of what happens to a task. Create
// it, then begin; one goroutine uses it.
type follower struct {
	door  *Door
	actor ident.Actor
	// on goes on where the task waits for something, until it ends.
	on       bool
	speakers bool
	s        *respond.Stream
	g        growing
}

// begin follows a task from where it is.
func (f *follower) begin(ctx context.Context, t task.Task) error {
	from := t
	if f.on && !t.State.Active() { // what it asked is known
		from.MessageSeq = max(t.MessageSeq, t.AnswerSeq)
	}
	s, err := respond.Follow(ctx, f.door.cfg.Chat, f.actor, from)
	if err != nil {
		return err
	}
	f.close()
	f.s, f.g = s, growing{task: t, state: t.State}
	return nil
}

func (f *follower) close() {
	if f.s != nil {
		f.s.Close()
	}
}

// next returns what happens next, waiting for it until ctx ends, and io.EOF
// after the last.
func (f *follower) next(ctx context.Context) ([]a2a.Event, error) {
	if f.g.ended {
		if !f.on || f.g.task.State.Terminal() {
			return nil, io.EOF
		}
		if err := f.begin(ctx, f.g.task); err != nil {
			return nil, err
		}
	}
	e, err := f.s.Next(ctx)
	if err != nil {
		return nil, err
	}
	return f.door.grow(ctx, &f.g, e, f.speakers), nil
}

// maxOpening is how long the first event of a stream waits for a sign of what
// the answer will be. Agents that run here give it at once.
const maxOpening = time.Second

// opening waits for the agent's first sign. Where the answer is a plain
// message the stream is that message and no task (§3.1.2); else what happened
// already is returned.
func (f *follower) opening(ctx context.Context, t task.Task) (*a2a.Message, []a2a.Event, error) {
	var seen []a2a.Event
	wait, cancel := context.WithTimeout(ctx, maxOpening)
	defer cancel()
	for t.State.Active() && !f.g.said {
		events, err := f.next(wait)
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
	m, err := f.door.reply(ctx, f.actor, t, f.speakers)
	return m, seen, err
}

// event writes one event of the stream.
func (q *methodCall) event(e a2a.Event) []byte { return frame(q.events(q.write.Event(e))) }

// lost writes the event of a stream that cannot go on.
func (q *methodCall) lost(err error) []byte {
	f := q.door.failure(q.r, err)
	return frame(q.broken(f))
}

// frame is one server-sent event.
func frame(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil { // everything that is sent can be written
		panic(err)
	}
	return append(append([]byte("data: "), b...), "\n\n"...)
}

// growing is a task as its reader knows it.
type growing struct {
	task   task.Task
	state  task.State
	status string
	begun  bool // the answer has begun
	said   bool // the agent has shown more than that it works
	ended  bool
}

// grow makes events of the protocol out of what happened to a task.
func (d *Door) grow(ctx context.Context, g *growing, e respond.Event, speakers bool) []a2a.Event {
	id, room := g.task.ID, g.task.ConversationID
	piece := func(a task.Artifact, more, last bool) a2a.Event {
		return a2a.Event{Artifact: &a2a.ArtifactUpdate{TaskID: id, ContextID: room, Artifact: a, Append: more, Last: last}}
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
			s.Message = &a2a.Message{ID: ident.NewID(), ContextID: room, TaskID: id, FromAgent: true, Parts: []task.Part{task.TextPart(g.status)}}
		}
		return []a2a.Event{{Status: &a2a.StatusUpdate{TaskID: id, ContextID: room, Status: s}}}
	case e.Text != "" || e.Restart:
		more := g.begun && !e.Restart
		g.begun, g.said = true, g.said || !e.Whole
		return []a2a.Event{piece(task.Artifact{ID: answerID, Name: "Answer", Parts: []task.Part{task.TextPart(e.Text)}}, more, false)}
	case e.End == nil:
		return nil // artifacts come with the end, which knows where their files are
	}
	t, m := e.End.Task, e.End.Message
	g.task, g.ended, g.said = t, true, true
	t2 := t
	t2.MessageSeq = max(t.MessageSeq, m.Seq)
	files := d.cfg.Chat.TaskFiles(t2)
	var out []a2a.Event
	if t.State.Terminal() {
		var answer []task.Part
		if m.Kind == chat.Text {
			answer = m.Parts
		}
		switch {
		case len(answer) == 0:
		case len(m.Parts) == 1 && m.Parts[0].Text != "" && g.begun: // it was sent as it grew
			out = append(out, piece(task.Artifact{ID: answerID, Name: "Answer", Parts: []task.Part{{}}}, true, true))
		default:
			out = append(out, piece(task.Artifact{ID: answerID, Name: "Answer", Parts: reachable(ctx, files, m.Parts)}, false, true))
		}
		for _, a := range made(ctx, files, t, answer) {
			out = append(out, piece(a, false, true))
		}
	}
	s := a2a.Status{State: t.State, At: m.CreatedAt, Message: d.statusMessage(ctx, files, t, &m, speakers)}
	return append(out, a2a.Event{Status: &a2a.StatusUpdate{TaskID: id, ContextID: room, Status: s}})
}
