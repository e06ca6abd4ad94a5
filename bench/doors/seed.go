package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"agentsite/bench/corpus"
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
	for i := range people {
		_, secret, err := corpus.AddPerson(db, fmt.Sprintf("person-%d", i), false)
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, secret)
	}
	return tokens, nil
}
