package chat

import (
	"context"
	"hash/maphash"
	"sync"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// IdleAfter is the pause after which a protocol endpoint sends a keep-alive on a silent event stream,
// because proxies close idle connections.
const IdleAfter = 25 * time.Second

// live connects writers and readers of conversations within this process. The zero value is not usable;
// create it with newLive.
type live struct {
	seed    maphash.Seed
	shards  [32]shard // A room is in the shard of its id's hash, so that busy rooms rarely share a lock.
	inboxes inboxes
	over    lately
}

type shard struct {
	mu    sync.Mutex // guards rooms; locked before a room's mu
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

// withRoom runs f on the room of the conversation and removes the room if it is empty afterwards. Without create, a
// missing room is not created and f is not run. f runs under a lock and must not block.
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

// passMessage passes a committed message to live readers and inboxes. Messages may be passed in any
// order, repeatedly or not at all: rooms restore the order and read missing ones from the store.
func (l *live) passMessage(m Message) {
	l.withRoom(m.ConversationID, false, func(r *room) { r.putMessage(&m) })
	l.inboxes.queueMessage(m)
}

// endSubscriptions ends the subscriptions of a removed member; an empty id ends all of the conversation.
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

// Subscribe opens a live subscription to a conversation, beginning after the message seq, with what the
// actor may see. The caller must Close it.
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
	// Membership is checked after the subscription is registered, so that a removal in between ends the subscription.
	c, err := s.readRoom(ctx, actor, conversationID)
	if err != nil {
		sub.Close()
		return nil, err
	}
	sub.room.sendWelcome(sub, c, after)
	return sub, nil
}
