package personal

import (
	"context"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// Logins distinguishes sessions of people from tokens.
type Logins interface {
	// SignedInAt returns the time at which the session of the actor began; a NotFound fault for other credentials.
	SignedInAt(ctx context.Context, actor ident.Actor) (time.Time, error)
}

// Eraser erases an account with all its data and agents, for good.
type Eraser func(ctx context.Context, name string) error

// freshLogin is the age of a session up to which it may erase the account: a person who left a computer signed in must
// not lose everything to the next one.
const freshLogin = 10 * time.Minute

// MayErase returns a fault unless the actor signed in a moment ago.
func (s *Service) MayErase(ctx context.Context, actor ident.Actor) error {
	if !actor.IsPerson() {
		return fault.New(fault.Unauthenticated, "Sign in first.")
	}
	at, err := s.logins.SignedInAt(ctx, actor)
	if fault.Is(err, fault.NotFound) || actor.Narrowed || actor.Through {
		return fault.New(fault.Forbidden, "A token cannot delete an account. Sign in with the password.")
	}
	if err != nil {
		return err
	}
	if clock.Now().Sub(at) > freshLogin {
		return fault.New(fault.Forbidden, "Sign in again first: an account is deleted only within %d minutes after its "+
			"password was given.", int(freshLogin.Minutes()))
	}
	return nil
}

// Erase erases the account of the actor. confirm must be its name.
func (s *Service) Erase(ctx context.Context, actor ident.Actor, confirm string) error {
	if err := s.MayErase(ctx, actor); err != nil {
		return err
	}
	if confirm != actor.Name {
		return fault.Field("confirm", "write the name of the account, "+actor.Name)
	}
	// The removal ends the session, and goes on when the person closes the page.
	return s.erase(context.WithoutCancel(ctx), actor.Name)
}
