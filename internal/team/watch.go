package team

import (
	"context"
	"io"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/team/flow"
)

// Events returns events of a goal of the actor after a number, in order. limit is 1 to 200, 0 for 200.
func (s *Service) Events(ctx context.Context, actor ident.Actor, id string, after int64,
	limit int) ([]flow.Event, error) {
	if err := checkRead(actor); err != nil {
		return nil, err
	}
	if limit == 0 {
		limit = eventsPage
	}
	var c fault.Check
	c.Field(limit >= 1 && limit <= eventsPage, "limit", "use 1 to %d", eventsPage)
	c.Field(after >= 0, "after", "must not be negative")
	if err := c.Err(); err != nil {
		return nil, err
	}
	if _, err := s.ownGoal(ctx, actor, id); err != nil {
		return nil, err
	}
	return s.Store.EventsOf(ctx, id, after, limit)
}

// Watch is a live reader of the events of a goal. The caller must Close it.
type Watch struct {
	s     *Service
	actor ident.Actor
	id    string
	after int64
	*watcher
}

// Watch begins to read the events of a goal of the actor after a number.
func (s *Service) Watch(ctx context.Context, actor ident.Actor, id string, after int64) (*Watch, error) {
	if after < 0 {
		return nil, fault.Field("after", "must not be negative")
	}
	if err := checkRead(actor); err != nil {
		return nil, err
	}
	if _, err := s.ownGoal(ctx, actor, id); err != nil {
		return nil, err
	}
	return &Watch{s, actor, id, after, s.addWatcher(id)}, nil
}

// addWatcher adds a watcher of a goal.
func (s *Service) addWatcher(id string) *watcher {
	w := &watcher{wake: make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watchers[id] == nil {
		s.watchers[id] = make(map[*watcher]bool)
	}
	s.watchers[id][w] = true
	return w
}

func (s *Service) removeWatcher(id string, w *watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watchers[id], w)
	if len(s.watchers[id]) == 0 {
		delete(s.watchers, id)
	}
}

// Close ends the watch.
func (w *Watch) Close() { w.s.removeWatcher(w.id, w.watcher) }

// After returns the number of the last event that Next returned.
func (w *Watch) After() int64 { return w.after }

// Next returns the next events, and waits until there is one. It returns none when a team below went on, and io.EOF
// when the goal has ended and all events were returned.
func (w *Watch) Next(ctx context.Context) ([]flow.Event, error) {
	for {
		// The row is read before the events, so that none is missed at the end.
		g, err := w.s.ownGoal(ctx, w.actor, w.id)
		if err != nil {
			return nil, err
		}
		list, err := w.s.Store.EventsOf(ctx, w.id, w.after, eventsPage)
		if err != nil {
			return nil, err
		}
		if len(list) > 0 {
			w.after = list[len(list)-1].Seq
			return list, nil
		}
		if !g.Open && w.after >= g.Seq {
			return nil, io.EOF
		}
		if w.below.Swap(false) {
			return []flow.Event{}, nil
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
