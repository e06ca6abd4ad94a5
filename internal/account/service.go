package account

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"agentsite/internal/adjust"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/limit"
	"agentsite/internal/weborigin"
)

// Config holds the operator's settings for accounts. Mailer is nil if no mail server is configured.
type Config struct {
	Policy Policy
	Guests bool
	// Live has the policies that an operator may change meanwhile. It replaces Policy and Guests; nil for none.
	Live *adjust.Snapshot
	// URL is the portal's address, to which links lead.
	URL    string
	Mailer Mailer
	Log    *slog.Logger
	// MaxTokens and MaxSessions bound the API tokens and the sessions of an account; 0 means 100.
	MaxTokens, MaxSessions int
	// MaxWaiting bounds the password checks that wait; 0 means 256.
	MaxWaiting int
	// Notices warns people of guesses at their passwords; nil sends no warning.
	Notices Notices
	// CheapHashes stores new passwords so that hashes are quick to make and to guess. It is only for
	// tests of other features that sign many people up.
	CheapHashes bool
}

// Service implements the rules of accounts for pages, API and command line. It is safe for concurrent
// use. Create it with New.
type Service struct {
	store  Store
	cfg    Config
	hasher *hasher
	// loginsByName limits guesses at one account from one address, loginsByAddr all guesses from one
	// address, signups and guests the new accounts and guest sessions from one address.
	loginsByName, loginsByAddr, signups, guests *limit.Keyed
	watch                                       *watchers
	ended                                       chan string
	resets                                      chan string // names for which Run mails reset links
	guessed                                     chan string // names whose people Run warns
}

const (
	defaultMaxTokens   = 100
	defaultMaxSessions = 100
	defaultMaxWaiting  = 256
)

func (c Config) withDefaults() Config {
	c.MaxTokens = cmp.Or(c.MaxTokens, defaultMaxTokens)
	c.MaxSessions = cmp.Or(c.MaxSessions, defaultMaxSessions)
	c.MaxWaiting = cmp.Or(c.MaxWaiting, defaultMaxWaiting)
	return c
}

// New returns a service on store. Mails are sent only while Run runs.
func New(store Store, cfg Config) *Service {
	cfg = cfg.withDefaults()
	return &Service{
		store: store, cfg: cfg, hasher: newHasher(cfg.CheapHashes, cfg.MaxWaiting),
		loginsByName: limit.New(30*time.Second, 10, 50_000),
		loginsByAddr: limit.New(3*time.Second, 30, 50_000),
		signups:      limit.New(time.Minute, 20, 50_000),
		guests:       limit.New(time.Minute, 30, 50_000),
		watch:        newWatchers(),
		ended:        make(chan string, 64),
		resets:       make(chan string, 64),
		guessed:      make(chan string, 64),
	}
}

// Policy returns the policy for new accounts.
func (s *Service) Policy() Policy {
	if p := s.cfg.Live.Value(adjust.Accounts); p != "" {
		return Policy(p)
	}
	return s.cfg.Policy
}

// Guests reports whether the operator allows visitors without an account to talk to agents.
func (s *Service) Guests() bool {
	if s.cfg.Live != nil {
		return s.cfg.Live.AllowsGuests()
	}
	return s.cfg.Guests
}

// freshLogin is the age of a session up to which its password counts as given a moment ago.
const freshLogin = 10 * time.Minute

// ConfirmFresh returns a fault unless the session of the actor has begun a moment ago.
func (s *Service) ConfirmFresh(ctx context.Context, actor ident.Actor) error {
	at, err := s.SignedInAt(ctx, actor)
	if err != nil {
		return err
	}
	if clock.Now().Sub(at) > freshLogin {
		return fault.Field("confirm", "your password was given too long ago; go to Admin, Settings")
	}
	return nil
}

// Confirm returns a fault unless the password is that of the actor's own account.
func (s *Service) Confirm(ctx context.Context, actor ident.Actor, password string) error {
	if !actor.IsPerson() {
		return fault.New(fault.Unauthenticated, "Log in first.")
	}
	// The password proves the person, so a token needs no scope for it.
	a, err := s.store.AccountByID(ctx, actor.ID)
	if err != nil {
		return err
	}
	if wait, ok := s.loginsByName.Allow(guessKey(a.Name, actor.Addr)); !ok {
		return fault.Limited(wait, "Too many attempts. Wait a moment and try again.")
	}
	from := client{a.Name, actor.Addr}
	ok, err := s.hasher.matchesHash(ctx, from, password, a.PasswordHash)
	if err != nil {
		return err
	}
	if !ok {
		s.noteFailure(from)
		return fault.Field("confirm", "this is not your password")
	}
	return nil
}

// CanMail reports whether MailReset can send reset links.
func (s *Service) CanMail() bool { return s.cfg.Mailer != nil }

// Ended returns a channel with the ids of accounts that were disabled or enabled. The reader stops their
// work. Ids are dropped if the reader is too slow; work that starts later checks the account anyway.
func (s *Service) Ended() <-chan string { return s.ended }

// SetEmail sets the address to which the actor's reset links are mailed; "" removes it.
func (s *Service) SetEmail(ctx context.Context, actor ident.Actor, email string) error {
	if err := requirePerson(actor); err != nil {
		return err
	}
	email = weborigin.ReadName(email)
	var c fault.Check
	checkEmail(&c, email)
	if err := c.Err(); err != nil {
		return err
	}
	return s.store.SetEmail(ctx, actor.ID, email)
}

// requirePerson returns a fault unless the actor has an account and a credential that covers changes to
// it.
func requirePerson(actor ident.Actor) error {
	if !actor.IsPerson() {
		return fault.New(fault.Unauthenticated, "Sign in first.")
	}
	if !actor.May(ident.AccountAll) {
		return fault.New(fault.Forbidden, "%s", ident.AccountAll.DescribeMissing())
	}
	return nil
}

// Me returns the actor's own account. Actors without an account get a fault.
func (s *Service) Me(ctx context.Context, actor ident.Actor) (Account, error) {
	if err := requirePerson(actor); err != nil {
		return Account{}, err
	}
	return s.store.AccountByID(ctx, actor.ID)
}

// ChangePassword sets a new password after checking the old one. It ends the account's sessions except
// the one of the actor.
func (s *Service) ChangePassword(ctx context.Context, actor ident.Actor, old, password string) error {
	a, err := s.Me(ctx, actor)
	if err != nil {
		return err
	}
	if wait, ok := s.loginsByName.Allow(guessKey(a.Name, actor.Addr)); !ok {
		return fault.Limited(wait, "Too many attempts. Wait a moment and try again.")
	}
	from := client{a.Name, actor.Addr}
	ok, err := s.hasher.matchesHash(ctx, from, old, a.PasswordHash)
	if err != nil {
		return err
	}
	if !ok {
		s.noteFailure(from)
	}
	var c fault.Check
	c.Field(ok, "old", "this is not your present password")
	if err := CheckPassword(password, a.Name); err != nil {
		c.Field(false, "password", "%s", err)
	}
	if err := c.Err(); err != nil {
		return err
	}
	return s.setPassword(ctx, actor, a.ID, password, actor.Credential, "")
}

func (s *Service) setPassword(ctx context.Context, actor ident.Actor, id, password, keep, spend string) error {
	hash, err := s.hasher.hashPassword(ctx, client{addr: actor.Addr}, password)
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
			s.watch.endStreams(c.ID)
		}
	}
	return nil
}
