package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"agentsite/bench/corpus"
	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/ident"
	"agentsite/store"
)

// crew is the number of accounts, each with a token. With so many in turn none reaches the limit of
// messages of one account.
const crew = 16

// data is a data folder that is filled while no portal runs on it.
type data struct {
	dir    string
	people []account.Account
	tokens []string
	big    string   // id of the conversation with all accounts as members
	rooms  []string // ids of conversations of two: rooms[i] has the accounts i and i+1 as members
}

func seed(dir string, rooms int) (d *data, err error) {
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
	d = &data{dir: dir}
	now := clock.Now()
	for i := range crew {
		a, secret, err := corpus.AddPerson(db, fmt.Sprintf("person-%d", i), false)
		if err != nil {
			return nil, err
		}
		d.people, d.tokens = append(d.people, a), append(d.tokens, secret)
	}
	open := func(people ...account.Account) (string, error) {
		c := chat.Conversation{ID: ident.NewID(), Title: "bench", CreatedAt: now, UpdatedAt: now, Settings: chat.DefaultSettings}
		for _, p := range people {
			c.Members = append(c.Members, chat.Member{Kind: "person", ID: p.ID, Handle: p.Name, Role: chat.RoleOwner})
		}
		return c.ID, db.Chat.CreateConversation(ctx, c, nil, nil)
	}
	if d.big, err = open(d.people...); err != nil {
		return nil, err
	}
	for i := range rooms {
		id, err := open(d.people[i%crew], d.people[(i+1)%crew])
		if err != nil {
			return nil, err
		}
		d.rooms = append(d.rooms, id)
	}
	return d, nil
}

// live returns the place of reader i of a room.
func (d *data) live(room string, i int) place {
	return place{"/api/v1/conversations/" + room + "/live?after=1000000000", d.tokens[i%crew]}
}

func messages(room string) string { return "/api/v1/conversations/" + room + "/messages" }
