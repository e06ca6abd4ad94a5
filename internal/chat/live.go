package chat

import (
	"context"
	"sync"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// Update is something a live reader of a conversation is told. Exactly one of
// Message, Delta and Task is set. Messages are durable and come in order of
// seq without gap or duplicate; the others carry present state.
type Update struct {
	Message *Message
	Delta   *Delta
	Task    *TaskState
}

// Delta is streamed text of a running task: Text stands at byte Offset of the
// answer so far; Offset 0 starts the answer anew.
type Delta struct {
	TaskID string
	Offset int
	Text   string
}

// TaskState is where a task in the conversation is.
type TaskState struct {
	ID     string
	Agent  string
	State  task.State
	Status string
	Reason string
}

// queueLimit is how many events wait for a slow reader. Beyond it they are
// dropped and the reader catches up from the store: nothing durable is lost
// and memory stays bounded.
const queueLimit = 256

// live is the meeting point of writers and readers of conversations in this
// process. The zero value is not usable; create it with newLive.
type live struct {
	mu    sync.Mutex // guards rooms
	rooms map[string]*room
}

// room exists while it has readers or running tasks.
type room struct {
	mu      sync.Mutex // guards subs and streams
	subs    map[*Subscription]struct{}
	streams map[string]*stream
}

// stream is the present state of one running task.
type stream struct {
	state TaskState
	text  []byte
}

func newLive() *live { return &live{rooms: make(map[string]*room)} }

// with runs f on the conversation's room, making it if create is set, and
// forgets the room when it is empty afterwards. f must not block.
func (l *live) with(conversationID string, create bool, f func(*room)) {
	l.mu.Lock()
	r := l.rooms[conversationID]
	if r == nil {
		if !create {
			l.mu.Unlock()
			return
		}
		r = &room{subs: make(map[*Subscription]struct{}), streams: make(map[string]*stream)}
		l.rooms[conversationID] = r
	}
	r.mu.Lock()
	l.mu.Unlock()
	f(r)
	empty := len(r.subs) == 0 && len(r.streams) == 0
	r.mu.Unlock()
	if !empty {
		return
	}
	l.mu.Lock()
	r.mu.Lock()
	if len(r.subs) == 0 && len(r.streams) == 0 && l.rooms[conversationID] == r {
		delete(l.rooms, conversationID)
	}
	r.mu.Unlock()
	l.mu.Unlock()
}

// tell hands an event to every reader; the caller holds r.mu.
func (r *room) tell(e Update) {
	for s := range r.subs {
		s.push(e)
	}
}

func (l *live) message(m Message) {
	l.with(m.ConversationID, false, func(r *room) {
		if m.TaskID != "" && m.Sender.Kind == "agent" {
			delete(r.streams, m.TaskID)
		}
		r.tell(Update{Message: &m})
	})
}

// Subscription is one reader of one conversation. One goroutine uses it.
type Subscription struct {
	svc            *Service
	conversationID string
	memberKind     string
	memberID       string

	wake chan struct{} // capacity 1

	mu     sync.Mutex // guards queue, lost, closed
	queue  []Update
	lost   bool
	closed error

	// Of the reading goroutine alone:
	last    int64
	pending []Update
}

func (s *Subscription) push(e Update) {
	s.mu.Lock()
	if len(s.queue) >= queueLimit {
		s.queue, s.lost = nil, true
	}
	if !s.lost {
		s.queue = append(s.queue, e)
	}
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Subscription) end(err error) {
	s.mu.Lock()
	if s.closed == nil {
		s.closed = err
	}
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Subscribe lets the actor read a conversation live, from the message after
// seq on. The caller must Close it.
func (s *Service) Subscribe(ctx context.Context, actor ident.Actor, conversationID string, after int64) (*Subscription, error) {
	if err := reads(actor); err != nil {
		return nil, err
	}
	if after < 0 {
		return nil, &fault.Error{Kind: fault.Invalid, Safe: "after must not be negative", Fields: map[string]string{"after": "must not be negative"}}
	}
	sub := &Subscription{svc: s, conversationID: conversationID, memberKind: memberKind(actor), memberID: actor.ID,
		wake: make(chan struct{}, 1), last: after, lost: true}
	s.live.with(conversationID, true, func(r *room) { r.subs[sub] = struct{}{} })
	// Checked after joining: whoever is removed from now on is told.
	if _, err := s.room(ctx, actor, conversationID); err != nil {
		sub.Close()
		return nil, err
	}
	return sub, nil
}

// Close ends the subscription.
func (s *Subscription) Close() {
	s.svc.live.with(s.conversationID, false, func(r *room) { delete(r.subs, s) })
}

// Next returns the next event, waiting for it until ctx ends. It returns a
// NotFound fault when the reader is no member any more.
func (s *Subscription) Next(ctx context.Context) (Update, error) {
	for {
		s.mu.Lock()
		closed := s.closed
		s.mu.Unlock()
		if closed != nil { // whose right has ended gets nothing of what waits
			return Update{}, closed
		}
		if len(s.pending) > 0 {
			e := s.pending[0]
			s.pending = s.pending[1:]
			if e.Message != nil {
				if e.Message.Seq <= s.last {
					continue
				}
				if e.Message.Seq > s.last+1 {
					// A message committed before this one was not told yet,
					// or was dropped: the store has it.
					if err := s.catchUp(ctx, s.pending); err != nil {
						return Update{}, err
					}
					continue
				}
				s.last = e.Message.Seq
			}
			return e, nil
		}
		s.mu.Lock()
		queue, lost := s.queue, s.lost
		s.queue, s.lost = nil, false
		s.mu.Unlock()
		switch {
		case lost:
			if err := s.catchUp(ctx, nil); err != nil {
				return Update{}, err
			}
		case len(queue) > 0:
			s.pending = queue
		default:
			select {
			case <-s.wake:
			case <-ctx.Done():
				return Update{}, ctx.Err()
			}
		}
	}
}

// catchUpPage is how many messages are read at once.
const catchUpPage = 200

// catchUp queues what the store has after the last message, then then. When
// there is more than a page, the rest is caught up later. After a loss the
// present state of running tasks follows.
func (s *Subscription) catchUp(ctx context.Context, then []Update) error {
	list, err := s.svc.store.Messages(ctx, s.conversationID, s.last, 0, catchUpPage, false)
	if err != nil {
		return err
	}
	pending := make([]Update, 0, len(list)+len(then))
	for i := range list {
		pending = append(pending, Update{Message: &list[i]})
	}
	if len(list) == catchUpPage {
		s.mu.Lock()
		s.queue, s.lost = nil, true
		s.mu.Unlock()
		s.pending = pending
		return nil
	}
	if then == nil {
		s.svc.live.with(s.conversationID, true, func(r *room) {
			for id, st := range r.streams {
				state := st.state
				pending = append(pending, Update{Task: &state})
				if len(st.text) > 0 {
					pending = append(pending, Update{Delta: &Delta{TaskID: id, Text: string(st.text)}})
				}
			}
		})
	}
	s.pending = append(pending, then...)
	return nil
}

// kick ends the subscriptions of a member who was removed; an empty id ends
// all, because the conversation is gone.
func (l *live) kick(conversationID, kind, id string) {
	l.with(conversationID, false, func(r *room) {
		for s := range r.subs {
			if id == "" || s.memberKind == kind && s.memberID == id {
				s.end(errNoRoom())
			}
		}
	})
}

// maxStream bounds the text kept of a running answer.
const maxStream = MaxAnswerBytes

// Working tells readers that a task is being worked on.
func (s *Service) Working(t task.Task) {
	s.live.with(t.ConversationID, true, func(r *room) {
		st := &stream{state: TaskState{ID: t.ID, Agent: t.AgentHandle, State: t.State}}
		r.streams[t.ID] = st
		state := st.state
		r.tell(Update{Task: &state})
	})
}

// Stream appends text to a running task's answer as readers see it.
func (s *Service) Stream(conversationID, taskID, text string) {
	s.live.with(conversationID, false, func(r *room) {
		st := r.streams[taskID]
		if st == nil || text == "" || len(st.text)+len(text) > maxStream {
			return
		}
		offset := len(st.text)
		st.text = append(st.text, text...)
		r.tell(Update{Delta: &Delta{TaskID: taskID, Offset: offset, Text: text}})
	})
}

// Restream replaces a running task's answer as readers see it.
func (s *Service) Restream(conversationID, taskID, text string) {
	s.live.with(conversationID, false, func(r *room) {
		st := r.streams[taskID]
		if st == nil || len(text) > maxStream {
			return
		}
		st.text = append(st.text[:0:0], text...)
		r.tell(Update{Delta: &Delta{TaskID: taskID, Text: text}})
	})
}

// Status tells readers in a few words what a running task is at.
func (s *Service) Status(conversationID, taskID, status string) {
	s.live.with(conversationID, false, func(r *room) {
		if st := r.streams[taskID]; st != nil {
			st.state.Status = status
			state := st.state
			r.tell(Update{Task: &state})
		}
	})
}

// settled forgets a task that ended or waits, and tells readers.
func (s *Service) settled(t task.Task) {
	s.live.with(t.ConversationID, false, func(r *room) {
		delete(r.streams, t.ID)
		r.tell(Update{Task: &TaskState{ID: t.ID, Agent: t.AgentHandle, State: t.State, Reason: t.Reason}})
	})
}

// forget drops what readers are shown of a task.
func (s *Service) forget(t task.Task) {
	s.live.with(t.ConversationID, false, func(r *room) { delete(r.streams, t.ID) })
}

// Running returns the answers being streamed in a conversation now, for a
// page that is rendered without a socket.
func (s *Service) Running(conversationID string) []Running {
	var out []Running
	s.live.with(conversationID, false, func(r *room) {
		for _, st := range r.streams {
			out = append(out, Running{TaskState: st.state, Text: string(st.text)})
		}
	})
	return out
}

// Running is an answer while it grows.
type Running struct {
	TaskState
	Text string
}

// IdleAfter is the pause after which a silent stream of events gets a sign of
// life from its door.
const IdleAfter = 25 * time.Second
