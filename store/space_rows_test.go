package store_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentsite/internal/ident"
	"agentsite/internal/testing/pgtest"
	"agentsite/internal/testing/storetest"
	"agentsite/store"
	"agentsite/store/space"
)

// On PostgreSQL the disk of the data folder holds no messages: a full one refuses none, and no reserve is made.
func TestSpace_NotWatchedOnPostgres(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := ident.CreateKeys(dir); err != nil { // they keep the names of erased accounts
		t.Fatal(err)
	}
	cfg := store.Config{Database: pgtest.NewDatabase(t), Space: space.Config{Floor: 1 << 60, Reserve: 2 << 20}}
	opened, err := store.OpenWith(t.Context(), dir, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	db := storetest.Join(opened)
	t.Cleanup(func() { db.Close() })
	ada := storetest.Account(t, db, "ada")
	content := strings.Repeat("long ", 10_000)
	if openBackup(t, db, send(t, db, ada, content)) != content {
		t.Error("another content")
	}
	if _, known := db.FreeDisk(); known {
		t.Error("the free space of a disk without the database is shown")
	}
	if _, err := os.Lstat(filepath.Join(dir, space.FileName)); err == nil {
		t.Error("a reserve was made")
	}
}
