package store_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/testing/pgtest"
	"agentsite/internal/testing/storetest"
	"agentsite/store"
)

// rowsOf returns the number of rows of each table of a portal's database.
func rowsOf(t testing.TB, db *store.DB) map[string]int64 {
	t.Helper()
	n, err := db.Stats(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	delete(n, "bytes")
	return n
}

func TestMove_ThereAndBack(t *testing.T) {
	storetest.SkipOnPostgres(t)
	t.Parallel()
	url := pgtest.NewDatabase(t)
	db := filled(t)
	dir, log := storetest.Dir(db), slog.New(slog.DiscardHandler)
	want := rowsOf(t, db.DB)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	m := store.Move{Keys: ident.KeyFiles{Dir: dir}, To: url, Log: log}
	r, err := m.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Heads != 3 || r.Tables < 40 || r.Rows < 100 {
		t.Errorf("%+v", r)
	}
	// The file does not start again, also not beside the server.
	if _, err := store.Open(t.Context(), dir, log); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "was moved") {
		t.Error(err)
	}
	server, err := store.OpenWith(t.Context(), dir, store.Config{Database: url}, log)
	if err != nil {
		t.Fatal(err)
	}
	if got := rowsOf(t, server); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	// Another database beside the moved file is refused.
	if _, err := store.OpenWith(t.Context(), dir, store.Config{Database: pgtest.NewDatabase(t)}, log); !fault.Is(err, fault.Conflict) {
		t.Error(err)
	}
	back := store.Move{Keys: ident.KeyFiles{Dir: dir}, Database: url, ToDir: dir, Log: log}
	if r, err = back.Run(t.Context()); err != nil || r.Heads != 3 {
		t.Fatal(r, err)
	}
	if _, err := store.OpenWith(t.Context(), t.TempDir(), store.Config{Database: url}, log); !fault.Is(err, fault.Conflict) {
		t.Error(err)
	}
	again := storetest.Open(t, dir)
	if got := rowsOf(t, again.DB); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	storetest.Sound(t, again)
	if _, err := os.Stat(filepath.Join(dir, store.FileName+store.MovedSuffix)); err != nil {
		t.Error(err)
	}
}

// A backup of one engine restores on the other.
func TestBackup_RestoresOnTheOtherEngine(t *testing.T) {
	storetest.SkipOnPostgres(t)
	t.Parallel()
	db, log := filled(t), slog.New(slog.DiscardHandler)
	want := rowsOf(t, db.DB)
	url, onServer := pgtest.NewDatabase(t), filepath.Join(t.TempDir(), "server")
	r, err := store.RestoreInto(t.Context(), bytes.NewReader(backup(t, db, "")), onServer, "", url, log)
	if err != nil || r.Messages != 63 {
		t.Fatal(r, err)
	}
	if _, err := os.Stat(filepath.Join(onServer, store.FileName)); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	server := storetest.OpenOn(t, onServer, url)
	if got := rowsOf(t, server.DB); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	storetest.Sound(t, server)
	b := backup(t, server, "secret")
	if _, err := store.VerifyBackup(t.Context(), bytes.NewReader(b), "secret"); err != nil {
		t.Error(err)
	}
	// The database has a portal now: a second one does not get in.
	if _, err := store.RestoreInto(t.Context(), bytes.NewReader(b), t.TempDir(), "secret", url, log); err == nil {
		t.Error("a database in use was overwritten")
	}
	inFile := t.TempDir()
	if _, err := store.Restore(t.Context(), bytes.NewReader(b), inFile, "secret"); err != nil {
		t.Fatal(err)
	}
	if got := rowsOf(t, storetest.OpenOn(t, inFile, "").DB); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
