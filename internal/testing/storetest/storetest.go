// Package storetest gives tests a real database and fills it as the services would. Every function ends
// the test when it fails.
package storetest

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/testing/pgtest"
	"agentsite/store"
	"agentsite/store/accounts"
	"agentsite/store/chats"
	"agentsite/store/hooks"
	"agentsite/store/postgres"
)

// DB is the database of a portal with the methods of all its stores, so that one value implements every
// store port of the services.
type DB struct {
	*store.DB
	*accounts.Accounts
	*store.Hub
	*store.Chat
	*hooks.Hooks
	*peerStore
	*chats.Words
	*store.Backups
}

// peerStore is store.Peers under a name that differs from its method Peers, because a struct cannot
// embed a field and a method of one name.
type peerStore = store.Peers

// Peers implements federation.PeerStore. It decides between the embedded fields, which both have a
// Peers.
func (d *DB) Peers(ctx context.Context) ([]federation.Facts, error) { return d.peerStore.Peers(ctx) }

// Join returns the stores of a database as one value.
func Join(db *store.DB) *DB {
	return &DB{db, db.Accounts, db.Hub, db.Chat, db.Hooks, db.Peers, db.Words, db.Backups}
}

// New returns a database in a new folder, in which it also creates the keys of a portal. The database
// is closed when the test ends.
func New(t testing.TB) *DB {
	t.Helper()
	dir := t.TempDir()
	Prepare(t, dir)
	return Open(t, dir)
}

// Prepare creates the keys of a portal and an empty database in a folder without them. It copies a
// database that is made only once in a process, because creating the schema takes longer than most
// tests.
func Prepare(t testing.TB, dir string) {
	t.Helper()
	b, err := empty()
	if err == nil {
		_, err = ident.CreateKeys(dir)
	}
	if err == nil && !OnPostgres() {
		err = os.WriteFile(filepath.Join(dir, store.FileName), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// empty returns the file of a database as the first start of a portal creates it.
var empty = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "agentsite-empty-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	db, err := store.Open(context.Background(), dir, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, store.FileName))
})

// Open opens the database in dir and closes it when the test ends. The test may close it earlier.
func Open(t testing.TB, dir string) *DB {
	t.Helper()
	return OpenOn(t, dir, DatabaseOf(t, dir))
}

// OpenOn is Open for the PostgreSQL database with that URL; "" for the file in dir, on both engines.
func OpenOn(t testing.TB, dir, database string) *DB {
	t.Helper()
	opened, err := store.OpenWith(context.Background(), dir, store.Config{Database: database},
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	db := Join(opened)
	t.Cleanup(func() {
		CheckStorage(t, opened)
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// OnPostgres reports whether the tests run on PostgreSQL.
func OnPostgres() bool { return pgtest.Enabled() }

// SkipOnPostgres skips a test about files of SQLite.
func SkipOnPostgres(t testing.TB) {
	t.Helper()
	pgtest.Skip(t)
}

// emptyPortal is a database with the tables of a portal and its replica, and nothing in them.
var emptyPortal = pgtest.Template{Fill: func(url string) error {
	for _, kind := range []postgres.Kind{postgres.Portal(), postgres.Replica()} {
		db, err := postgres.Open(context.Background(), url, kind, slog.New(slog.DiscardHandler))
		if err == nil {
			err = db.Close()
		}
		if err != nil {
			return err
		}
	}
	return nil
}}

// DatabaseOf returns the URL of the database of a data folder; "" on SQLite. The first call for a folder
// creates it.
func DatabaseOf(t testing.TB, dir string) string {
	t.Helper()
	return pgtest.DatabaseOf(t, dir, &emptyPortal)
}

// CheckStorage fails the test if a counter of stored bytes differs from the rows that it counts. It does
// nothing for a database that is closed or damaged.
func CheckStorage(t testing.TB, db *store.DB) {
	t.Helper()
	wrong, err := db.Quotas.FindWrong(context.Background())
	if err != nil {
		return
	}
	for _, w := range wrong {
		t.Errorf("%s %s is said to store %d bytes, but stores %d", w.Kind, w.ID, w.Counted, w.Stored)
	}
}

// Dir returns the data folder of db, which also holds the portal's keys.
func Dir(db *DB) string { return db.Dir() }

// Account stores an account with that name, with a password hash that matches no password.
func Account(t testing.TB, db *DB, name string) account.Account {
	t.Helper()
	a := account.Account{ID: ident.NewID(), Name: name, PasswordHash: "x", CreatedAt: clock.Now()}
	if err := db.CreateAccount(context.Background(), a, ""); err != nil {
		t.Fatal(err)
	}
	return a
}

// Credential stores a credential of the account, or of no account when a is zero, that expires after
// life. A service finds it by the Hash of the result.
func Credential(t testing.TB, db *DB, a account.Account, kind account.CredentialKind, life time.Duration) account.Credential {
	t.Helper()
	c := account.Credential{ID: ident.NewID(), Hash: ident.HashSecret(ident.NewID()), Kind: kind, AccountID: a.ID, CreatedAt: clock.Now(), ExpiresAt: clock.Now().Add(life)}
	if err := db.AddCredential(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	return c
}

// Agent stores a public agent of the account, or a built-in agent when owner is zero.
func Agent(t testing.TB, db *DB, name string, owner account.Account) hub.Agent {
	t.Helper()
	return AgentOfKind(t, db, name, owner, hub.A2A)
}

// AgentOfKind is Agent for another kind than A2A. One without an owner is a built-in agent.
func AgentOfKind(t testing.TB, db *DB, name string, owner account.Account, kind hub.Kind) hub.Agent {
	t.Helper()
	now := clock.Now()
	a := hub.Agent{ID: ident.NewID(), Name: name, Title: name, Description: "An agent of a test.", Kind: kind, Endpoint: "https://agent.example/" + name,
		Visibility: hub.Public, OwnerID: owner.ID, OwnerName: owner.Name, Version: 1, Status: hub.Status{State: hub.Active},
		Liveness: hub.Liveness{State: hub.Unknown}, CreatedAt: now, UpdatedAt: now}
	if owner.ID == "" {
		a.Kind, a.Endpoint = hub.Builtin, ""
	}
	if err := db.CreateAgent(context.Background(), a, nil); err != nil {
		t.Fatal(err)
	}
	return a
}

// Conversation stores a conversation that the account owns, with the agents as members.
func Conversation(t testing.TB, db *DB, owner account.Account, agents ...hub.Agent) chat.Conversation {
	t.Helper()
	c := chat.Conversation{ID: ident.NewID(), CreatedAt: clock.Now(), Members: []chat.Member{{Kind: "person", ID: owner.ID, Handle: owner.Name, Role: "owner"}}}
	for _, a := range agents {
		c.Members = append(c.Members, chat.Member{Kind: "agent", ID: a.ID, Handle: a.Name, Role: "member"})
	}
	if err := db.CreateConversation(context.Background(), c, nil, nil); err != nil {
		t.Fatal(err)
	}
	return c
}

// Acquaint lets the accounts add each other to conversations without asking, as after an accepted
// invitation of each to each other.
func Acquaint(t testing.TB, db *DB, people ...account.Account) {
	t.Helper()
	for _, inviter := range people {
		c := Conversation(t, db, inviter)
		by := chat.Sender{Kind: "person", ID: inviter.ID, Handle: inviter.Name}
		for _, a := range people {
			if a.ID == inviter.ID {
				continue
			}
			m := chat.Member{Kind: "person", ID: a.ID, Handle: a.Name, Role: chat.RoleMember}
			event := chat.Message{ID: ident.NewID(), Sender: by, Kind: chat.Event, CreatedAt: clock.Now()}
			in, _, err := db.InvitePerson(t.Context(), c.ID, chat.Invitees{By: by, People: []chat.Member{m}}, event, event)
			if err == nil && in.InviterID != "" {
				event.ID = ident.NewID()
				_, err = db.AcceptInvitation(t.Context(), c.ID, m, event)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := db.DeleteRoom(t.Context(), c.ID); err != nil {
			t.Fatal(err)
		}
	}
}

// Post returns a message of the account in the conversation that creates a task for each agent in ask.
// It stores nothing.
func Post(c chat.Conversation, who account.Account, clientID, text string, ask ...hub.Agent) chat.Post {
	now := clock.Now()
	p := chat.Post{MustBeMember: true, Message: chat.Message{ConversationID: c.ID, ID: ident.NewID(), ClientID: clientID,
		Sender: chat.Sender{Kind: "person", ID: who.ID, Handle: who.Name}, Kind: chat.Text, Parts: []task.Part{task.TextPart(text)}, CreatedAt: now}}
	for _, a := range ask {
		p.Ask = append(p.Ask, task.Task{ID: ident.NewID(), ConversationID: c.ID, AgentID: a.ID, AgentHandle: a.Name, CallerKind: "person",
			CallerID: who.ID, CallerHandle: who.Name, State: task.Submitted, Face: "page", CreatedAt: now, UpdatedAt: now})
	}
	return p
}

// Say stores a message of the account and returns the result of storing it.
func Say(t testing.TB, db *DB, c chat.Conversation, who account.Account, text string, ask ...hub.Agent) chat.Posted {
	t.Helper()
	done, err := db.Append(context.Background(), Post(c, who, ident.NewID(), text, ask...))
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// Answer returns the message with which an agent brings the task k into the state, and k in that state.
// It stores nothing.
func Answer(k task.Task, state task.State, text string) (task.Task, chat.Message) {
	k.State, k.UpdatedAt = state, clock.Now()
	m := chat.Message{ConversationID: k.ConversationID, ID: ident.NewID(), ClientID: k.ID, Sender: chat.Sender{Kind: "agent", ID: k.AgentID, Handle: k.AgentHandle},
		Kind: chat.Text, Parts: []task.Part{task.TextPart(text)}, TaskID: k.ID, TaskState: state, CreatedAt: k.UpdatedAt}
	if !state.Terminal() {
		m.ClientID = k.ID + "/" + ident.NewID()
	}
	return k, m
}

// Finish brings a task into the state and stores the message of its agent.
func Finish(t testing.TB, db *DB, k task.Task, state task.State, text string) chat.Message {
	t.Helper()
	k, m := Answer(k, state, text)
	done, err := db.Finish(context.Background(), chat.Ended{Task: k, Message: m})
	if err != nil {
		t.Fatal(err)
	}
	return done.Message
}

// Messages returns the whole transcript of a conversation.
func Messages(t testing.TB, db *DB, conversationID string) []chat.Message {
	t.Helper()
	var all []chat.Message
	for after := int64(0); ; {
		page, _, err := db.Messages(context.Background(), conversationID, chat.Span{After: after, Limit: 500})
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, page...); len(page) < 500 {
			return all
		}
		after = page[len(page)-1].Seq
	}
}

// Sound fails the test unless a verification of the database finds no defect.
func Sound(t testing.TB, db *DB) store.Report {
	t.Helper()
	r, err := db.Verify(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Faults {
		t.Error(f)
	}
	return r
}
