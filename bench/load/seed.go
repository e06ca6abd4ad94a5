package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"agentsite/bench/corpus"
	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/store"
)

// portal is a data folder, filled before a portal runs on it.
type portal struct {
	dir    string
	people []account.Account
	tokens []string // of people
	rooms  []string // conversations: room i is of the people 2i and 2i+1
	// session is the cookie of the last person.
	session string
	agents  int
}

// seed fills a new folder through the store: people with a token each, a
// conversation for each two of them, and agents.
func seed(dir string, people, agents int) (*portal, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	p := &portal{dir: dir}
	keys, err := ident.CreateKeys(dir)
	if err != nil {
		return nil, err
	}
	return p, p.with(func(db *store.DB) error {
		ctx := context.Background()
		for i := range people {
			a, secret, err := person(db, fmt.Sprintf("person-%d", i), false)
			if err != nil {
				return err
			}
			p.people, p.tokens = append(p.people, a), append(p.tokens, secret)
			if i%2 == 0 {
				continue
			}
			room := chat.Conversation{ID: ident.NewID(), Title: "bench", CreatedAt: clock.Now()}
			for _, m := range p.people[i-1 : i+1] {
				room.Members = append(room.Members, chat.Member{Kind: "person", ID: m.ID, Handle: m.Name, Role: "owner"})
			}
			if err := db.Chat.CreateConversation(ctx, room, nil, nil); err != nil {
				return err
			}
			p.rooms = append(p.rooms, room.ID)
		}
		if people > 0 {
			secret, err := credential(db, p.people[people-1], account.SessionCredential, ident.SessionPrefix)
			if err != nil {
				return err
			}
			p.session = "agentsite-" + keys.ID() + "=" + secret
		}
		return p.list(db, agents)
	})
}

// person makes an account and a token with all of its rights.
func person(db *store.DB, name string, operator bool) (a account.Account, token string, err error) {
	a = account.Account{ID: ident.NewID(), Name: name, PasswordHash: "x", Operator: operator, CreatedAt: clock.Now()}
	if err = db.Accounts.CreateAccount(context.Background(), a, ""); err == nil {
		token, err = credential(db, a, account.TokenCredential, ident.TokenPrefix)
	}
	return a, token, err
}

func credential(db *store.DB, a account.Account, kind account.CredentialKind, prefix string) (secret string, err error) {
	secret = ident.NewSecret(prefix)
	return secret, db.Accounts.AddCredential(context.Background(), account.Credential{ID: ident.NewID(), Hash: ident.HashSecret(secret), Kind: kind, AccountID: a.ID, Label: "bench",
		CreatedAt: clock.Now(), UsedAt: clock.Now(), ExpiresAt: clock.Now().Add(24 * time.Hour)})
}

// list adds agents until there are n, all of the first person.
func (p *portal) list(db *store.DB, n int) error {
	const batch = 1000
	var group errgroup.Group
	group.SetLimit(3)
	for from := p.agents; from < n; from += batch {
		group.Go(func() error {
			list := make([]hub.Agent, min(batch, n-from))
			for i := range list {
				list[i] = corpus.Agent(from + i)
				list[i].OwnerID, list[i].OwnerName = p.people[0].ID, p.people[0].Name
			}
			return db.Hub.CreateAgents(context.Background(), list)
		})
	}
	p.agents = max(p.agents, n)
	return group.Wait()
}

// owners makes n accounts and returns the token of each.
func owners(db *store.DB, n int) ([]string, error) {
	tokens := make([]string, n)
	return tokens, together(n, func(i int) (err error) {
		_, tokens[i], err = person(db, fmt.Sprintf("owner-%d", i), false)
		return err
	})
}

func (p *portal) with(f func(*store.DB) error) error {
	db, err := store.Open(context.Background(), p.dir, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return errors.Join(f(db), db.Close())
}

// together makes n calls, many at once, so that they share commits.
func together(n int, f func(i int) error) error {
	var (
		wg   sync.WaitGroup
		next atomic.Int64
		fail atomic.Pointer[error]
	)
	for range 256 {
		wg.Go(func() {
			for fail.Load() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := f(i); err != nil {
					fail.Store(&err)
				}
			}
		})
	}
	wg.Wait()
	if err := fail.Load(); err != nil {
		return *err
	}
	return nil
}

// say puts n messages of about size bytes into a conversation.
func (p *portal) say(db *store.DB, room, n, size int) error {
	texts := make([]string, 64)
	for i := range texts {
		texts[i] = corpus.Text(i, size)
	}
	return together(n, func(i int) error {
		a := p.people[2*room+i%2]
		_, err := db.Chat.Append(context.Background(), chat.Post{Message: chat.Message{ConversationID: p.rooms[room], ID: ident.NewID(), ClientID: ident.NewID(),
			Sender: chat.Sender{Kind: "person", ID: a.ID, Handle: a.Name}, Kind: chat.Text, Parts: []task.Part{task.TextPart(texts[i%len(texts)])}, CreatedAt: clock.Now()}})
		return err
	})
}
