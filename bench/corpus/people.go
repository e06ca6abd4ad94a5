package corpus

import (
	"context"
	"time"

	"agentsite/internal/account"
	"agentsite/internal/clock"
	"agentsite/internal/ident"
	"agentsite/store"
)

// AddPerson creates an account and returns it with a token that has all rights of the account. The
// account has no password.
func AddPerson(db *store.DB, name string, operator bool) (a account.Account, token string, err error) {
	a = account.Account{ID: ident.NewID(), Name: name, PasswordHash: "x", Operator: operator, CreatedAt: clock.Now()}
	if err = db.Accounts.CreateAccount(context.Background(), a, ""); err == nil {
		token, err = AddCredential(db, a, account.TokenCredential, ident.TokenPrefix)
	}
	return a, token, err
}

// AddCredential creates a credential of an account for a day and returns its secret, which begins with
// prefix.
func AddCredential(db *store.DB, a account.Account, kind account.CredentialKind, prefix string) (secret string, err error) {
	secret = ident.NewSecret(prefix)
	return secret, db.Accounts.AddCredential(context.Background(), account.Credential{ID: ident.NewID(), Hash: ident.HashSecret(secret),
		Kind: kind, AccountID: a.ID, Label: "bench", CreatedAt: clock.Now(), UsedAt: clock.Now(), ExpiresAt: clock.Now().Add(24 * time.Hour)})
}
