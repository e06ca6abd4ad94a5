package account

import (
	"context"
	"errors"
	"strings"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// LogIn checks a password, starts a session and returns its secret. Unknown names, disabled accounts
// and wrong passwords get the same answer in the same time. Failed attempts are limited by address. Those
// of a name from all addresses only order the queue of checks and warn the person: they never keep the
// right password out.
func (s *Service) LogIn(ctx context.Context, actor ident.Actor, name, password string) (secret string, err error) {
	name = strings.ToLower(strings.TrimSpace(name))
	if wait, ok := s.loginsByAddr.Allow(actor.Addr); !ok {
		return "", fault.Limited(wait, "Too many attempts from your address. Wait a moment and try again.")
	}
	from := client{name, actor.Addr}
	if !s.hasher.knows(from) {
		if wait, ok := s.loginsByName.Allow(from.pair()); !ok {
			return "", fault.Limited(wait, "Too many attempts for this account from your address. Wait a moment and try again.")
		}
	}
	a, err := s.store.AccountByName(ctx, name)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return "", err
	}
	hash := a.PasswordHash
	if a.Disabled() {
		hash = ""
	}
	ok, err := s.hasher.matchesHash(ctx, from, password, hash)
	if err != nil {
		return "", err
	}
	if !ok {
		s.noteFailure(from)
		return "", errWrongPassword()
	}
	s.hasher.succeeded(from)
	if secret, err = s.StartSession(ctx, a); err != nil {
		return "", err
	}
	// The password may have changed while the old one was compared; then the session is revoked.
	if now, err := s.store.AccountByID(ctx, a.ID); err != nil {
		return "", err
	} else if now.PasswordHash != a.PasswordHash {
		if err := s.revokeSecret(ctx, secret); err != nil {
			return "", err
		}
		return "", errWrongPassword()
	}
	return secret, nil
}

// noteFailure counts a wrong password and has Run warn the person of the name, if there is one.
func (s *Service) noteFailure(from client) {
	if !s.hasher.fail(from) || s.cfg.Notices == nil {
		return
	}
	select {
	case s.guessed <- from.name:
	default: // the notice is only of use if there are few
	}
}

func errWrongPassword() error {
	return fault.New(fault.Unauthenticated, "Name or password is wrong. Try again, or ask the operator for a reset link.")
}

// guessKey returns the key under which guesses at one account from one address are counted. The name is
// cut to bound memory; account names are shorter, so different accounts have different keys.
func guessKey(name, addr string) string {
	return name[:min(len(name), maxGuessKey)] + "|" + addr
}

const maxGuessKey = 64

// revokeSecret deletes a credential that was issued a moment ago. A missing one is no error.
func (s *Service) revokeSecret(ctx context.Context, secret string) error {
	c, _, err := s.store.CredentialByHash(ctx, ident.HashSecret(secret))
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err == nil {
		_, err = s.store.DeleteCredentials(ctx, c.AccountID, c.ID, c.Kind)
	}
	return err
}

// StartSession starts a new session of the account and returns its secret, which is not stored.
//
// An account has at most Config.MaxSessions: those used least recently end, because a refusal would keep
// a person out who has forgotten old browsers.
func (s *Service) StartSession(ctx context.Context, a Account) (string, error) {
	secret, c := draftCredential(Credential{Kind: SessionCredential, AccountID: a.ID}, ident.SessionPrefix, sessionLife)
	ended, err := s.store.AddSession(ctx, c, s.cfg.MaxSessions)
	if err != nil {
		return "", err
	}
	s.watch.endStreams(ended...)
	if err := s.confirmAccount(ctx, c); err != nil {
		return "", err
	}
	return secret, nil
}

// StartGuest starts a guest session and returns its secret and actor. The visitor's conversations belong
// to the session. The number of sessions from one address is limited.
func (s *Service) StartGuest(ctx context.Context, actor ident.Actor) (string, ident.Actor, error) {
	if !s.Guests() {
		return "", actor, fault.New(fault.Unauthenticated, "Sign in to talk to agents on this portal.")
	}
	if wait, ok := s.guests.Allow(actor.Addr); !ok {
		return "", actor, fault.Limited(wait, "Too many new visitors from your address. Wait a moment, or sign up.")
	}
	secret, err := s.issueCredential(ctx, Credential{Kind: GuestCredential, Addr: actor.Addr}, ident.SessionPrefix, guestLife)
	if err != nil {
		return "", actor, err
	}
	a, err := s.Authenticate(ctx, secret, actor.Addr)
	return secret, a, err
}

func (s *Service) issueCredential(ctx context.Context, c Credential, prefix string, life time.Duration) (string, error) {
	secret, c := draftCredential(c, prefix, life)
	if err := s.store.AddCredential(ctx, c); err != nil {
		return "", err
	}
	if c.AccountID == "" {
		return secret, nil
	}
	if err := s.confirmAccount(ctx, c); err != nil {
		return "", err
	}
	return secret, nil
}

// draftCredential returns a new secret and the credential to store for it, from the fields in c.
func draftCredential(c Credential, prefix string, life time.Duration) (secret string, draft Credential) {
	secret = ident.NewSecret(prefix)
	now := clock.Now()
	c.ID, c.Hash, c.CreatedAt, c.ExpiresAt = ident.NewID(), ident.HashSecret(secret), now, now.Add(life)
	return secret, c
}

// confirmAccount deletes a credential that was just stored if its account is disabled. The account is read
// after the credential is stored: an account that was disabled in between must not have the credential
// when it is enabled again.
func (s *Service) confirmAccount(ctx context.Context, c Credential) error {
	a, err := s.store.AccountByID(ctx, c.AccountID)
	if err == nil && a.Disabled() {
		err = fault.New(fault.Conflict, "The account %s is disabled. Enable it first.", a.Name)
	}
	if err != nil {
		_, derr := s.store.DeleteCredentials(ctx, c.AccountID, c.ID, c.Kind)
		return errors.Join(err, derr)
	}
	return nil
}

// Authenticate returns the actor with the present rights for a secret: session, guest session or API
// token. Any other secret is an Unauthenticated fault, and a token that only connects a program a Forbidden one.
// addr is the client's address.
func (s *Service) Authenticate(ctx context.Context, secret, addr string) (ident.Actor, error) {
	actor, err := s.AuthenticateProgram(ctx, secret, addr)
	if _, bound := actor.Program(); err == nil && bound {
		return ident.Actor{}, fault.New(fault.Forbidden,
			"This token connects the program of one agent and may do nothing else. Make another one on your account page.")
	}
	return actor, err
}

// AuthenticateProgram is Authenticate for the endpoint at which programs connect: it takes their tokens too. The caller
// must compare ident.Actor.Program with the agent.
func (s *Service) AuthenticateProgram(ctx context.Context, secret, addr string) (ident.Actor, error) {
	none := fault.New(fault.Unauthenticated,
		"Your session or token is unknown or has ended. Sign in again, or make a new token.")
	if secret == "" {
		return ident.Actor{}, none
	}
	c, a, err := s.store.CredentialByHash(ctx, ident.HashSecret(secret))
	if fault.Is(err, fault.NotFound) {
		return ident.Actor{}, none
	}
	if err != nil {
		return ident.Actor{}, err
	}
	actor := ident.Actor{Credential: c.ID, Addr: addr}
	switch c.Kind {
	case GuestCredential:
		if !s.Guests() { // the session was issued before the operator excluded guests
			return ident.Actor{}, none
		}
		actor.Kind, actor.ID = ident.Guest, c.ID
	case SessionCredential, TokenCredential:
		if a.ID == "" || a.Disabled() {
			return ident.Actor{}, none
		}
		actor.Kind, actor.ID, actor.Name = ident.Person, a.ID, a.Name
		if a.Operator {
			actor.Kind = ident.Operator
		}
		actor.Narrowed, actor.Scopes = len(c.Scopes) > 0, c.Scopes
		if c.Kind == TokenCredential {
			actor.Until = c.ExpiresAt
		}
		// A token narrowed to less than admin does not act as the operator.
		if actor.Narrowed && !actor.May(ident.Admin) {
			actor.Kind = ident.Person
		}
	default:
		return ident.Actor{}, none
	}
	if now := clock.Now(); now.Sub(c.UsedAt) > touchAfter {
		expires := c.ExpiresAt
		if c.Kind == SessionCredential || c.Kind == GuestCredential {
			expires = now.Add(sessionLife)
		}
		if err := s.store.Touch(ctx, c.Hash, now, expires); err != nil {
			s.cfg.Log.Warn("note use of credential", "error", err)
		}
	}
	return actor, nil
}

// LogOut ends the session or guest session with which the actor authenticated, and its streams.
func (s *Service) LogOut(ctx context.Context, actor ident.Actor) error {
	if actor.Credential == "" {
		return nil
	}
	for _, kind := range []CredentialKind{SessionCredential, GuestCredential} {
		owner := actor.ID
		if kind == GuestCredential {
			owner = ""
		}
		if _, err := s.store.DeleteCredentials(ctx, owner, actor.Credential, kind); err != nil {
			return err
		}
	}
	s.watch.endStreams(actor.Credential)
	return nil
}

// SignedInAt returns the time at which the session began with which the actor authenticated. Another credential is a
// NotFound fault.
func (s *Service) SignedInAt(ctx context.Context, actor ident.Actor) (time.Time, error) {
	list, err := s.store.ListCredentials(ctx, actor.ID, SessionCredential)
	if err != nil {
		return time.Time{}, err
	}
	for _, c := range list {
		if c.ID == actor.Credential {
			return c.CreatedAt, nil
		}
	}
	return time.Time{}, fault.New(fault.NotFound, "This is no session.")
}

// LogOutEverywhere ends all sessions of the actor's account, but not its API tokens.
func (s *Service) LogOutEverywhere(ctx context.Context, actor ident.Actor) error {
	if err := requirePerson(actor); err != nil {
		return err
	}
	ids, err := s.store.DeleteCredentials(ctx, actor.ID, "", SessionCredential)
	if err != nil {
		return err
	}
	s.watch.endStreams(ids...)
	return nil
}

// Sessions returns the number of the actor's sessions.
func (s *Service) Sessions(ctx context.Context, actor ident.Actor) (int, error) {
	if err := requirePerson(actor); err != nil {
		return 0, err
	}
	list, err := s.store.ListCredentials(ctx, actor.ID, SessionCredential)
	return len(list), err
}

// AuthenticateGuest returns the guest of a guest session. A secret of an account is refused, so that a
// person does not act under their account by accident where only guests are expected.
func (s *Service) AuthenticateGuest(ctx context.Context, secret, addr string) (ident.Actor, error) {
	if !strings.HasPrefix(secret, ident.SessionPrefix) {
		secret = ""
	}
	actor, err := s.Authenticate(ctx, secret, addr)
	if err == nil && actor.Kind != ident.Guest {
		return ident.Actor{}, fault.New(fault.Unauthenticated, "Only a visitor can talk here.")
	}
	return actor, err
}
