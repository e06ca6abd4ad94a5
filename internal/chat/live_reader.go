package chat

import (
	"context"
	"slices"
	"sync"

	"agentsite/internal/fault"
)

// Subscription is one reader of one conversation: a position in its room's log. A slow reader costs no extra memory,
// because all readers share the log. One goroutine at a time may read it, and none while it is attached to a Sink.
type Subscription struct {
	svc        *Service
	room       *room
	memberKind string
	memberID   string
	handle     string

	wake chan struct{} // capacity 1: a signal that updates wait

	mu     sync.Mutex // guards closed and sink; locked after the room's mu
	closed error
	sink   Sink

	// Guarded by the room's mu:
	pos    int64 // position in room.log, valid if synced
	last   int64 // the seq before the next message
	from   int64 // FromSeq of the member: only messages with a greater seq are seen
	synced bool  // the reader got the present state
	slot   int   // index in room.attached, -1 if not attached
	here   bool  // counted in people.here

	pending []Update // used by Next only, without a lock
}

// addSubscription adds a reader before its rights are checked, so that its removal during the check ends
// it. The caller holds r.mu.
func (r *room) addSubscription(s *Subscription, store Store) {
	if r.store == nil {
		r.store = store
	}
	r.subs[s] = struct{}{}
	s.slot = -1
}

// sendWelcome sets the position of a reader after the store has confirmed its membership. after is the
// seq of the last message that the reader has.
func (r *room) sendWelcome(s *Subscription, c Conversation, after int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.known {
		r.known, r.head, r.low = true, c.LastSeq, c.LastSeq+1
		r.drainEarly()
	}
	r.want = max(r.want, c.LastSeq)
	r.mendGap()
	// An after beyond the last message comes from a transcript that was lost (restored backup); the
	// reader continues at the present end.
	s.from = c.Mine.FromSeq
	s.last = max(s.from, min(after, max(c.LastSeq, r.head)))
	r.people.setMarks(c.Members)
	r.people.addReader(r, s)
}

// Close ends the subscription and removes it from its room; a waiting Next returns an error. Later calls do nothing.
func (s *Subscription) Close() {
	s.endWith(errNoRoom())
	s.svc.live.withRoom(s.room.id, false, func(r *room) {
		if r != s.room {
			return
		}
		if _, ok := r.subs[s]; !ok {
			return
		}
		delete(r.subs, s)
		delete(r.waiting, s)
		r.detachSink(s)
		r.people.removeReader(r, s)
		if len(r.subs) == 0 {
			r.base, r.log, r.bytes = r.endPos(), nil, 0
			r.known, r.head, r.low, r.want = false, 0, 0, 0
			r.early, r.pages, r.people = nil, nil, new(people)
		}
	})
}

// endWith ends the subscription with an error. The first call returns the attached sink, which the
// caller must notify without holding a lock; later calls return nil.
func (s *Subscription) endWith(err error) Sink {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed != nil {
		return nil
	}
	s.closed = err
	s.wakeReader()
	return s.sink
}

func (s *Subscription) wakeReader() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Subscription) endError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Next waits for the next update until ctx ends. A NotFound fault if the reader is no longer a member.
func (s *Subscription) Next(ctx context.Context) (Update, error) {
	for {
		// A subscription that ended (removed member) delivers none of its waiting updates.
		if err := s.endError(); err != nil {
			return Update{}, err
		}
		if len(s.pending) > 0 {
			u := s.pending[0]
			s.pending = s.pending[1:]
			return u, nil
		}
		list, err := s.Take(ctx)
		if err != nil {
			return Update{}, err
		}
		if s.pending = list; len(list) > 0 || !s.armWake() {
			continue
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return Update{}, ctx.Err()
		}
	}
}

// TakeRest returns the updates that Next read together with the last one. It does not wait.
func (s *Subscription) TakeRest() (rest []Update) {
	rest, s.pending = s.pending, nil
	return rest
}

// armWake registers the reader for a wake-up at the next update. It returns false if updates wait already.
func (s *Subscription) armWake() bool {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	if s.pos < s.room.endPos() {
		return false
	}
	s.room.waiting[s] = struct{}{}
	return true
}

// Take returns the waiting updates, at most a page, an empty list if there are none. It does not wait.
// The caller must not change the list.
func (s *Subscription) Take(ctx context.Context) ([]Update, error) {
	if err := s.endError(); err != nil {
		return nil, err
	}
	r := s.room
	r.mu.Lock()
	if s.synced && s.pos >= r.base && s.last+1 >= r.low {
		list := redactUpdates(r.updatesSince(s.pos, s.last), s.from)
		s.pos, s.last = r.endPos(), max(s.last, r.head)
		r.mu.Unlock()
		return list, nil
	}
	s.synced = false
	if s.last+1 >= r.low {
		list := redactUpdates(r.updatesSince(r.base, s.last), s.from)
		list = slices.DeleteFunc(list, func(u Update) bool { return u.Message == nil })
		list = append(list, r.presentState()...)
		s.pos, s.last, s.synced = r.endPos(), max(s.last, r.head), true
		r.mu.Unlock()
		return list, nil
	}
	r.mu.Unlock()
	list, err := r.readPage(ctx, s.last)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fault.New(fault.Unavailable, "The conversation cannot be read now. Try again in a moment.")
	}
	r.mu.Lock()
	s.last = list[len(list)-1].Message.Seq
	from := s.from
	r.mu.Unlock()
	return redactUpdates(list, from), s.endError()
}

// updatesSince returns the log from position pos on, without messages with a seq up to seq, which the
// reader has. The caller holds r.mu.
func (r *room) updatesSince(pos, seq int64) []Update {
	list := make([]Update, 0, r.endPos()-pos)
	for _, e := range r.log[pos-r.base:] {
		if e.Message == nil || e.Message.Seq > seq {
			list = append(list, e.Update)
		}
	}
	return list
}

// presentState returns the updates that describe running tasks and people, for a new reader. The caller holds r.mu.
func (r *room) presentState() []Update {
	var out []Update
	for id, st := range r.streams {
		state := st.state
		out = append(out, Update{Task: &state})
		if len(st.text) > 0 {
			out = append(out, Update{Delta: &Delta{TaskID: id, Text: string(st.text)}})
		}
	}
	return append(out, r.people.presentState()...)
}
