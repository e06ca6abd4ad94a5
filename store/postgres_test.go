package store_test

import (
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
}
