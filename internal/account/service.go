package account

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/limit"
)

// Config is what the operator decides about accounts.
type Config struct {
	Policy Policy
	Guests bool
	// URL is the portal's address, for links.
	URL    string
	Mailer Mailer
	Log    *slog.Logger
	// CheapHashes stores new passwords so that they are quickly made and quickly
	// guessed: only for tests of other things, which sign many people up.
	CheapHashes bool
}

// Service is the door-independent logic of accounts. Create it with New.
type Service struct {
	store  Store
	cfg    Config
	hasher *hasher
	// logins bounds guesses per name and per address; signups per address.
	loginsByName, loginsByAddr, signups, guests *limit.Keyed
	watch                                       *watchers
	ended                                       chan string
	letters                                     chan letter // for Run
}

// New returns a service on store.
func New(store Store, cfg Config) *Service {
	return &Service{
		store: store, cfg: cfg, hasher: newHasher(cfg.CheapHashes),
		loginsByName: limit.New(30*time.Second, 10, 50_000),
		loginsByAddr: limit.New(3*time.Second, 30, 50_000),
		signups:      limit.New(time.Minute, 20, 50_000),
		guests:       limit.New(time.Minute, 30, 50_000),
		watch:        newWatchers(),
		ended:        make(chan string, 64),
		letters:      make(chan letter, 64),
	}
}

// Policy tells who may sign up.
func (s *Service) Policy() Policy { return s.cfg.Policy }

// Guests tells whether visitors without an account may talk to agents.
func (s *Service) Guests() bool { return s.cfg.Guests }

// CanMail tells whether reset links can be sent by mail.
func (s *Service) CanMail() bool { return s.cfg.Mailer != nil }

// Ended delivers the ids of accounts that were disabled while running, for
// whoever has to stop their work. Ids are dropped when nobody reads: stopping
// work also looks at the present state.
func (s *Service) Ended() <-chan string { return s.ended }

// SetEmail sets where the actor's reset links may be sent; "" removes it.
func (s *Service) SetEmail(ctx context.Context, actor ident.Actor, email string) error {
	if err := person(actor); err != nil {
		return err
	}
	email = strings.TrimSpace(email)
	var c fault.Check
	checkEmail(&c, email)
	if err := c.Err(); err != nil {
		return err
	}
	return s.store.SetEmail(ctx, actor.ID, email)
}

// person demands an account, and a credential that covers account matters.
func person(actor ident.Actor) error {
	if !actor.IsPerson() {
		return fault.New(fault.Unauthenticated, "Sign in first.")
	}
	if !actor.May(ident.AccountAll) {
		return fault.New(fault.Forbidden, "This token lacks the scope %q.", ident.AccountAll)
	}
	return nil
}

// Me returns the actor's own account.
func (s *Service) Me(ctx context.Context, actor ident.Actor) (Account, error) {
	if err := person(actor); err != nil {
		return Account{}, err
	}
	return s.store.AccountByID(ctx, actor.ID)
}

// ChangePassword sets a new password after the old one was shown, and ends
// the account's other sessions.
func (s *Service) ChangePassword(ctx context.Context, actor ident.Actor, old, password string) error {
	a, err := s.Me(ctx, actor)
	if err != nil {
		return err
	}
	if wait, ok := s.loginsByName.Allow(guessKey(a.Name, actor.Addr)); !ok {
		return fault.Limited(wait, "Too many attempts. Wait a moment and try again.")
	}
	ok, err := s.hasher.matches(ctx, old, a.PasswordHash)
	if err != nil {
		return err
	}
	var c fault.Check
	c.Field(ok, "old", "this is not your present password")
	if err := CheckPassword(password, a.Name); err != nil {
		c.Field(false, "password", "%s", err)
	}
	if err := c.Err(); err != nil {
		return err
	}
	return s.setPassword(ctx, a.ID, password, actor.Credential, "")
}

func (s *Service) setPassword(ctx context.Context, id, password, keep, spend string) error {
	hash, err := s.hasher.hash(ctx, password)
	if err != nil {
		return err
	}
	sessions, err := s.store.ListCredentials(ctx, id, SessionCredential)
	if err != nil {
		return err
	}
	if err := s.store.SetPassword(ctx, id, hash, keep, spend); err != nil {
		return err
	}
	for _, c := range sessions {
		if c.ID != keep {
			s.watch.end(c.ID)
		}
	}
	return nil
}
