package chat

import (
	"context"
	"errors"
	"sync"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/limit"
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

// How long a search, or the reading of a page of a transcript, waits for another one of the same account.
const (
	searchWait = time.Second
	pageWait   = 10 * time.Second
)

// takeTurn waits until no turn of the actor runs, where visitors of one address count as one. After the time
// wait it returns a RateLimited fault with the text refusal. The caller must call end.
func takeTurn(ctx context.Context, turns *limit.Turns, actor ident.Actor, wait time.Duration, refusal string) (end func(), err error) {
	key := actor.ID
	if actor.IsVisitor() {
		key = "visitor " + actor.Addr
	}
	end, err = turns.Begin(ctx, key, wait)
	if errors.Is(err, limit.ErrTurnTaken) {
		err = &fault.Error{Kind: fault.RateLimited, Safe: refusal, RetryAfter: wait}
	}
	return end, err
}
