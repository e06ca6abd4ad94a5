package store_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentsite/internal/fault"
	"agentsite/internal/testing/pgtest"
	"agentsite/store"
)

func TestOnAServer(t *testing.T) {
	t.Parallel()
	server := pgtest.NewStopped(t)
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	cfg := store.Config{Database: server.URL("postgres")}
	log := slog.New(slog.DiscardHandler)

	// A portal with a database file does not begin a second life on a server.
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, store.FileName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.OpenWith(t.Context(), dir, cfg, log); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "--database") {
		t.Error(err)
	}

	// Backup and verification say that they do not know PostgreSQL yet.
	db, err := store.OpenWith(t.Context(), t.TempDir(), cfg, log)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var out bytes.Buffer
	if _, err := db.Backups.Backup(t.Context(), &out, store.BackupOptions{}); !fault.Is(err, fault.Invalid) || out.Len() > 0 {
		t.Errorf("%v, %d bytes", err, out.Len())
	}
	if _, err := db.Backups.Verify(t.Context()); !fault.Is(err, fault.Invalid) {
		t.Error(err)
	}
}
