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

// Messages is the fate of a person's messages in conversations with others.
type Messages string

// KeepMessages, the default, keeps them without the author's name; DeleteMessages deletes their texts and files.
const (
	KeepMessages   Messages = "keep"
	DeleteMessages Messages = "delete"
)

// ParseMessages returns the fate with a name; the default for "".
func ParseMessages(s string) (Messages, error) {
	switch m := Messages(s); m {
	case "":
		return KeepMessages, nil
	case KeepMessages, DeleteMessages:
		return m, nil
	}
	return "", fault.Field("messages", `write "keep" or "delete"`)
}

// Eraser erases an account with all its data and agents, for good. It goes on after an interruption.
type Eraser func(ctx context.Context, name string, messages Messages) error

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

// Erase erases the account of the actor. confirm must be its name, messages is "keep", "delete" or "" for the default.
func (s *Service) Erase(ctx context.Context, actor ident.Actor, confirm, messages string) error {
	if err := s.MayErase(ctx, actor); err != nil {
		return err
	}
	if confirm != actor.Name {
		return fault.Field("confirm", "write the name of the account, "+actor.Name)
	}
	fate, err := ParseMessages(messages)
	if err != nil {
		return err
	}
	// The removal ends the session, and goes on when the person closes the page.
	return s.erase(context.WithoutCancel(ctx), actor.Name, fate)
}
