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

// readExtensions reads the extensions that the caller requests, and answers with those that this
// request uses (§4.6.2).
func (q *methodCall) readExtensions() {
	for _, uri := range a2a.ReadExtensions(q.r.Header.Values(a2a.ExtensionsHeader)) {
		if slices.Contains(q.extensions, uri) {
			continue
		}
		switch uri {
		case a2a.ExtEvents, a2a.ExtSpeaker, a2a.ExtCost:
		case a2a.ExtOnce:
			// without a context each request of an anonymous visitor is a new actor, so the extension
			// cannot work
			if q.proven.ID == "" {
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

func (q *methodCall) usesExtension(extension string) bool {
	return slices.Contains(q.extensions, extension)
}

// lastEvent returns the Last-Event-ID header: the id of the last event that the reader has, "" for none.
func (q *methodCall) lastEvent() string { return q.r.Header.Get("Last-Event-ID") }

// streamNumbered answers with the events of a task under ExtEvents: first the task, with the number
// of its last event, then each event with its own number. A reader that sends its place gets the
// task without artifacts and then the missed events. If the place is no longer kept, it gets the
// present task and a note of the gap.
func (q *methodCall) streamNumbered(ctx context.Context, actor ident.Actor, t task.Task) error {
	logs := &q.handler.logs
	l, err := logs.openShared(ctx, q.handler, actor, t)
	if err != nil {
		return err
	}
	defer logs.removeReader(l)
	out, err := respond.OpenEvents(q.w)
	if err != nil {
		return errStreamed
	}
	place := q.lastEvent()
	after, resumed := l.parsePlace(place)
	task, n := l.currentTask()
	more := map[string]any{}
	switch {
	case resumed:
		n, task.Artifacts, more["resumed"] = after, nil, true
	case place != "":
		more["gap"] = true
	}
	first := func(t a2a.Task, n int64, more map[string]any) []byte {
		return q.placedEvent(l, n, a2a.Event{Task: &t, Metadata: l.eventMetadata(n, more)})
	}
	if out.Write(first(task, n, more)) != nil || !resumed && q.streamEnds(task.Status.State) {
		return errStreamed
	}
	done := false
	out.Run(ctx, func(ctx context.Context) ([]byte, error) {
		if done {
			return nil, io.EOF
		}
		e, err := l.nextEvent(ctx, n)
		if errors.Is(err, errGap) { // the reader was too slow, so the next event was dropped
			var t a2a.Task
			t, n = l.currentTask()
			done = q.streamEnds(t.Status.State)
			return first(t, n, map[string]any{"gap": true}), nil
		}
		if err != nil {
			if lost := logError(err); lost != nil && ctx.Err() == nil {
				done = true
				return q.encodeFailure(lost), nil
			}
			return nil, err
		}
		n++
		done = e.Status != nil && q.streamEnds(e.Status.Status.State)
		return q.placedEvent(l, n, e), nil
	})
	return errStreamed
}

// streamEnds reports whether a stream ends at a task state. The stream of a sent message ends when the
// task waits for input, a subscription only when the task has ended.
func (q *methodCall) streamEnds(s task.State) bool {
	return s.Terminal() || q.method != a2a.SubscribeTask && !s.Active()
}

// placedEvent encodes event n as a server-sent event with the place as its id for Last-Event-ID.
func (q *methodCall) placedEvent(l *eventLog, n int64, e a2a.Event) []byte {
	return append([]byte("id: "+l.placeOf(n)+"\n"), q.encodeEvent(q.hideSpeaker(e))...)
}

// addCost adds the cost of a task to an event with its status, if the caller requested that extension.
func (q *methodCall) addCost(e a2a.Event) a2a.Event {
	if !q.usesExtension(a2a.ExtCost) {
		return e
	}
	switch {
	case e.Task != nil:
		t := *e.Task
		t.Cost = q.handler.cfg.CostOf(t.ID)
		e.Task = &t
	case e.Status != nil && !e.Status.Status.State.Active():
		u := *e.Status
		u.Cost = q.handler.cfg.CostOf(u.TaskID)
		e.Status = &u
	}
	return e
}

// hideSpeaker removes the speaker's name from an event if the caller did not request that extension. Logs
// always contain it.
func (q *methodCall) hideSpeaker(e a2a.Event) a2a.Event {
	without := func(s *a2a.Status) {
		if s.Message != nil {
			m := *s.Message
			m.Speaker, s.Message = nil, &m
		}
	}
	switch {
	case q.usesExtension(a2a.ExtSpeaker):
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

// canReplay reports whether the events of an ended task are still kept from the caller's place on.
func (q *methodCall) canReplay(t task.Task) bool {
	if !q.usesExtension(a2a.ExtEvents) || q.lastEvent() == "" {
		return false
	}
	l := q.handler.logs.findLog(t.ID)
	if l == nil {
		return false
	}
	defer q.handler.logs.removeReader(l)
	_, ok := l.parsePlace(q.lastEvent())
	return ok
}
