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
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"agentsite/internal/chat"
	"agentsite/internal/hub"
	"agentsite/migrations"
)

// FileName is the database inside the data folder.
const FileName = "agentsite.db"

// applicationID marks our database files: "AGST" in ASCII.
const applicationID = 0x41475354

// DB is an open database of a portal. It is safe for concurrent use; whoever
// opened it closes it, which waits for queued writes.
type DB struct {
	*file

	credentials cache[credentialRow]         // by hash
	members     cache[[]chat.Member]         // by conversation
	settings    cache[settingsRow]           // by conversation
	agents      cache[hub.Agent]             // by id and by name, each after a prefix
	listeners   cache[map[string][]listener] // under one key: see tx.listeners
	wordless    rooms

	// blobs is held to put a blob in its place or to take one away; keep by a
	// backup, which needs every blob its copy names.
	blobs   sync.Mutex
	keep    sync.RWMutex
	owned   cache[int] // how many agents an owner has
	touches touches
	// hooked is raised when an event waits for a hook, publishing when an agent
	// may have to be published.
	hooked, publishing *signal
}

// Open opens or creates the database in the folder dir, migrates it to this
// binary's schema, and refuses to go on when SQLite runs with other settings
// than those durability needs, or when the file was written by a newer binary.
func Open(ctx context.Context, dir string, log *slog.Logger) (*DB, error) {
	path := filepath.Join(dir, FileName)
	if err := checkFile(path); err != nil {
		return nil, err
	}
	sweep(dir)
	sweep(filepath.Join(dir, blobsDir))
	_, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		err = create(ctx, dir, log)
	case err == nil:
		err = inspect(ctx, path)
	}
	if err != nil {
		return nil, err
	}
	return openFile(ctx, path, log)
}

// create makes a database beside its place and puts it there whole: a crash
// leaves no empty file, which the next start would have to refuse.
func create(ctx context.Context, dir string, log *slog.Logger) error {
	path := filepath.Join(dir, FileName)
	if nonEmpty(path + "-wal") {
		return fmt.Errorf("%s-wal lies there without its database %s, which was a portal's before. Put the database back, restore a backup into a new folder with `agentsite restore FILE`, or delete that file too to start afresh", path, FileName)
	}
	tmp, err := os.MkdirTemp(dir, scratch)
	if err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	defer os.RemoveAll(tmp)
	// Created here so that the file is private from its first byte.
	f, err := os.OpenFile(filepath.Join(tmp, FileName), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	defer f.Close()
	w, err := openWriter(ctx, f.Name(), portalFile(), log)
	if err != nil {
		return err
	}
	if err := errors.Join(w.closeWriter(), f.Sync()); err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	// Link fails when the name exists: a database is never replaced.
	if err := errors.Join(os.Link(f.Name(), path), flushDir(dir)); err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	return nil
}

func openFile(ctx context.Context, path string, log *slog.Logger) (*DB, error) {
	f, err := openSQLite(ctx, path, portalFile(), log)
	if err != nil {
		return nil, err
	}
	return &DB{file: f, agents: cache[hub.Agent]{max: maxCachedAgents}, hooked: newSignal(), publishing: newSignal()}, nil
}

// portalFile is what a portal's database is.
func portalFile() kind {
	return kind{id: applicationID, steps: migrations.SQLite(), schema: migrations.Schema("sqlite"), write: writeDSN, copied: true}
}

// SchemaVersion is the newest migration this binary knows.
func SchemaVersion() int64 { return portalFile().newest() }
