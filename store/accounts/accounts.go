// Package accounts stores accounts and their credentials: sessions, tokens, invitations, reset links.
package accounts

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"

	"agentsite/internal/account"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/store/agents"
	"agentsite/store/engine"
	"agentsite/store/quotas"
	"agentsite/store/rows"
)

// Accounts stores accounts and their credentials. It implements account.Store.
type Accounts struct {
	db          engine.DB
	agents      *agents.Agents
	quotas      *quotas.Quotas
	credentials *engine.Cache[credentialRow] // keyed by the credential's hash
	touches     touches
}

var _ account.Store = (*Accounts)(nil)

func New(db engine.DB, agents *agents.Agents, quotas *quotas.Quotas) *Accounts {
	return &Accounts{db: db, agents: agents, quotas: quotas, credentials: engine.NewCache[credentialRow](0)}
}

type accountRow struct {
	ID           string `db:"id"`
	Name         string `db:"name"`
	PasswordHash string `db:"password_hash"`
	Email        string `db:"email"`
	Operator     bool   `db:"operator"`
	DisabledAt   int64  `db:"disabled_at"`
	CreatedAt    int64  `db:"created_at"`
}

func (r accountRow) account() account.Account {
	return account.Account{ID: r.ID, Name: r.Name, PasswordHash: r.PasswordHash, Email: r.Email, Operator: r.Operator,
		DisabledAt: clock.FromMilli(r.DisabledAt), CreatedAt: clock.FromMilli(r.CreatedAt)}
}

const accountColumns = "id, name, password_hash, email, operator, disabled_at, created_at"

// CreateAccount implements account.Accounts. A credential that cannot be used up is a NotFound fault.
func (d *Accounts) CreateAccount(ctx context.Context, a account.Account, spend string,
	kinds ...account.CredentialKind) error {
	return d.db.Write(ctx, func(t engine.Tx) error {
		if spend != "" {
			if err := d.spendCredential(t, spend, "", kinds...); err != nil {
				return err
			}
		}
		at := clock.Milli(a.CreatedAt)
		if err := d.agents.TakeName(t, a.Name, "account", a.ID, at); err != nil {
			return err
		}
		_, err := t.Exec(`INSERT INTO accounts (id, name, password_hash, email, operator, created_at) VALUES (?, ?, ?, ?, ?, ?)`,
			a.ID, a.Name, a.PasswordHash, a.Email, a.Operator, at)
		return err
	})
}

// spendCredential deletes a credential that may be used once. An unknown, used or expired one, or one of
// another account or kind, is a NotFound fault.
func (d *Accounts) spendCredential(t engine.Tx, hash, accountID string, kinds ...account.CredentialKind) error {
	var kind string
	err := t.Get(&kind, `SELECT kind FROM credentials WHERE hash = ? AND expires_at > ? AND COALESCE(account_id, '') = ?`,
		hash, clock.Milli(clock.Now()), accountID)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if err != nil || !slices.Contains(kinds, account.CredentialKind(kind)) {
		return fault.New(fault.NotFound, "This link is unknown, used or expired. Ask for a new one.")
	}
	d.credentials.Invalidate(t)
	_, err = t.Exec(`DELETE FROM credentials WHERE hash = ?`, hash)
	return err
}

// InvalidateCredentials drops the cached credentials, for a transaction that deletes some.
func (d *Accounts) InvalidateCredentials(t engine.Tx) { d.credentials.Invalidate(t) }

// AccountByName implements account.Accounts. It also finds disabled accounts, but none that was removed:
// those have no password hash.
func (d *Accounts) AccountByName(ctx context.Context, name string) (account.Account, error) {
	var r accountRow
	err := d.db.Get(ctx, &r, `SELECT `+accountColumns+` FROM accounts WHERE name = ? AND password_hash <> ''`, name)
	return r.account(), engine.MapError(err)
}

// AccountByID implements account.Accounts. It also finds disabled accounts.
func (d *Accounts) AccountByID(ctx context.Context, id string) (account.Account, error) {
	var r accountRow
	err := d.db.Get(ctx, &r, `SELECT `+accountColumns+` FROM accounts WHERE id = ?`, id)
	return r.account(), engine.MapError(err)
}

// ListAccounts implements account.Accounts. Disabled accounts are included, removed ones are not.
func (d *Accounts) ListAccounts(ctx context.Context, after string, limit int) ([]account.Account, error) {
	var rows []accountRow
	err := d.db.List(ctx, &rows, `SELECT `+accountColumns+` FROM accounts WHERE name > ? AND password_hash <> ''
		ORDER BY name LIMIT ?`, after, limit)
	out := make([]account.Account, len(rows))
	for i, r := range rows {
		out[i] = r.account()
	}
	return out, engine.MapError(err)
}

// SetDisabled implements account.Accounts. It adds the decision of by to the operators' log.
func (d *Accounts) SetDisabled(ctx context.Context, id string, at time.Time, by ident.Actor) error {
	return d.db.Write(ctx, func(t engine.Tx) error {
		d.credentials.Invalidate(t)
		d.agents.AgentsChanged(t) // Agents of disabled accounts are hidden.
		if _, err := t.Exec(`UPDATE accounts SET disabled_at = ? WHERE id = ?`, clock.Milli(at), id); err != nil {
			return err
		}
		act := "account.enable"
		if !at.IsZero() {
			act = "account.disable"
			if _, err := t.Exec(`DELETE FROM credentials WHERE account_id = ?`, id); err != nil {
				return err
			}
		}
		return rows.AppendAudit(t, by, act, id, "")
	})
}

// CountOperators implements account.Store. The service asks before it disables one, so that one is left.
func (d *Accounts) CountOperators(ctx context.Context) (int, error) {
	var n int
	err := d.db.Get(ctx, &n, `SELECT COUNT(*) FROM accounts WHERE operator = 1 AND disabled_at = 0`)
	return n, engine.MapError(err)
}

// SetPassword implements account.Passwords. It also deletes all reset links of the account.
func (d *Accounts) SetPassword(ctx context.Context, id, hash, keep, spend string) error {
	return d.db.Write(ctx, func(t engine.Tx) error {
		d.credentials.Invalidate(t)
		if spend != "" {
			if err := d.spendCredential(t, spend, id, account.ResetCredential); err != nil {
				return err
			}
		}
		if _, err := t.Exec(`UPDATE accounts SET password_hash = ? WHERE id = ?`, hash, id); err != nil {
			return err
		}
		_, err := t.Exec(`DELETE FROM credentials WHERE account_id = ? AND kind IN ('session', 'reset') AND id <> ?`,
			id, keep)
		return err
	})
}

// SetEmail implements account.Emails. "" removes the address.
func (d *Accounts) SetEmail(ctx context.Context, id, email string) error {
	return d.db.Write(ctx, func(t engine.Tx) error {
		_, err := t.Exec(`UPDATE accounts SET email = ? WHERE id = ?`, email, id)
		return err
	})
}

// AddCredential implements account.Credentials. Only the hash of the secret is stored.
func (d *Accounts) AddCredential(ctx context.Context, c account.Credential) error {
	return d.db.Write(ctx, func(t engine.Tx) error { return d.insertCredential(t, c) })
}

func (d *Accounts) insertCredential(t engine.Tx, c account.Credential) error {
	switch c.Kind {
	case account.TokenCredential:
		if err := d.quotas.CheckRoom(t, string(ident.Person), c.AccountID, int64(len(c.Label))+quotas.RowBytes); err != nil {
			return err
		}
	case account.GuestCredential:
		if err := d.quotas.CheckGuests(); err != nil {
			return err
		}
		if err := quotas.PlaceGuest(t, c.ID, c.Addr); err != nil {
			return err
		}
	}
	_, err := t.Exec(`INSERT INTO credentials (id, hash, kind, account_id, label, scopes, parent, created_at, expires_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		c.ID, c.Hash, string(c.Kind), rows.NullText(c.AccountID), c.Label, joinScopes(c.Scopes), rows.NullText(c.Parent),
		clock.Milli(c.CreatedAt), clock.Milli(c.ExpiresAt))
	return err
}

// AddToken implements account.Credentials.
func (d *Accounts) AddToken(ctx context.Context, c account.Credential, maker string, most int) error {
	return d.db.Write(ctx, func(t engine.Tx) error {
		if maker != "" {
			var made credentialRow
			err := t.Get(&made, `SELECT kind, expires_at FROM credentials WHERE id = ? AND account_id = ?`, maker, c.AccountID)
			isToken := made.Kind == string(account.TokenCredential)
			switch {
			case errors.Is(err, sql.ErrNoRows), isToken && made.ExpiresAt <= clock.Milli(clock.Now()):
				return fault.New(fault.Unauthenticated, "Your session or token has ended. Sign in again, or use another token.")
			case err != nil:
				return err
			case isToken:
				c.Parent = maker
				if ends := clock.FromMilli(made.ExpiresAt); ends.Before(c.ExpiresAt) {
					c.ExpiresAt = ends
				}
			}
		}
		var have int
		if err := t.Get(&have, `SELECT COUNT(*) FROM credentials WHERE account_id = ? AND kind = 'token' AND expires_at > ?`,
			c.AccountID, clock.Milli(clock.Now())); err != nil {
			return err
		}
		if have >= most {
			return fault.New(fault.Conflict, "This account has %d tokens already, the most that it may have. Revoke one first.",
				have)
		}
		return d.insertCredential(t, c)
	})
}

// AddSession implements account.Credentials. The sessions are counted in the transaction, so that racing
// sign-ins keep the bound.
func (d *Accounts) AddSession(ctx context.Context, c account.Credential, most int) ([]string, error) {
	var ended []string
	err := d.db.Write(ctx, func(t engine.Tx) error {
		ended = nil
		if err := d.insertCredential(t, c); err != nil {
			return err
		}
		// Sessions that were never used count from their creation.
		if err := t.List(&ended, `SELECT id FROM credentials WHERE account_id = ? AND kind = 'session' AND id <> ?
			ORDER BY CASE WHEN used_at > created_at THEN used_at ELSE created_at END DESC, id DESC LIMIT 1000 OFFSET ?`,
			c.AccountID, c.ID, most-1); err != nil || len(ended) == 0 {
			return err
		}
		d.credentials.Invalidate(t)
		for _, id := range ended {
			if _, err := t.Exec(`DELETE FROM credentials WHERE id = ?`, id); err != nil {
				return err
			}
		}
		return nil
	})
	return ended, err
}

func joinScopes(scopes []ident.Scope) string {
	parts := make([]string, len(scopes))
	for i, s := range scopes {
		parts[i] = string(s)
	}
	return strings.Join(parts, " ")
}

func splitScopes(s string) []ident.Scope {
	var out []ident.Scope
	for _, p := range strings.Fields(s) {
		out = append(out, ident.Scope(p))
	}
	return out
}

type credentialRow struct {
	ID        string `db:"id"`
	Hash      string `db:"hash"`
	Kind      string `db:"kind"`
	AccountID string `db:"account_id"`
	Label     string `db:"label"`
	Scopes    string `db:"scopes"`
	Parent    string `db:"parent"`
	CreatedAt int64  `db:"created_at"`
	UsedAt    int64  `db:"used_at"`
	ExpiresAt int64  `db:"expires_at"`

	Name         string `db:"name"`
	PasswordHash string `db:"password_hash"`
	Operator     bool   `db:"operator"`
	DisabledAt   int64  `db:"disabled_at"`
}

// with returns the row as changed by a use that is not on disk yet; waits is false for none.
func (r credentialRow) with(use touch, waits bool) credentialRow {
	if waits {
		r.UsedAt, r.ExpiresAt = use.used, use.expires
	}
	return r
}

func (r credentialRow) credential() account.Credential {
	return account.Credential{ID: r.ID, Hash: r.Hash, Kind: account.CredentialKind(r.Kind), AccountID: r.AccountID,
		Label:  r.Label,
		Scopes: splitScopes(r.Scopes), Parent: r.Parent, CreatedAt: clock.FromMilli(r.CreatedAt), UsedAt: clock.FromMilli(r.UsedAt),
		ExpiresAt: clock.FromMilli(r.ExpiresAt)}
}

func (r credentialRow) owner() account.Account {
	return account.Account{ID: r.AccountID, Name: r.Name, PasswordHash: r.PasswordHash, Operator: r.Operator,
		DisabledAt: clock.FromMilli(r.DisabledAt)}
}

// CredentialByHash implements account.Credentials. It is cached, because every request with a session or
// token needs it.
func (d *Accounts) CredentialByHash(ctx context.Context, hash string) (account.Credential, account.Account, error) {
	now := clock.Milli(clock.Now())
	use, touched := d.touches.touchOf(hash)
	r, generation, ok := d.credentials.Get(hash)
	if r := r.with(use, touched); ok && r.ExpiresAt > now {
		return r.credential(), r.owner(), nil
	}
	after := now
	if touched && use.expires > now {
		after = 0 // The row may still have the expiry from before the use, so accept an expired one.
	}
	err := d.db.Get(ctx, &r, `SELECT c.id, c.hash, c.kind, COALESCE(c.account_id, '') AS account_id, c.label, c.scopes, c.created_at, c.used_at, c.expires_at,
		COALESCE(a.name, '') AS name, COALESCE(a.password_hash, '') AS password_hash, COALESCE(a.operator, 0) AS operator, COALESCE(a.disabled_at, 0) AS disabled_at
		FROM credentials c LEFT JOIN accounts a ON a.id = c.account_id
		WHERE c.hash = ? AND c.expires_at > ?`, hash, after)
	if err != nil {
		return account.Credential{}, account.Account{}, engine.MapError(err)
	}
	d.credentials.Put(hash, r, generation)
	if r = r.with(use, touched); r.ExpiresAt <= now {
		return account.Credential{}, account.Account{}, engine.MapError(sql.ErrNoRows)
	}
	return r.credential(), r.owner(), nil
}

// ListCredentials implements account.Credentials. It leaves out expired ones and returns at most 1,000.
func (d *Accounts) ListCredentials(ctx context.Context, accountID string,
	kind account.CredentialKind) ([]account.Credential, error) {
	now := clock.Milli(clock.Now())
	var found []credentialRow
	err := d.db.List(ctx, &found, `SELECT id, hash, kind, COALESCE(account_id, '') AS account_id, label, scopes, COALESCE(parent, '') AS parent, created_at, used_at, expires_at
		FROM credentials WHERE account_id IS NOT DISTINCT FROM ? AND kind = ? AND expires_at > ? ORDER BY id LIMIT 1000`,
		rows.NullText(accountID), string(kind), now)
	out := make([]account.Credential, 0, len(found))
	for _, r := range found {
		if r = r.with(d.touches.touchOf(r.Hash)); r.ExpiresAt > now {
			out = append(out, r.credential())
		}
	}
	return out, engine.MapError(err)
}

// DeleteCredentials implements account.Credentials. It also deletes expired credentials of all accounts.
func (d *Accounts) DeleteCredentials(ctx context.Context, accountID, id string, kind account.CredentialKind) ([]string,
	error) {
	var gone []string
	err := d.db.Write(ctx, func(t engine.Tx) error {
		gone = nil
		d.credentials.Invalidate(t)
		if err := t.List(&gone, `WITH RECURSIVE ended (id) AS (
			SELECT id FROM credentials WHERE account_id IS NOT DISTINCT FROM ? AND kind = ? AND (? = '' OR id = ?)
			UNION SELECT c.id FROM credentials c JOIN ended ON c.parent = ended.id) SELECT id FROM ended`,
			rows.NullText(accountID), string(kind), id, id); err != nil {
			return err
		}
		for _, g := range gone {
			if _, err := t.Exec(`DELETE FROM credentials WHERE id = ?`, g); err != nil {
				return err
			}
		}
		_, err := t.Exec(`DELETE FROM credentials WHERE expires_at <= ?`, clock.Milli(clock.Now()))
		return err
	})
	return gone, err
}
