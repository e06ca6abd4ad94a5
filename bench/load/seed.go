package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/bench/corpus"
	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/store"
)

// portal is a data folder that was filled before a portal runs on it.
type portal struct {
	dir    string
	people []account.Account
	tokens []string // of people
	rooms  []string // conversations: room i is of the people 2i and 2i+1
}

// seed fills a new folder through the store, without a portal: people with a
// token each, conversations of two of them, agents.
func seed(dir string, people, agents int) (*portal, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	p := &portal{dir: dir}
	if _, err := ident.CreateKeys(dir); err != nil {
		return nil, err
	}
	return p, p.with(func(db *store.DB) error {
		ctx := context.Background()
		for i := range people {
			a := account.Account{ID: ident.NewID(), Name: fmt.Sprintf("person-%d", i), PasswordHash: "x", CreatedAt: clock.Now()}
			if err := db.CreateAccount(ctx, a, ""); err != nil {
				return err
			}
			secret := ident.NewSecret(ident.TokenPrefix)
			c := account.Credential{ID: ident.NewID(), Hash: ident.HashSecret(secret), Kind: account.TokenCredential, AccountID: a.ID, Label: "bench",
				CreatedAt: clock.Now(), UsedAt: clock.Now(), ExpiresAt: clock.Now().Add(24 * time.Hour)}
			if err := db.AddCredential(ctx, c); err != nil {
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
			if err := db.CreateConversation(ctx, room, nil); err != nil {
				return err
			}
			p.rooms = append(p.rooms, room.ID)
		}
		return together(agents, func(i int) error {
			a := corpus.Agent(i)
			a.OwnerID, a.OwnerName = p.people[0].ID, p.people[0].Name
			return db.CreateAgent(ctx, a, nil)
		})
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
		_, err := db.Append(context.Background(), chat.Post{Message: chat.Message{ConversationID: p.rooms[room], ID: ident.NewID(), ClientID: ident.NewID(),
			Sender: chat.Sender{Kind: "person", ID: a.ID, Handle: a.Name}, Kind: chat.Text, Parts: []task.Part{task.TextPart(texts[i%len(texts)])}, CreatedAt: clock.Now()}})
		return err
	})
}

// size is how many bytes the database and its WAL have.
func (p *portal) size() (db, wal int64) {
	if st, err := os.Stat(filepath.Join(p.dir, store.FileName)); err == nil {
		db = st.Size()
	}
	if st, err := os.Stat(filepath.Join(p.dir, store.FileName+"-wal")); err == nil {
		wal = st.Size()
	}
	return db, wal
}
