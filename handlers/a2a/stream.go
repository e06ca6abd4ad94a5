package a2a

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"agentsite/handlers/face"
	"agentsite/internal/a2a"
	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// stream answers with the events of a task: first the task itself, then what
// happens to it until it ends or asks for something. It returns errStreamed
// once it has begun to answer. The task goes on without its reader.
// ctx is of face.Callers.Attend.
func (q *request) stream(ctx context.Context, actor ident.Actor, t task.Task, how detail) error {
	d := q.door
	s, err := face.Follow(ctx, d.cfg.Chat, actor, t)
	if err != nil {
		return err
	}
	defer s.Close()
	// Read after following has begun, so that nothing falls in between.
	if t, err = d.cfg.Chat.Task(ctx, actor, t.ID); err != nil {
		return err
	}
	first, err := d.view(ctx, actor, t, how)
	if err != nil {
		return err
	}
	out, err := face.OpenEvents(q.w)
	if err != nil {
		return errStreamed
	}
	g := growing{task: t, state: t.State}
	if out.Write(q.event(a2a.Event{Task: &first})) != nil || !t.State.Active() {
		return errStreamed
	}
	out.Run(ctx, func(ctx context.Context) ([]byte, error) {
		if g.ended {
			return nil, io.EOF
		}
		e, err := s.Next(ctx)
		if err != nil {
			if f := fault.As(err); f.Kind != fault.Internal && !errors.Is(err, context.DeadlineExceeded) {
				g.ended = true
				return q.lost(err), nil
			}
			return nil, err
		}
		var b []byte
		for _, ev := range d.grow(ctx, actor, &g, e) {
			b = append(b, q.event(ev)...)
		}
		return b, nil
	})
	return errStreamed
}

// event writes one event of the stream.
func (q *request) event(e a2a.Event) []byte { return frame(q.events(q.write.Event(e))) }

// lost writes the event of a stream that cannot go on.
func (q *request) lost(err error) []byte {
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
	ended  bool
}

// grow makes events of the protocol out of what happened to a task.
func (d *Door) grow(ctx context.Context, actor ident.Actor, g *growing, e face.Event) []a2a.Event {
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
		s := a2a.Status{State: g.state, At: clock.Now()}
		if g.status != "" {
			s.Message = &a2a.Message{ID: ident.NewID(), ContextID: room, TaskID: id, FromAgent: true, Parts: []task.Part{task.TextPart(g.status)}}
		}
		return []a2a.Event{{Status: &a2a.StatusUpdate{TaskID: id, ContextID: room, Status: s}}}
	case e.Text != "" || e.Restart:
		more := g.begun && !e.Restart
		g.begun = true
		return []a2a.Event{piece(task.Artifact{ID: answerID, Name: "Answer", Parts: []task.Part{task.TextPart(e.Text)}}, more, false)}
	case e.End == nil:
		return nil // artifacts come with the end, which knows where their files are
	}
	g.ended = true
	t, m := e.End.Task, e.End.Message
	t2 := t
	t2.MessageSeq = max(t.MessageSeq, m.Seq)
	files := d.cfg.Chat.TaskFiles(t2)
	var out []a2a.Event
	if t.State.Terminal() {
		switch {
		case m.Kind != chat.Text || len(m.Parts) == 0:
		case len(m.Parts) == 1 && m.Parts[0].Text != "" && g.begun: // it was sent as it grew
			out = append(out, piece(task.Artifact{ID: answerID, Name: "Answer", Parts: []task.Part{{}}}, true, true))
		default:
			out = append(out, piece(task.Artifact{ID: answerID, Name: "Answer", Parts: reachable(ctx, files, m.Parts)}, false, true))
		}
		for _, a := range made(ctx, files, t) {
			out = append(out, piece(a, false, true))
		}
	}
	s := a2a.Status{State: t.State, At: m.CreatedAt, Message: statusMessage(ctx, files, t, &m)}
	return append(out, a2a.Event{Status: &a2a.StatusUpdate{TaskID: id, ContextID: room, Status: s}})
}
