// Package account is people: sign-up by policy, passwords, sessions, API
// tokens, invitations and reset links, and what ends when an account is
// disabled. It turns a secret somebody presents into an ident.Actor. It knows
// nothing of cookies, headers or SQL.
package account

import (
	"context"
	"time"

	"agentsite/internal/ident"
)

// Policy says who may sign up.
type Policy string

// Open lets everybody sign up, Invite whoever holds an invitation, Closed
// nobody. The operator's one-time link works under each.
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

// Disabled reports whether the account may do nothing any more.
func (a Account) Disabled() bool { return !a.DisabledAt.IsZero() }

// CredentialKind says what a secret is good for.
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

// Credential is a stored secret: only its hash is kept.
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

// Lifetimes of credentials. A session's is counted from its last use, with
// the precision of touchAfter.
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

// Accounts stores people. Absent rows are NotFound faults, taken names
// Conflict faults.
type Accounts interface {
	// CreateAccount stores the account and takes its name; when spend is not
	// empty, the credential with that hash is used up in the same
	// transaction and must exist unexpired.
	CreateAccount(ctx context.Context, a Account, spend string, kinds ...CredentialKind) error
	AccountByName(ctx context.Context, name string) (Account, error)
	AccountByID(ctx context.Context, id string) (Account, error)
	// ListAccounts returns accounts by name, after the given one.
	ListAccounts(ctx context.Context, after string, limit int) ([]Account, error)
	// SetDisabled disables (at not zero) or enables the account and, when
	// disabling, deletes its credentials in the same transaction.
	SetDisabled(ctx context.Context, id string, at time.Time, by ident.Actor) error
}

// Passwords changes what proves an account.
type Passwords interface {
	// SetPassword stores the hash and deletes the account's sessions, except
	// the credential keep; with spend, the reset link of that hash is used up.
	SetPassword(ctx context.Context, id, hash, keep, spend string) error
}

// Emails stores where reset links may be sent.
type Emails interface {
	SetEmail(ctx context.Context, id, email string) error
}

// Credentials stores secrets' hashes.
type Credentials interface {
	AddCredential(ctx context.Context, c Credential) error
	// CredentialByHash returns an unexpired credential and its account, which
	// is zero for guests, invitations and the setup link.
	CredentialByHash(ctx context.Context, hash string) (Credential, Account, error)
	// ListCredentials returns those of the account ("" for none) and kind.
	ListCredentials(ctx context.Context, accountID string, kind CredentialKind) ([]Credential, error)
	// DeleteCredentials deletes by id, scoped by account; an empty id deletes
	// every one of that kind. It returns the ids it deleted.
	DeleteCredentials(ctx context.Context, accountID, id string, kind CredentialKind) ([]string, error)
	// Touch notes a use and moves the expiry. Whoever asks knows of it at
	// once; the disk does a moment later, and a crash may forget it.
	Touch(ctx context.Context, hash string, used, expires time.Time) error
}

// Store is all that the service keeps.
type Store interface {
	Accounts
	Passwords
	Emails
	Credentials
	// CountOperators counts accounts that run the portal and are not disabled.
	CountOperators(ctx context.Context) (int, error)
}

// Mailer sends mail; nil where the operator configured none.
type Mailer interface {
	Send(ctx context.Context, to, subject, text string) error
}
