package chat

import (
	"context"
	"sync"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// recountAfter is the pause between two counts of the conversations of an account that has too many of
// them, because a count reads one row of an index for each.
const recountAfter = 2 * time.Second

// maxCounted is the number of accounts in roomQuota. A full map is emptied, and accounts are counted anew.
const maxCounted = 50_000

// roomQuota bounds the conversations that each account is in. It holds an upper estimate of the number of conversations of each account, so that opening one
// does not count them: conversations that the account opens, joins and leaves change it, and a count in
// the store corrects it before anything is refused.
type roomQuota struct {
	store  Invitations
	limits *rateLimits
	most   int // conversations of an account, 0 for no bound

	mu sync.Mutex // guards of
	of map[string]roomCount
}

type roomCount struct {
	rooms   int
	counted time.Time
}

// allow counts one more conversation of the actor. A RateLimited fault if the actor opens them too
// fast, a Conflict fault if the account has as many as it may.
func (c *roomQuota) allow(ctx context.Context, actor ident.Actor) error {
	if err := c.limits.allowRoom(actor); err != nil {
		return err
	}
	if !actor.IsPerson() || c.most <= 0 || c.add(actor.ID) {
		return nil
	}
	if !c.mayCount(actor.ID) {
		return errManyRooms(c.most)
	}
	n, err := c.store.CountRooms(ctx, actor.ID, c.most)
	if err != nil {
		return err
	}
	c.set(actor.ID, n)
	if !c.add(actor.ID) {
		return errManyRooms(c.most)
	}
	return nil
}

func errManyRooms(most int) error {
	return fault.New(fault.Conflict, "You are in %d conversations, as many as one account may be. Leave or delete some: "+
		"the list of chats takes several at once. Programs can go on in a conversation by its id instead of "+
		"opening one for each question.", most)
}

// add raises the estimate by one, unless it is unknown or has reached the bound.
func (c *roomQuota) add(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := c.of[id]
	if !ok || n.rooms >= c.most {
		return false
	}
	n.rooms++
	c.of[id] = n
	return true
}

// change adjusts the known estimate of an account that left a conversation or was added to one by another.
func (c *roomQuota) change(id string, by int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n, ok := c.of[id]; ok {
		n.rooms = max(n.rooms+by, 0)
		c.of[id] = n
	}
}

// mayCount reports whether the account was not counted within recountAfter.
func (c *roomQuota) mayCount(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := c.of[id]
	return !ok || time.Since(n.counted) >= recountAfter
}

func (c *roomQuota) set(id string, rooms int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil || len(c.of) >= maxCounted {
		c.of = make(map[string]roomCount)
	}
	c.of[id] = roomCount{rooms, time.Now()}
}

// searchWait is how long a search waits for another one of the same account.
const searchWait = time.Second

// searchGate lets an account search once at a time. The zero value is ready to use.
type searchGate struct {
	mu   sync.Mutex               // guards busy
	busy map[string]chan struct{} // closed when the search ends
}

// searcher is the key of an actor in searchGate: visitors of one address count as one.
func searcher(actor ident.Actor) string {
	if actor.IsVisitor() {
		return "visitor " + actor.Addr
	}
	return actor.ID
}

// begin waits until no search of key runs, for at most searchWait; a RateLimited fault after that. The
// caller must call end.
func (g *searchGate) begin(ctx context.Context, key string) (end func(), err error) {
	timer := time.NewTimer(searchWait)
	defer timer.Stop()
	for {
		g.mu.Lock()
		running, ok := g.busy[key]
		if !ok {
			if g.busy == nil {
				g.busy = make(map[string]chan struct{})
			}
			done := make(chan struct{})
			g.busy[key] = done
			g.mu.Unlock()
			return func() {
				g.mu.Lock()
				delete(g.busy, key)
				g.mu.Unlock()
				close(done)
			}, nil
		}
		g.mu.Unlock()
		select {
		case <-running:
		case <-timer.C:
			return nil, fault.Limited(searchWait, "A search of yours is still running. Wait for it, and search again.")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
