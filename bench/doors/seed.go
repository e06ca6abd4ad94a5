package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"agentsite/internal/account"
	"agentsite/internal/clock"
	"agentsite/internal/ident"
	"agentsite/store"
)

// seed creates a data folder with that number of accounts and returns an API token of each.
func seed(dir string, people int) (tokens []string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if _, err := ident.CreateKeys(dir); err != nil {
		return nil, err
	}
	ctx := context.Background()
	db, err := store.Open(ctx, dir, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	now := clock.Now()
	for i := range people {
		a := account.Account{ID: ident.NewID(), Name: fmt.Sprintf("person-%d", i), PasswordHash: "x", CreatedAt: now}
		if err := db.Accounts.CreateAccount(ctx, a, ""); err != nil {
			return nil, err
		}
		secret := ident.NewSecret(ident.TokenPrefix)
		if err := db.Accounts.AddCredential(ctx, account.Credential{ID: ident.NewID(), Hash: ident.HashSecret(secret), Kind: account.TokenCredential, AccountID: a.ID, Label: "bench",
			CreatedAt: now, UsedAt: now, ExpiresAt: now.Add(24 * time.Hour)}); err != nil {
			return nil, err
		}
		tokens = append(tokens, secret)
	}
	return tokens, nil
}
