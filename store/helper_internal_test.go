package store

import (
	"agentsite/internal/ident"
	"agentsite/internal/testing/filetest"
	"agentsite/store/accounts"
	"agentsite/store/chats"
	"agentsite/store/hooks"
	"agentsite/store/sqlite"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// openTest opens the database of a folder. Where there is none it begins with a
// copy of an empty one: running all migrations takes most of the time of a test.
func openTest(t *testing.T, dir string) *testDB {
	t.Helper()
	if _, err := ident.CreateKeys(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, sqlite.FileName)); errors.Is(err, fs.ErrNotExist) {
		b, err := emptyFile()
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, sqlite.FileName), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	d, err := Open(context.Background(), dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return joinStores(d)
}

// emptyFile is the file of a database as the first start of a portal makes it.
var emptyFile = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "agentsite-empty-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	d, err := Open(context.Background(), dir, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	if err := d.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, sqlite.FileName))
})

// execRaw runs statements on a connection of their own, past the store.
func execRaw(t *testing.T, d *testDB, queries ...string) {
	t.Helper()
	pool, err := sqlite.Connect(d.DB.file.Path(), sqlite.WriteDSN(d.DB.file.Path()), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for _, q := range queries {
		if _, err := pool.ExecContext(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

// crashCopy copies what a kill of the portal would leave of its folder.
func crashCopy(t *testing.T, dir string) string {
	t.Helper()
	return filetest.CopyFiles(t, dir, sqlite.FileName, sqlite.FileName+"-wal", ident.PortalKeyFile, ident.SealKeyFile)
}

// testDB is the database of a portal with the methods of all its stores.
type testDB struct {
	*DB
	*accounts.Accounts
	*Hub
	*Chat
	*hooks.Hooks
	*peerStore
	*chats.Words
	*Backups
}

// peerStore has a name that differs from its method Peers.
type peerStore = Peers

func joinStores(db *DB) *testDB {
	return &testDB{db, db.Accounts, db.Hub, db.Chat, db.Hooks, db.Peers, db.Words, db.Backups}
}
