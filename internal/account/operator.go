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

// requireOperator returns a Forbidden fault unless the actor is an operator, with a credential for
// administration, or the system (the command line on the data folder).
func requireOperator(actor ident.Actor) error {
	if actor.Kind == ident.System || actor.IsOperator() && actor.May(ident.Admin) {
		return nil
	}
	return errNotOperator()
}

// HasOperator reports whether the portal has an operator; if not, Setup makes the link for the first one.
func (s *Service) HasOperator(ctx context.Context) (bool, error) {
	n, err := s.store.CountOperators(ctx)
	return n > 0, err
}

// Setup returns the one-time secret that makes its bearer the operator, or "" when the portal has an
// operator already. Every call makes the earlier secret void.
func (s *Service) Setup(ctx context.Context) (string, error) {
	if has, err := s.HasOperator(ctx); err != nil || has {
		return "", err
	}
	if _, err := s.store.DeleteCredentials(ctx, "", "", SetupCredential); err != nil {
		return "", err
	}
	return s.issueCredential(ctx, Credential{Kind: SetupCredential}, ident.LinkPrefix, setupLife)
}

// List returns at most 100 accounts ordered by name, beginning after the given name. Only operators may
// call it.
func (s *Service) List(ctx context.Context, actor ident.Actor, after string) ([]Account, error) {
	if err := requireOperator(actor); err != nil {
		return nil, err
	}
	return s.store.ListAccounts(ctx, after, 100)
}

// Disable deletes the account's credentials and ends its streams and running tasks. The account stays in
// the database and can be enabled again. Only operators may call it; they cannot disable themselves or
// the last operator.
func (s *Service) Disable(ctx context.Context, actor ident.Actor, name string) error {
	return s.setDisabled(ctx, actor, name, clock.Now())
}

// BeginRemoval disables an account that is about to be erased and returns it. It may be called again after
// an interrupted removal. Only operators may call it. The last operator is a Conflict fault.
func (s *Service) BeginRemoval(ctx context.Context, actor ident.Actor, name string) (Account, error) {
	if err := requireOperator(actor); err != nil {
		return Account{}, err
	}
	a, err := s.findByName(ctx, name)
	if err != nil {
		return Account{}, err
	}
	if a.Operator {
		others, err := s.store.CountOperators(ctx)
		if err != nil {
			return Account{}, err
		}
		if !a.Disabled() {
			others--
		}
		if others <= 0 {
			return Account{}, fault.New(fault.Conflict, "%s is the last operator of this portal. Make another one first, with "+
				"`agentsite user add NAME --admin`.", a.Name)
		}
	}
	if a.Disabled() {
		return a, nil
	}
	return a, s.setDisabled(ctx, actor, a.Name, clock.Now())
}

// Find returns the account of a name. Only operators may call it.
func (s *Service) Find(ctx context.Context, actor ident.Actor, name string) (Account, error) {
	if err := requireOperator(actor); err != nil {
		return Account{}, err
	}
	return s.findByName(ctx, name)
}

// findByName returns the account of a name; a NotFound fault if there is none.
func (s *Service) findByName(ctx context.Context, name string) (Account, error) {
	a, err := s.store.AccountByName(ctx, strings.ToLower(strings.TrimSpace(name)))
	if fault.Is(err, fault.NotFound) {
		return Account{}, fault.New(fault.NotFound, "There is no account %.80q.", name)
	}
	return a, err
}

// Enable lets a disabled account sign in again. Its deleted tokens are not restored.
func (s *Service) Enable(ctx context.Context, actor ident.Actor, name string) error {
	return s.setDisabled(ctx, actor, name, time.Time{})
}

func (s *Service) setDisabled(ctx context.Context, actor ident.Actor, name string, at time.Time) error {
	if err := requireOperator(actor); err != nil {
		return err
	}
	a, err := s.findByName(ctx, name)
	if err != nil {
		return err
	}
	if a.ID == actor.ID && !at.IsZero() {
		return fault.New(fault.Conflict, "You cannot disable yourself. Let another operator do it.")
	}
	// The command line may disable the last operator, because the next start prints a new one-time
	// link.
	if a.Operator && !at.IsZero() && !a.Disabled() && actor.Kind != ident.System {
		n, err := s.store.CountOperators(ctx)
		if err != nil {
			return err
		}
		if n == 1 {
			return fault.New(fault.Conflict, "%s is the only operator of this portal. Make another one first.", a.Name)
		}
	}
	if err := s.store.SetDisabled(ctx, a.ID, at, actor); err != nil {
		return err
	}
	s.cfg.Log.Info("account disabled or enabled", "account", a.ID, "disabled", !at.IsZero(), "by", actor.ID)
	if !at.IsZero() {
		s.watch.endStreams(a.ID)
	}
	select {
	case s.ended <- a.ID:
	default:
	}
	return nil
}

// ResetLink returns a link with which its bearer can set the account's password, and makes earlier links
// invalid. Only operators may call it.
func (s *Service) ResetLink(ctx context.Context, actor ident.Actor, name string) (string, error) {
	if err := requireOperator(actor); err != nil {
		return "", err
	}
	a, err := s.findByName(ctx, name)
	if err != nil {
		return "", err
	}
	return s.resetLink(ctx, a)
}

// InvitationKind returns the kind of an open invitation or of the operator's one-time link. It returns
// a NotFound fault for any other secret.
func (s *Service) InvitationKind(ctx context.Context, secret string) (CredentialKind, error) {
	c, _, err := s.store.CredentialByHash(ctx, ident.HashSecret(strings.TrimSpace(secret)))
	if err == nil && c.Kind != InviteCredential && c.Kind != SetupCredential {
		err = fault.New(fault.NotFound, "no invitation")
	}
	if fault.Is(err, fault.NotFound) {
		err = fault.New(fault.NotFound, "This link is unknown, used or expired. Ask for a new one; a portal "+
			"without an operator prints a new operator's link at its start.")
	}
	return c.Kind, err
}

// resetPath is the path of the page for a new password, to which the secret of a link is added.
const resetPath = "/reset?link="

func (s *Service) resetLink(ctx context.Context, a Account) (string, error) {
	if _, err := s.store.DeleteCredentials(ctx, a.ID, "", ResetCredential); err != nil {
		return "", err
	}
	secret, err := s.issueCredential(ctx, Credential{Kind: ResetCredential, AccountID: a.ID}, ident.LinkPrefix,
		resetLife)
	if err != nil {
		return "", err
	}
	return s.cfg.URL + resetPath + secret, nil
}

// MailReset sends a reset link to the account's mail address. The result does not reveal whether the
// account exists. It is an Unavailable fault if the portal sends no mail.
func (s *Service) MailReset(ctx context.Context, actor ident.Actor, name string) error {
	if s.cfg.Mailer == nil {
		return fault.New(fault.Unavailable, "This portal sends no mail. Ask its operator for a reset link.")
	}
	name = strings.ToLower(strings.TrimSpace(name))
	if wait, ok := s.loginsByName.Allow(guessKey(name, "mail")); !ok {
		return fault.Limited(wait, "Too many requests for this account. Wait a moment.")
	}
	if wait, ok := s.loginsByAddr.Allow(actor.Addr); !ok {
		return fault.Limited(wait, "Too many attempts from your address. Wait a moment and try again.")
	}
	// Run looks for the account, so that the work of an answer does not reveal whether it exists.
	select {
	case s.resets <- name:
		return nil
	default:
		return &fault.Error{Kind: fault.Unavailable, Safe: "Many mails wait to be sent. Try again in a minute.",
			RetryAfter: time.Minute}
	}
}

// maxMailedLinks is the number of unused reset links of an account, which live for resetLife. Requests for
// more are not mailed: the person has that many links in the mail box. Earlier links stay valid, because
// a stranger may ask for one and would void the links of the person.
const maxMailedLinks = 10

// Run sends the mails of MailReset and warns people of guesses at their passwords, until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	for {
		select {
		case name := <-s.guessed:
			a, err := s.store.AccountByName(ctx, name)
			if err == nil && !a.Disabled() {
				s.cfg.Notices.NotifyGuesses(ctx, a.ID)
			}
		case name := <-s.resets:
			if err := s.mailReset(ctx, name); err != nil {
				s.cfg.Log.Error("mail a reset link", "error", err)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// mailReset sends a reset link to the mail address of the account with a name, if there is one.
func (s *Service) mailReset(ctx context.Context, name string) error {
	a, err := s.store.AccountByName(ctx, name)
	if fault.Is(err, fault.NotFound) || err == nil && (a.Email == "" || a.Disabled()) {
		return nil
	}
	if err != nil {
		return err
	}
	links, err := s.store.ListCredentials(ctx, a.ID, ResetCredential)
	if err != nil || len(links) >= maxMailedLinks {
		return err
	}
	secret, err := s.issueCredential(ctx, Credential{Kind: ResetCredential, AccountID: a.ID}, ident.LinkPrefix, resetLife)
	if err != nil {
		return err
	}
	err = s.cfg.Mailer.Send(ctx, a.Email, "Set a new password", "A new password was requested for "+a.Name+" on "+s.cfg.URL+
		".\n\n"+s.cfg.URL+resetPath+secret+"\n\nThe link works once, for 24 hours. If it was not you, do nothing.\n")
	if err != nil { // a link that nobody got does not count
		return errors.Join(err, s.revokeSecret(ctx, secret))
	}
	return nil
}

// Reset sets a new password with the secret of a reset link, ends all sessions, and returns the account.
// A wrong secret is a NotFound fault.
func (s *Service) Reset(ctx context.Context, actor ident.Actor, secret, password string) (Account, error) {
	if wait, ok := s.loginsByAddr.Allow(actor.Addr); !ok {
		return Account{}, fault.Limited(wait, "Too many attempts from your address. Wait a moment and try again.")
	}
	hash := ident.HashSecret(strings.TrimSpace(secret))
	c, a, err := s.store.CredentialByHash(ctx, hash)
	if fault.Is(err, fault.NotFound) || err == nil && (c.Kind != ResetCredential || a.Disabled()) {
		return Account{}, fault.New(fault.NotFound, "This link is unknown, used or expired. Ask for a new one.")
	}
	if err != nil {
		return Account{}, err
	}
	var check fault.Check
	if err := CheckPassword(password, a.Name); err != nil {
		check.Field(false, "password", "%s", err)
	}
	if err := check.Err(); err != nil {
		return Account{}, err
	}
	return a, s.setPassword(ctx, actor, a.ID, password, "", hash)
}

// Invitation creates an invitation and returns its secret, which is not stored. label is a note for the
// operator. Only operators may call it.
func (s *Service) Invitation(ctx context.Context, actor ident.Actor, label string) (string, error) {
	if err := requireOperator(actor); err != nil {
		return "", err
	}
	if s.Policy() == Closed {
		return "", fault.New(fault.Conflict, "Nobody may sign up at this portal now, so an invitation would be of no "+
			"use. Change that under Admin, Settings, or by --accounts if a flag fixes it, or add people with `agentsite user add`.")
	}
	if len(label) > 100 {
		return "", &fault.Error{Kind: fault.Invalid, Safe: "The note is too long.",
			Fields: map[string]string{"label": "use at most 100 characters"}}
	}
	return s.issueCredential(ctx, Credential{Kind: InviteCredential, Label: label}, ident.InvitePrefix, inviteLife)
}

// Invitations returns the unused and unexpired invitations. Only operators may call it.
func (s *Service) Invitations(ctx context.Context, actor ident.Actor) ([]Credential, error) {
	if err := requireOperator(actor); err != nil {
		return nil, err
	}
	return s.store.ListCredentials(ctx, "", InviteCredential)
}

// RevokeInvitation deletes an unused invitation. Only operators may call it.
func (s *Service) RevokeInvitation(ctx context.Context, actor ident.Actor, id string) error {
	if err := requireOperator(actor); err != nil {
		return err
	}
	var ids []string
	var err error
	if id != "" { // for the store, an empty id means all invitations
		ids, err = s.store.DeleteCredentials(ctx, "", id, InviteCredential)
	}
	if err == nil && len(ids) == 0 {
		return fault.New(fault.NotFound, "There is no such invitation.")
	}
	return err
}
