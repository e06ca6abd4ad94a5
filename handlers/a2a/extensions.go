package a2a

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"agentsite/handlers/respond"
	"agentsite/internal/a2a"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// activate notes which extensions the caller asks for, and tells which of
// them this request follows (§4.6.2).
func (q *methodCall) activate() {
	for _, uri := range a2a.ReadExtensions(q.r.Header.Values(a2a.ExtensionsHeader)) {
		if slices.Contains(q.extensions, uri) {
			continue
		}
		switch uri {
		case a2a.ExtEvents, a2a.ExtSpeaker:
		case a2a.ExtOnce:
			if q.proven.ID == "" { // a visitor is another one with each context
				continue
			}
		default:
			continue
		}
		q.extensions = append(q.extensions, uri)
	}
	if len(q.extensions) > 0 {
		q.w.Header().Set(a2a.ExtensionsHeader, strings.Join(q.extensions, ", "))
	}
}

func (q *methodCall) follows(extension string) bool { return slices.Contains(q.extensions, extension) }

// lastEvent is the place a reader has come to, as EventSource has it.
func (q *methodCall) lastEvent() string { return q.r.Header.Get("Last-Event-ID") }

// numbered answers with the events of a task under ExtEvents: first the task,
// with the number up to which it holds, then each event with its own. A reader
// who names the place they came to gets what they missed and, before it, the
// task without what they have; where it is not kept, the task as it is and the
// word that there is a gap.
func (q *methodCall) numbered(ctx context.Context, actor ident.Actor, t task.Task) error {
	logs := &q.door.logs
	l, err := logs.open(ctx, q.door, actor, t)
	if err != nil {
		return err
	}
	defer logs.leave(l)
	out, err := respond.OpenEvents(q.w)
	if err != nil {
		return errStreamed
	}
	place := q.lastEvent()
	after, resumed := l.resumes(place)
	task, n := l.now()
	more := map[string]any{}
	switch {
	case resumed:
		n, task.Artifacts, more["resumed"] = after, nil, true
	case place != "":
		more["gap"] = true
	}
	first := func(t a2a.Task, n int64, more map[string]any) []byte {
		return q.placed(l, n, a2a.Event{Task: &t, Metadata: l.mark(n, more)})
	}
	if out.Write(first(task, n, more)) != nil || !resumed && q.over(task.Status.State) {
		return errStreamed
	}
	done := false
	out.Run(ctx, func(ctx context.Context) ([]byte, error) {
		if done {
			return nil, io.EOF
		}
		e, err := l.next(ctx, n)
		if errors.Is(err, errGap) { // it reads too slowly
			var t a2a.Task
			t, n = l.now()
			done = q.over(t.Status.State)
			return first(t, n, map[string]any{"gap": true}), nil
		}
		if err != nil {
			if lost := broken(err); lost != nil && ctx.Err() == nil {
				done = true
				return q.lost(lost), nil
			}
			return nil, err
		}
		n++
		done = e.Status != nil && q.over(e.Status.Status.State)
		return q.placed(l, n, e), nil
	})
	return errStreamed
}

// over reports whether a stream ends with a state: who asked is answered where
// the task waits for them, who subscribed stays until it has ended.
func (q *methodCall) over(s task.State) bool {
	return s.Terminal() || q.method != a2a.SubscribeTask && !s.Active()
}

// placed writes an event with its place as the id of the server-sent event.
func (q *methodCall) placed(l *eventLog, n int64, e a2a.Event) []byte {
	return append([]byte("id: "+l.place(n)+"\n"), q.event(q.unnamed(e))...)
}

// unnamed leaves out who spoke, which logs know, for who did not ask for it.
func (q *methodCall) unnamed(e a2a.Event) a2a.Event {
	without := func(s *a2a.Status) {
		if s.Message != nil {
			m := *s.Message
			m.Speaker, s.Message = nil, &m
		}
	}
	switch {
	case q.follows(a2a.ExtSpeaker):
	case e.Task != nil:
		t := *e.Task
		without(&t.Status)
		e.Task = &t
	case e.Status != nil:
		u := *e.Status
		without(&u.Status)
		e.Status = &u
	}
	return e
}

// replays reports whether a task that has ended can still be read from where
// the caller came to.
func (q *methodCall) replays(t task.Task) bool {
	if !q.follows(a2a.ExtEvents) || q.lastEvent() == "" {
		return false
	}
	l := q.door.logs.find(t.ID)
	if l == nil {
		return false
	}
	defer q.door.logs.leave(l)
	_, ok := l.resumes(q.lastEvent())
	return ok
}
