// Package account manages people: sign-up by policy, passwords, sessions, API tokens, invitations and
// reset links, and the cleanup when an account is disabled. It maps a presented secret to an
// ident.Actor. It does not depend on cookies, headers or SQL.
package account

import (
	"context"
	"time"

	"agentsite/internal/ident"
)

// Policy decides which visitors may create an account.
type Policy string

// Open admits all visitors, Invite only those with an invitation, Closed none. The one-time link for the
// first operator works with every policy.
const (
	Open   Policy = "open"
	Invite Policy = "invite"
	Closed Policy = "closed"
)

// Account is a person's account on this portal.
type Account struct {
	ID           string
	Name         string
	PasswordHash string
	Email        string
	Operator     bool
	DisabledAt   time.Time
	CreatedAt    time.Time
}

// Disabled reports whether the account is disabled. It then cannot sign in, and its credentials do not
// exist any more.
func (a Account) Disabled() bool { return !a.DisabledAt.IsZero() }

// CredentialKind is the purpose of a secret; a secret is only accepted for its purpose.
type CredentialKind string

// The kinds of credentials. Only GuestCredential belongs to a visitor without an account.
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
	// Parent is the id of the token that made a token. The token is deleted with it.
	Parent    string
	CreatedAt time.Time
	UsedAt    time.Time
	ExpiresAt time.Time
	// Addr is the client's address when a guest session began. Its network is stored, to count the bytes
	// of guests; it is "" for other kinds, and in credentials that were read.
	Addr string
}

// Lifetimes of credentials. A session's lifetime restarts with each use; touchAfter is the precision, so
// that not every request writes.
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

// Accounts stores accounts. A missing account is a NotFound fault, a taken name a Conflict fault.
type Accounts interface {
	// CreateAccount stores the account and takes its name. If spend is not empty, the credential with
	// that hash must be unexpired and of one of kinds, and is deleted in the same transaction.
	CreateAccount(ctx context.Context, a Account, spend string, kinds ...CredentialKind) error
	AccountByName(ctx context.Context, name string) (Account, error)
	AccountByID(ctx context.Context, id string) (Account, error)
	// ListAccounts returns at most limit accounts ordered by name, beginning after the given name.
	ListAccounts(ctx context.Context, after string, limit int) ([]Account, error)
	// SetDisabled disables (at not zero) or enables the account and, when
	// disabling, deletes its credentials in the same transaction.
	SetDisabled(ctx context.Context, id string, at time.Time, by ident.Actor) error
}

// Passwords stores the password hash of an account.
type Passwords interface {
	// SetPassword stores the password hash and deletes the account's sessions, except the credential
	// with id keep. If spend is not empty, the reset link with that hash is deleted in the same
	// transaction.
	SetPassword(ctx context.Context, id, hash, keep, spend string) error
}

// Emails stores the mail address of an account, to which reset links are sent.
type Emails interface {
	SetEmail(ctx context.Context, id, email string) error
}

// Credentials stores hashes of secrets.
type Credentials interface {
	AddCredential(ctx context.Context, c Credential) error
	// AddToken stores an API token. maker is the id of the credential that makes it, "" on the command
	// line; a missing one is an Unauthenticated fault. If the maker is a token, it becomes the Parent and
	// the token ends no later than it. With most unexpired tokens of the account there is a Conflict
	// fault.
	AddToken(ctx context.Context, c Credential, maker string, most int) error
	// AddSession stores a session and deletes the least recently used ones of the account beyond most.
	// It returns the ids of the deleted ones.
	AddSession(ctx context.Context, c Credential, most int) ([]string, error)
	// CredentialByHash returns an unexpired credential and its account, which
	// is zero for guests, invitations and the setup link.
	CredentialByHash(ctx context.Context, hash string) (Credential, Account, error)
	// ListCredentials returns the credentials of that kind of an account, or those without an account if
	// accountID is "".
	ListCredentials(ctx context.Context, accountID string, kind CredentialKind) ([]Credential, error)
	// DeleteCredentials deletes the credential id of an account, and the tokens that it made; an empty id
	// means all of that kind. It returns the ids of the deleted ones.
	DeleteCredentials(ctx context.Context, accountID, id string, kind CredentialKind) ([]string, error)
	// Touch stores the time of the last use and a new expiry. Readers see the change at once; it is
	// written to disk a moment later and may be lost in a crash.
	Touch(ctx context.Context, hash string, used, expires time.Time) error
}

// Store is the storage port of Service.
type Store interface {
	Accounts
	Passwords
	Emails
	Credentials
	// CountOperators counts operator accounts that are not disabled.
	CountOperators(ctx context.Context) (int, error)
}

// Notices warns a person of many wrong passwords for the account within minutes. It may take as long as a
// write of the database.
type Notices interface {
	NotifyGuesses(ctx context.Context, accountID string)
}

// Mailer sends mail. A nil Mailer means that the operator configured no mail server.
type Mailer interface {
	Send(ctx context.Context, to, subject, text string) error
}
