// Package store keeps everything a portal must not lose, in SQLite by sqlx.
// One writer connection commits what waits for it as one transaction at
// synchronous=FULL (group commit), so a write is acknowledged only when it is
// on disk; a pool of query-only connections reads. Exported methods open the
// transaction, unexported helpers take it and compose. The package implements
// the ports that the services in internal/ declare and holds no rules of its
// own: no decision who may do what.
package store

import (
	"context"
	"log/slog"
	"path/filepath"

	"agentsite/internal/chat"
	"agentsite/internal/hub"
	"agentsite/store/sqlite"
)

// FileName is the database inside the data folder.
const FileName = sqlite.FileName

// SchemaVersion is the newest migration this binary knows.
func SchemaVersion() int64 { return sqlite.SchemaVersion() }

// DB is the open database of a portal with the stores on it. It is safe for
// concurrent use. Close waits for queued writes.
type DB struct {
	*sqlite.DB

	Accounts *Accounts
	Hub      *Hub
	Chat     *Chat
	Tasks    *Tasks
	Hooks    *Hooks
	Peers    *Peers
	Words    *Words
	Backups  *Backups
}

// Hub implements hub.Store.
type Hub struct {
	*Agents
	*Owners
	*Health
	*Uses
	*Registry
	*Inbox
}

// Chat implements chat.Store.
type Chat struct {
	*Chats
	*Files
	*Search
	*Tasks
}

var (
	_ hub.Store  = (*Hub)(nil)
	_ chat.Store = (*Chat)(nil)
)

// Open opens or creates the database in the folder dir, see openPortal.
func Open(ctx context.Context, dir string, log *slog.Logger) (*DB, error) {
	f, err := sqlite.OpenPortal(ctx, dir, log)
	if err != nil {
		return nil, err
	}
	sqlite.RemoveScratch(filepath.Join(dir, blobsDir))
	return newDB(f), nil
}

func newDB(f *sqlite.DB) *DB {
	hooks, words, files := newHooks(f), newWords(f), newFiles(f)
	agents, chats, tasks := newAgents(f, hooks), newChats(f, hooks, words), newTasks(f, hooks)
	return &DB{
		DB:       f,
		Accounts: newAccounts(f, agents),
		Hub:      &Hub{agents, newOwners(f, agents), newHealth(f, agents, hooks), newUses(f, agents), newRegistry(f, agents), newInbox(f)},
		Chat:     &Chat{chats, files, newSearch(f, chats, words), tasks},
		Tasks:    tasks, Hooks: hooks, Peers: newPeers(f), Words: words, Backups: newBackups(f, words, files),
	}
}
