package chat

import (
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/limit"
)

// rateLimits bound the rates of actors. The limit of guests is low; that of people suits a busy program, but stays below
// the capacity of the store, so that one person leaves room for others.
type rateLimits struct {
	guests, people, creations *limit.Keyed
	// portals bounds all actions of one portal, whichever of its people act.
	portals *limit.Keyed
}

func newRateLimits() *rateLimits {
	return &rateLimits{
		guests:    limit.New(30*time.Second, 20, 50_000),
		people:    limit.New(500*time.Microsecond, 20_000, 50_000),
		portals:   limit.New(time.Second, 300, 50_000),
		creations: limit.New(20*time.Second, 30, 50_000),
	}
}

// limitRate counts one thing that the actor does.
func (s *rateLimits) limitRate(actor ident.Actor) error {
	if actor.Kind == ident.Guest {
		if wait, ok := s.guests.Allow(actor.Addr); !ok {
			return fault.Limited(wait, "Visitors may say only so much in a while. Try again in %s, or sign up.",
				wait.Round(time.Second))
		}
		return nil
	}
	if actor.Kind == ident.Portal {
		return s.allowPortal(actor, s.guests)
	}
	if wait, ok := s.people.Allow(actor.ID); !ok {
		return fault.Limited(wait, "You sent very much in a short time. Try again in a moment.")
	}
	return nil
}

// allowRoom counts one new conversation of the actor.
func (s *rateLimits) allowRoom(actor ident.Actor) error {
	if actor.Kind == ident.Guest {
		if wait, ok := s.creations.Allow(actor.Addr); !ok {
			return fault.Limited(wait, "Visitors may start only so many conversations. Wait a moment, or sign up.")
		}
		return nil
	}
	if actor.Kind == ident.Portal {
		return s.allowPortal(actor, s.creations)
	}
	return s.limitRate(actor)
}

// allowPortal counts one action of an actor of another portal, for the actor and for the portal:
// each actor has the limits of a visitor, and the portal those of a few dozen.
func (s *rateLimits) allowPortal(actor ident.Actor, each *limit.Keyed) error {
	wait, ok := each.Allow(actor.ID)
	if ok {
		wait, ok = s.portals.Allow(actor.Addr)
	}
	if !ok {
		return fault.Limited(wait, "People of other portals may say only so much here in a while. Try again in %s.",
			max(wait.Round(time.Second), time.Second))
	}
	return nil
}
