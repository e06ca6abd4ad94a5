package chat

import (
	"context"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/limit"
	"agentsite/internal/task"
)

// rateLimits limit the write actions of actors. Guests have a low limit. The limit of accounts suits a
// busy program, but is below the capacity of the store, so that one account cannot use up all of it.
type rateLimits struct {
	guests, people, creations *limit.Keyed
	texts                     *limit.Keyed // KiB of text of each account
	// portals limits all actions from one other portal together.
	portals *limit.Keyed
}

func newRateLimits() *rateLimits {
	return &rateLimits{
		guests:    limit.New(30*time.Second, guestBurst, 50_000),
		people:    limit.New(500*time.Microsecond, 20_000, 50_000),
		portals:   limit.New(time.Second, 300, 50_000),
		creations: limit.New(20*time.Second, 30, 50_000),
		texts:     limit.New(time.Second/textRate, textBurst, 50_000),
	}
}

// The KiB of text that one account may write in a second and at once. The rate is that of 16 messages of the
// greatest size: far more than people and busy programs write, and a small part of the capacity of the
// disk and of the index of words, so that the messages of others stay quick.
const (
	textRate  = 16 * 64
	textBurst = 8 << 10
)

// refusalPause delays the refusal of an account above the rate of its text, so that a client that tries again
// at once does not take the processor from others: reading and decoding a large body costs as much as
// storing a small one.
const refusalPause = 500 * time.Millisecond

// limitText counts the text of parts that an account writes; a RateLimited fault beyond the rate, after
// refusalPause or the end of ctx. The limits of visitors are lower already.
func (s *rateLimits) limitText(ctx context.Context, actor ident.Actor, parts []task.Part) error {
	if actor.IsVisitor() {
		return nil
	}
	size := 0
	for _, p := range parts {
		size += len(p.Text) + len(p.Data)
	}
	if wait, ok := s.texts.AllowN(actor.ID, min((size+1<<10-1)>>10, textBurst)); !ok {
		clock.Sleep(ctx, refusalPause)
		return fault.Limited(max(wait, time.Second), "You wrote very much text in a short time. Try again in %s.",
			max(wait.Round(time.Second), time.Second))
	}
	return nil
}

// limitRate counts one write action of the actor, of guests by network address; a RateLimited fault
// beyond the limit of its kind.
func (s *rateLimits) limitRate(actor ident.Actor) error {
	if actor.IsVisitor() {
		return s.limitCalls(actor, 1)
	}
	if wait, ok := s.people.Allow(actor.ID); !ok {
		return fault.Limited(wait, "You sent very much in a short time. Try again in a moment.")
	}
	return nil
}

// guestBurst is how many agents a visitor may call at once.
const guestBurst = 20

// limitCalls counts n calls of agents by a visitor; a RateLimited fault beyond the limit of its kind, and
// then none is counted. Each addressed agent counts, because its work costs as much as that of a message
// of its own. Accounts have no such limit.
func (s *rateLimits) limitCalls(actor ident.Actor, n int) error {
	switch {
	case n < 1 || !actor.IsVisitor():
		return nil
	case n >= guestBurst: // one was counted for the message
		return fault.New(fault.Invalid, "Visitors may address at most %d agents with one message. Name fewer.",
			guestBurst)
	case actor.Kind == ident.Portal:
		return s.allowPortal(actor, s.guests, n)
	}
	if wait, ok := s.guests.AllowN(actor.Addr, n); !ok {
		return fault.Limited(wait, "Visitors may say only so much in a while, and each agent that is addressed counts. "+
			"Try again in %s, or sign up.", max(wait.Round(time.Second), time.Second))
	}
	return nil
}

// allowRoom counts one new conversation of the actor; visitors have a lower limit than for messages; a
// RateLimited fault beyond the limit.
func (s *rateLimits) allowRoom(actor ident.Actor) error {
	if actor.Kind == ident.Guest {
		if wait, ok := s.creations.Allow(actor.Addr); !ok {
			return fault.Limited(wait, "Visitors may start only so many conversations. Wait a moment, or sign up.")
		}
		return nil
	}
	if actor.Kind == ident.Portal {
		return s.allowPortal(actor, s.creations, 1)
	}
	return s.limitRate(actor)
}

// allowPortal counts n actions of a person of another portal: each such person has the limits of a
// guest, and the portal those of a few dozen persons together.
func (s *rateLimits) allowPortal(actor ident.Actor, each *limit.Keyed, n int) error {
	wait, ok := each.AllowN(actor.ID, n)
	if ok {
		wait, ok = s.portals.AllowN(actor.Addr, n)
	}
	if !ok {
		return fault.Limited(wait, "People of other portals may say only so much here in a while. Try again in %s.",
			max(wait.Round(time.Second), time.Second))
	}
	return nil
}
