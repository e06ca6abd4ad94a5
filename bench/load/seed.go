package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"

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

// portal is a data folder that is filled while no portal runs on it.
type portal struct {
	dir    string
	people []account.Account
	tokens []string // API tokens of people
	rooms  []string // ids of conversations; room i has the members people[2i] and people[2i+1]
	// session is the session cookie of the last person, as name=value.
	session string
	agents  int
}

// seed creates a data folder and fills it through the store: accounts with a token each, a conversation
// for each pair of accounts, and agents.
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
			a, secret, err := corpus.AddPerson(db, fmt.Sprintf("person-%d", i), false)
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
			secret, err := corpus.AddCredential(db, p.people[people-1], account.SessionCredential, ident.SessionPrefix)
			if err != nil {
				return err
			}
			p.session = "agentsite-" + keys.ID() + "=" + secret
		}
		return p.list(db, agents)
	})
}

// list adds agents until the folder has n. The first person owns all of them.
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

// owners creates n accounts and returns the API token of each.
func owners(db *store.DB, n int) ([]string, error) {
	tokens := make([]string, n)
	return tokens, together(n, func(i int) (err error) {
		_, tokens[i], err = corpus.AddPerson(db, fmt.Sprintf("owner-%d", i), false)
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

// together calls f with 0 to n-1, up to 256 calls at once, so that the calls share commits. It stops at
// the first error.
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

// say appends n messages of about size bytes to a conversation, by its two members in turn.
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
