// Package account manages people: sign-up by policy, passwords, sessions, API tokens, invitations and
// reset links, and the cleanup when an account is disabled. It maps a presented secret to an
// ident.Actor. It does not depend on cookies, headers or SQL.
package account

import (
	"context"
	"time"

	"agentsite/internal/ident"
)

// Policy decides which visitors may sign up.
type Policy string

// Open lets all visitors sign up, Invite only holders of an invitation, Closed none. The operator's
// one-time link works under each.
const (
	Open   Policy = "open"
	Invite Policy = "invite"
	Closed Policy = "closed"
)

// Account is a person on this portal.
type Account struct {
	ID           string
	Name         string
	PasswordHash string
	Email        string
	Operator     bool
	DisabledAt   time.Time
	CreatedAt    time.Time
}

// Disabled reports whether the account is disabled: it cannot sign in or act.
func (a Account) Disabled() bool { return !a.DisabledAt.IsZero() }

// CredentialKind is the purpose of a secret.
type CredentialKind string

// The kinds of credentials. A guest session belongs to no account.
const (
	SessionCredential CredentialKind = "session"
	GuestCredential   CredentialKind = "guest"
	TokenCredential   CredentialKind = "token"
	ResetCredential   CredentialKind = "reset"
	InviteCredential  CredentialKind = "invite"
	SetupCredential   CredentialKind = "setup"
)

// Credential is a stored secret. Only its hash is stored.
type Credential struct {
	ID        string
	Hash      string
	Kind      CredentialKind
	AccountID string
	Label     string
	Scopes    []ident.Scope
	CreatedAt time.Time
	UsedAt    time.Time
	ExpiresAt time.Time
}

// Lifetimes of credentials. A session's lifetime counts from its last use, with the precision of
// touchAfter.
const (
	sessionLife  = 30 * 24 * time.Hour
	guestLife    = 30 * 24 * time.Hour
	resetLife    = 24 * time.Hour
	inviteLife   = 7 * 24 * time.Hour
	setupLife    = 365 * 24 * time.Hour
	defaultToken = 90 * 24 * time.Hour
	maxToken     = 366 * 24 * time.Hour
	touchAfter   = 15 * time.Minute
)

// Accounts stores people. Absent rows are NotFound faults, taken names Conflict faults.
type Accounts interface {
	// CreateAccount stores the account and takes its name. When spend is not empty, the credential with
	// that hash must exist unexpired and is used up in the same transaction.
	CreateAccount(ctx context.Context, a Account, spend string, kinds ...CredentialKind) error
	AccountByName(ctx context.Context, name string) (Account, error)
	AccountByID(ctx context.Context, id string) (Account, error)
	// ListAccounts returns accounts by name, after the given one.
	ListAccounts(ctx context.Context, after string, limit int) ([]Account, error)
	// SetDisabled disables (at not zero) or enables the account and, when
	// disabling, deletes its credentials in the same transaction.
	SetDisabled(ctx context.Context, id string, at time.Time, by ident.Actor) error
}

// Passwords changes the password of an account.
type Passwords interface {
	// SetPassword stores the hash and deletes the account's sessions, except the credential keep. With
	// spend, the reset link with that hash is used up.
	SetPassword(ctx context.Context, id, hash, keep, spend string) error
}

// Emails stores the mail addresses for reset links.
type Emails interface {
	SetEmail(ctx context.Context, id, email string) error
}

// Credentials stores secrets' hashes.
type Credentials interface {
	AddCredential(ctx context.Context, c Credential) error
	// CredentialByHash returns an unexpired credential and its account, which
	// is zero for guests, invitations and the setup link.
	CredentialByHash(ctx context.Context, hash string) (Credential, Account, error)
	// ListCredentials returns the credentials of an account ("" for those without one) and kind.
	ListCredentials(ctx context.Context, accountID string, kind CredentialKind) ([]Credential, error)
	// DeleteCredentials deletes by id, scoped by account; an empty id deletes every one of that kind.
	// It returns the ids that it deleted.
	DeleteCredentials(ctx context.Context, accountID, id string, kind CredentialKind) ([]string, error)
	// Touch records a use and moves the expiry. Readers see the change at once. It is written to disk a
	// moment later, and a crash may lose it.
	Touch(ctx context.Context, hash string, used, expires time.Time) error
}

// Store holds all data of the service.
type Store interface {
	Accounts
	Passwords
	Emails
	Credentials
	// CountOperators counts operator accounts that are not disabled.
	CountOperators(ctx context.Context) (int, error)
}

// Mailer sends mail; nil if the operator configured none.
type Mailer interface {
	Send(ctx context.Context, to, subject, text string) error
}
