package chat

import (
	"context"
	"hash/maphash"
	"sync"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// IdleAfter is the pause after which a silent stream of events gets a sign of
// life from its door.
const IdleAfter = 25 * time.Second

// live is the meeting point of writers and readers of conversations in this
// process. The zero value is not usable; create it with newLive.
type live struct {
	seed    maphash.Seed
	shards  [32]shard // so that busy rooms do not wait for each other
	inboxes inboxes
	over    lately
}

type shard struct {
	mu    sync.Mutex // guards rooms; taken before a room's
	rooms map[string]*room
}

func newLive() *live {
	l := &live{seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i].rooms = make(map[string]*room)
	}
	return l
}

func (l *live) shardOf(conversationID string) *shard {
	return &l.shards[maphash.String(l.seed, conversationID)%uint64(len(l.shards))]
}

// withRoom runs f on the conversation's room, making it if create is set, and
// forgets the room when it is empty afterwards. f must not block.
func (l *live) withRoom(conversationID string, create bool, f func(*room)) {
	sh := l.shardOf(conversationID)
	sh.mu.Lock()
	r := sh.rooms[conversationID]
	if r == nil {
		if !create {
			sh.mu.Unlock()
			return
		}
		r = newRoom(conversationID)
		sh.rooms[conversationID] = r
	}
	r.mu.Lock()
	sh.mu.Unlock()
	f(r)
	empty := r.isEmpty()
	r.mu.Unlock()
	if !empty {
		return
	}
	sh.mu.Lock()
	r.mu.Lock()
	if r.isEmpty() && sh.rooms[conversationID] == r {
		delete(sh.rooms, conversationID)
	}
	r.mu.Unlock()
	sh.mu.Unlock()
}

// passMessage passes a committed message to readers and to the inboxes of members. Messages may be
// passed in any order, more than once or not at all.
func (l *live) passMessage(m Message) {
	l.withRoom(m.ConversationID, false, func(r *room) { r.putMessage(&m) })
	l.inboxes.queueMessage(m)
}

// endSubscriptions ends the subscriptions of a removed member; an empty id ends all, because the conversation
// is gone.
func (l *live) endSubscriptions(conversationID, kind, id string) {
	var sinks []Sink
	l.withRoom(conversationID, false, func(r *room) {
		for s := range r.subs {
			if id == "" || s.memberKind == kind && s.memberID == id {
				if sink := s.endWith(errNoRoom()); sink != nil {
					sinks = append(sinks, sink)
				}
			}
		}
	})
	for _, s := range sinks {
		s.End(errNoRoom())
	}
}

// Subscribe lets the actor read a conversation live, from the message after
// seq on, as far as they may see it. The caller must Close it.
func (s *Service) Subscribe(ctx context.Context, actor ident.Actor, conversationID string, after int64) (*Subscription, error) {
	if err := checkRead(actor); err != nil {
		return nil, err
	}
	if after < 0 {
		return nil, &fault.Error{Kind: fault.Invalid, Safe: "after must not be negative", Fields: map[string]string{"after": "must not be negative"}}
	}
	if !ident.ValidID(conversationID) {
		return nil, errNoRoom()
	}
	sub := &Subscription{svc: s, memberKind: memberKind(actor), memberID: actor.ID, handle: senderOf(actor).Handle, wake: make(chan struct{}, 1)}
	s.live.withRoom(conversationID, true, func(r *room) {
		sub.room = r
		r.addSubscription(sub, s.store)
	})
	// The check comes after joining: a member removed from now on has their subscription ended.
	c, err := s.readRoom(ctx, actor, conversationID)
	if err != nil {
		sub.Close()
		return nil, err
	}
	sub.room.sendWelcome(sub, c, after)
	return sub, nil
}
