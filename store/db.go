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
	"sync"

	"agentsite/internal/chat"
	"agentsite/internal/hub"
)

// DB is an open database of a portal. It is safe for concurrent use; whoever
// opened it closes it, which waits for queued writes.
type DB struct {
	*file

	credentials *cache[credentialRow]         // by hash
	members     *cache[[]chat.Member]         // by conversation
	settings    *cache[settingsRow]           // by conversation
	agents      *cache[hub.Agent]             // by id and by name, each after a prefix
	listeners   *cache[map[string][]listener] // under one key: see loadWebhooks
	wordless    rooms

	// blobs is held to put a blob in its place or to take one away; keep by a
	// backup, which needs every blob its copy names.
	blobs   sync.Mutex
	keep    sync.RWMutex
	owned   *cache[int] // how many agents an owner has
	touches touches
	// hooked is raised when an event waits for a hook, publishing when an agent
	// may have to be published.
	hooked, publishing *signal
}

// Open opens or creates the database in the folder dir, see openPortal.
func Open(ctx context.Context, dir string, log *slog.Logger) (*DB, error) {
	f, err := openPortal(ctx, dir, log)
	if err != nil {
		return nil, err
	}
	sweep(filepath.Join(dir, blobsDir))
	return newDB(f), nil
}

func newDB(f *file) *DB {
	return &DB{file: f, credentials: newCache[credentialRow](0), members: newCache[[]chat.Member](0), settings: newCache[settingsRow](0),
		agents: newCache[hub.Agent](maxCachedAgents), listeners: newCache[map[string][]listener](0), owned: newCache[int](0),
		hooked: newSignal(), publishing: newSignal()}
}
