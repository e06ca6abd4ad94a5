package team

import (
	"context"
	"crypto/subtle"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/team/flow"
)

// sharePrefix begins the secrets of links, so that scanners recognize a leaked one.
const sharePrefix = "agsg_"

// The life of links.
const (
	DefaultShareLife = 7 * 24 * time.Hour
	MaxShareLife     = 365 * 24 * time.Hour
)

// Share makes a link with which anyone may read a goal of the actor until its life has passed, 0 for the default one.
// It returns the secret, of which only a hash is stored.
func (s *Service) Share(ctx context.Context, actor ident.Actor, id string, life time.Duration) (secret string, err error) {
	if life == 0 {
		life = DefaultShareLife
	}
	if life < time.Minute || life > MaxShareLife {
		return "", fault.Field("days", "use 1 to 365")
	}
	secret = ident.NewSecret(sharePrefix)
	_, err = s.changeGoal(ctx, actor, id, flow.Event{Kind: flow.Shared, Agent: actor.Name,
		Text: ident.HashSecret(secret), Until: clock.Now().Add(life)})
	return secret, err
}

// Unshare ends a link at once. hash names it; one that has ended already is no error.
func (s *Service) Unshare(ctx context.Context, actor ident.Actor, id, hash string) error {
	_, err := s.changeGoal(ctx, actor, id, flow.Event{Kind: flow.Unshared, Agent: actor.Name, Text: hash})
	return err
}

// GetShared returns a goal, with its last events, to anyone with a valid link. It asks for no account.
func (s *Service) GetShared(ctx context.Context, id, secret string, last int) (v View, events []flow.Event, err error) {
	none := fault.New(fault.NotFound, "This link does not work: it has ended, or there never was one.")
	if !ident.ValidID(id) {
		return v, nil, none
	}
	g, err := s.Store.GoalByID(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return v, nil, none
	}
	if err == nil {
		v, err = s.readView(ctx, g, MaxDepth+1)
	}
	if err != nil {
		return v, nil, err
	}
	hash, valid := ident.HashSecret(secret), false
	for _, share := range v.State.Shares {
		same := subtle.ConstantTimeCompare([]byte(share.Hash), []byte(hash)) == 1
		valid = valid || same && clock.Now().Before(share.Until)
	}
	if !valid {
		return View{}, nil, none
	}
	events, err = s.Store.EventsOf(ctx, id, max(v.State.Seq-int64(last), 0), last)
	return v, events, err
}
