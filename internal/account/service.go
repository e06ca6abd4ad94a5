package account

import (
	"context"
	"errors"
	"log/slog"
	"net/mail"
	"slices"
	"strings"
	"time"

	"agentsite/internal/clock"
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
		store: store, cfg: cfg, hasher: newHasher(),
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

// SignUp is what somebody fills in to get an account.
type SignUp struct {
	Name     string
	Password string
	Email    string
	// Invite is an invitation, or the operator's one-time secret.
	Invite string
}

// SignUp creates an account by the portal's policy. With the one-time secret
// the account becomes the operator's.
func (s *Service) SignUp(ctx context.Context, actor ident.Actor, in SignUp) (Account, error) {
	if wait, ok := s.signups.Allow(actor.Addr); !ok {
		return Account{}, fault.Limited(wait, "Too many sign-ups from your address. Try again in a few minutes.")
	}
	in.Name = strings.ToLower(strings.TrimSpace(in.Name))
	in.Email = strings.TrimSpace(in.Email)
	in.Invite = strings.TrimSpace(in.Invite)
	var spend []CredentialKind
	a := Account{ID: ident.NewID(), Name: in.Name, Email: in.Email, CreatedAt: clock.Now()}
	if in.Invite != "" {
		c, _, err := s.store.CredentialByHash(ctx, ident.HashSecret(in.Invite))
		if fault.Is(err, fault.NotFound) || err == nil && c.Kind != InviteCredential && c.Kind != SetupCredential {
			return Account{}, &fault.Error{Kind: fault.Invalid, Safe: "This invitation is unknown, used or expired. Ask for a new one.", Fields: map[string]string{"invite": "unknown, used or expired"}}
		}
		if err != nil {
			return Account{}, err
		}
		if c.Kind == InviteCredential && s.cfg.Policy == Closed {
			return Account{}, fault.New(fault.Forbidden, "This portal takes no new accounts.")
		}
		a.Operator = c.Kind == SetupCredential
		if a.Operator {
			// The link is for a portal without an operator: one that was made
			// on the command line meanwhile makes it void.
			if n, err := s.store.CountOperators(ctx); err != nil {
				return Account{}, err
			} else if n > 0 {
				return Account{}, &fault.Error{Kind: fault.Invalid, Safe: "This portal has an operator already.", Fields: map[string]string{"invite": "unknown, used or expired"}}
			}
		}
		spend = []CredentialKind{c.Kind}
	} else {
		switch s.cfg.Policy {
		case Closed:
			return Account{}, fault.New(fault.Forbidden, "This portal takes no new accounts.")
		case Invite:
			return Account{}, &fault.Error{Kind: fault.Forbidden, Safe: "You need an invitation to sign up here. Ask the operator for one.", Fields: map[string]string{"invite": "needed on this portal"}}
		}
	}
	if err := s.check(in.Name, in.Password, in.Email); err != nil {
		return Account{}, err
	}
	var err error
	if a.PasswordHash, err = s.hasher.hash(ctx, in.Password); err != nil {
		return Account{}, err
	}
	hash := ""
	if in.Invite != "" {
		hash = ident.HashSecret(in.Invite)
	}
	if err := s.store.CreateAccount(ctx, a, hash, spend...); err != nil {
		return Account{}, nameTaken(err)
	}
	s.cfg.Log.Info("account created", "account", a.ID, "operator", a.Operator)
	return a, nil
}

func nameTaken(err error) error {
	if fault.Is(err, fault.Conflict) {
		return &fault.Error{Kind: fault.Conflict, Safe: "This name is taken. Choose another.", Fields: map[string]string{"name": "taken; choose another"}, Err: err}
	}
	return err
}

func (s *Service) check(name, password, email string) error {
	var c fault.Check
	if err := ident.CheckName(name); err != nil {
		c.Field(false, "name", "%s", err)
	}
	if err := CheckPassword(password, name); err != nil {
		c.Field(false, "password", "%s", err)
	}
	checkEmail(&c, email)
	return c.Err()
}

// checkEmail accepts no address, or one plain address.
func checkEmail(c *fault.Check, email string) {
	if email == "" {
		return
	}
	addr, err := mail.ParseAddress(email)
	c.Field(err == nil && addr.Address == email && len(email) <= 254, "email", "this is not an address like you@example.org")
}

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

// Add creates an account on the operator's word, from the command line; runs
// makes it an operator's. The actor must be the operator or the system.
func (s *Service) Add(ctx context.Context, actor ident.Actor, in SignUp, runs bool) (Account, error) {
	if err := operator(actor); err != nil {
		return Account{}, err
	}
	in.Name = strings.ToLower(strings.TrimSpace(in.Name))
	if err := s.check(in.Name, in.Password, in.Email); err != nil {
		return Account{}, err
	}
	hash, err := s.hasher.hash(ctx, in.Password)
	if err != nil {
		return Account{}, err
	}
	a := Account{ID: ident.NewID(), Name: in.Name, Email: in.Email, PasswordHash: hash, Operator: runs, CreatedAt: clock.Now()}
	if err := s.store.CreateAccount(ctx, a, ""); err != nil {
		return Account{}, nameTaken(err)
	}
	return a, nil
}

func errNotOperator() error {
	return fault.New(fault.Forbidden, "Only the operator of this portal may do that.")
}

// LogIn checks a password and starts a session; it returns its secret. Unknown
// names, disabled accounts and wrong passwords get the same answer in the same
// time.
func (s *Service) LogIn(ctx context.Context, actor ident.Actor, name, password string) (secret string, err error) {
	name = strings.ToLower(strings.TrimSpace(name))
	if wait, ok := s.loginsByAddr.Allow(actor.Addr); !ok {
		return "", fault.Limited(wait, "Too many attempts from your address. Wait a moment and try again.")
	}
	if wait, ok := s.loginsByName.Allow(guessKey(name, actor.Addr)); !ok {
		return "", fault.Limited(wait, "Too many attempts for this account. Wait a moment and try again.")
	}
	a, err := s.store.AccountByName(ctx, name)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return "", err
	}
	hash := a.PasswordHash
	if a.Disabled() {
		hash = ""
	}
	ok, err := s.hasher.matches(ctx, password, hash)
	if err != nil {
		return "", err
	}
	if !ok {
		return "", errWrongPassword()
	}
	if secret, err = s.StartSession(ctx, a); err != nil {
		return "", err
	}
	// A password that was changed while this one was compared opens nothing.
	if now, err := s.store.AccountByID(ctx, a.ID); err != nil {
		return "", err
	} else if now.PasswordHash != a.PasswordHash {
		if err := s.withdraw(ctx, secret); err != nil {
			return "", err
		}
		return "", errWrongPassword()
	}
	return secret, nil
}

func errWrongPassword() error {
	return fault.New(fault.Unauthenticated, "Name or password is wrong. Try again, or ask the operator for a reset link.")
}

// guessKey is what guesses at one account from one address are counted by.
// No account has a longer name, so that what is remembered of it is cut.
func guessKey(name, addr string) string {
	return name[:min(len(name), maxGuessKey)] + "|" + addr
}

const maxGuessKey = 64

// withdraw deletes a credential that was just issued.
func (s *Service) withdraw(ctx context.Context, secret string) error {
	c, _, err := s.store.CredentialByHash(ctx, ident.HashSecret(secret))
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err == nil {
		_, err = s.store.DeleteCredentials(ctx, c.AccountID, c.ID, c.Kind)
	}
	return err
}

// StartSession gives the account a new session and returns its secret.
func (s *Service) StartSession(ctx context.Context, a Account) (string, error) {
	return s.issue(ctx, Credential{Kind: SessionCredential, AccountID: a.ID}, ident.SessionPrefix, sessionLife)
}

// StartGuest gives a visitor a session, so that their conversations stay
// theirs, and returns its secret.
func (s *Service) StartGuest(ctx context.Context, actor ident.Actor) (string, ident.Actor, error) {
	if !s.cfg.Guests {
		return "", actor, fault.New(fault.Unauthenticated, "Sign in to talk to agents on this portal.")
	}
	if wait, ok := s.guests.Allow(actor.Addr); !ok {
		return "", actor, fault.Limited(wait, "Too many new visitors from your address. Wait a moment, or sign up.")
	}
	secret, err := s.issue(ctx, Credential{Kind: GuestCredential}, ident.SessionPrefix, guestLife)
	if err != nil {
		return "", actor, err
	}
	a, err := s.Authenticate(ctx, secret, actor.Addr)
	return secret, a, err
}

func (s *Service) issue(ctx context.Context, c Credential, prefix string, life time.Duration) (string, error) {
	secret := ident.NewSecret(prefix)
	now := clock.Now()
	c.ID, c.Hash, c.CreatedAt = ident.NewID(), ident.HashSecret(secret), now
	c.ExpiresAt = now.Add(life)
	if err := s.store.AddCredential(ctx, c); err != nil {
		return "", err
	}
	if c.AccountID == "" {
		return secret, nil
	}
	// Looked at after the credential is there: an account that was disabled
	// meanwhile must not find it when it is enabled again.
	a, err := s.store.AccountByID(ctx, c.AccountID)
	if err == nil && a.Disabled() {
		err = fault.New(fault.Conflict, "The account %s is disabled. Enable it first.", a.Name)
	}
	if err != nil {
		_, derr := s.store.DeleteCredentials(ctx, c.AccountID, c.ID, c.Kind)
		return "", errors.Join(err, derr)
	}
	return secret, nil
}

// Authenticate turns a presented secret (session, guest session or API token)
// into an Actor, from present state. Anything else is Unauthenticated.
func (s *Service) Authenticate(ctx context.Context, secret, addr string) (ident.Actor, error) {
	none := fault.New(fault.Unauthenticated, "Your session or token is unknown or has ended. Sign in again, or make a new token.")
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
		if !s.cfg.Guests { // it stems from a time when there were guests
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
		if err := s.store.Touch(ctx, c.ID, now, expires); err != nil {
			s.cfg.Log.Warn("note use of credential", "error", err)
		}
	}
	return actor, nil
}

// LogOut ends the session or guest session the actor came with.
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
	s.watch.end(actor.Credential)
	return nil
}

// LogOutEverywhere ends every session of the actor's account.
func (s *Service) LogOutEverywhere(ctx context.Context, actor ident.Actor) error {
	if err := person(actor); err != nil {
		return err
	}
	ids, err := s.store.DeleteCredentials(ctx, actor.ID, "", SessionCredential)
	if err != nil {
		return err
	}
	s.watch.end(ids...)
	return nil
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

// Sessions counts the actor's sessions.
func (s *Service) Sessions(ctx context.Context, actor ident.Actor) (int, error) {
	if err := person(actor); err != nil {
		return 0, err
	}
	list, err := s.store.ListCredentials(ctx, actor.ID, SessionCredential)
	return len(list), err
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

// Tokens lists the actor's API tokens, newest first.
func (s *Service) Tokens(ctx context.Context, actor ident.Actor) ([]Credential, error) {
	if err := person(actor); err != nil {
		return nil, err
	}
	list, err := s.store.ListCredentials(ctx, actor.ID, TokenCredential)
	slices.SortFunc(list, func(a, b Credential) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return list, err
}

// NewToken is what a new API token shall be.
type NewToken struct {
	Label  string
	Scopes []ident.Scope
	// Life is at most a year; zero means 90 days.
	Life time.Duration
}

// maxTokens bounds how many API tokens an account holds.
const maxTokens = 100

// CreateToken makes an API token and returns its secret, which is not kept.
func (s *Service) CreateToken(ctx context.Context, actor ident.Actor, in NewToken) (string, error) {
	if err := person(actor); err != nil {
		return "", err
	}
	for _, sc := range in.Scopes {
		if actor.Narrowed && !actor.May(sc) {
			return "", fault.New(fault.Forbidden, "A token cannot make one that may do more than itself: %.80q.", sc)
		}
	}
	if actor.Narrowed && len(in.Scopes) == 0 {
		in.Scopes = actor.Scopes
	}
	return s.createToken(ctx, actor.ID, in)
}

// CreateTokenFor is CreateToken on the operator's word, from the command line.
func (s *Service) CreateTokenFor(ctx context.Context, actor ident.Actor, name string, in NewToken) (string, error) {
	if err := operator(actor); err != nil {
		return "", err
	}
	a, err := s.store.AccountByName(ctx, strings.ToLower(strings.TrimSpace(name)))
	if fault.Is(err, fault.NotFound) {
		return "", fault.New(fault.NotFound, "There is no account %.80q. `agentsite user list` names them.", name)
	}
	if err != nil {
		return "", err
	}
	return s.createToken(ctx, a.ID, in)
}

func (s *Service) createToken(ctx context.Context, accountID string, in NewToken) (string, error) {
	var c fault.Check
	in.Label = strings.TrimSpace(in.Label)
	if in.Label == "" {
		in.Label = "token"
	}
	if in.Life == 0 {
		in.Life = defaultToken
	}
	c.Field(len(in.Label) <= 100, "label", "use at most 100 characters")
	c.Field(in.Life > 0 && in.Life <= maxToken, "expires", "choose a time of at most 366 days")
	for _, sc := range in.Scopes {
		c.Field(slices.Contains(ident.Scopes(), sc), "scopes", "%.80q is no scope; the scopes are %v", sc, ident.Scopes())
	}
	if err := c.Err(); err != nil {
		return "", err
	}
	in.Scopes = slices.Compact(slices.Sorted(slices.Values(in.Scopes)))
	have, err := s.store.ListCredentials(ctx, accountID, TokenCredential)
	if err != nil {
		return "", err
	}
	if len(have) >= maxTokens {
		return "", fault.New(fault.Conflict, "This account has %d tokens already. Revoke one first.", maxTokens)
	}
	return s.issue(ctx, Credential{Kind: TokenCredential, AccountID: accountID, Label: in.Label, Scopes: in.Scopes}, ident.TokenPrefix, in.Life)
}

// RevokeToken ends one of the actor's tokens and every stream opened with it.
func (s *Service) RevokeToken(ctx context.Context, actor ident.Actor, id string) error {
	if err := person(actor); err != nil {
		return err
	}
	var ids []string
	if id != "" { // the store takes that as every token
		var err error
		if ids, err = s.store.DeleteCredentials(ctx, actor.ID, id, TokenCredential); err != nil {
			return err
		}
	}
	if len(ids) == 0 {
		return fault.New(fault.NotFound, "There is no such token.")
	}
	s.watch.end(ids...)
	return nil
}
