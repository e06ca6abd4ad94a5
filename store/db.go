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
	"agentsite/store/sqlite"
)

// FileName is the database inside the data folder.
const FileName = sqlite.FileName

// SchemaVersion is the newest migration this binary knows.
func SchemaVersion() int64 { return sqlite.SchemaVersion() }

// DB is an open database of a portal. It is safe for concurrent use; whoever
// opened it closes it, which waits for queued writes.
type DB struct {
	*sqlite.DB

	credentials *sqlite.Cache[credentialRow]         // by hash
	members     *sqlite.Cache[[]chat.Member]         // by conversation
	settings    *sqlite.Cache[settingsRow]           // by conversation
	agents      *sqlite.Cache[hub.Agent]             // by id and by name, each after a prefix
	listeners   *sqlite.Cache[map[string][]listener] // under one key: see loadWebhooks
	wordless    rooms

	// blobs is held to put a blob in its place or to take one away; keep by a
	// backup, which needs every blob its copy names.
	blobs   sync.Mutex
	keep    sync.RWMutex
	owned   *sqlite.Cache[int] // how many agents an owner has
	touches touches
	// hooked is raised when an event waits for a hook, publishing when an agent
	// may have to be published.
	hooked, publishing *sqlite.Signal
}

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
	return &DB{DB: f, credentials: sqlite.NewCache[credentialRow](0), members: sqlite.NewCache[[]chat.Member](0), settings: sqlite.NewCache[settingsRow](0),
		agents: sqlite.NewCache[hub.Agent](maxCachedAgents), listeners: sqlite.NewCache[map[string][]listener](0), owned: sqlite.NewCache[int](0),
		hooked: sqlite.NewSignal(), publishing: sqlite.NewSignal()}
}
