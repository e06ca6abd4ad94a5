package app_test

import (
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/control"
	"agentsite/internal/doctor"
	"agentsite/internal/testing/apptest"
	"agentsite/internal/testing/storetest"
	"agentsite/store"
)

// ofdGetLock is fcntl's F_OFD_GETLK: it sees the locks of this process too.
const ofdGetLock = 36

// isLocked reports whether any process holds a lock on a file. Closing f would end SQLite's locks.
func isLocked(t *testing.T, f *os.File) bool {
	t.Helper()
	lock := syscall.Flock_t{Type: syscall.F_WRLCK}
	if err := syscall.FcntlFlock(f.Fd(), ofdGetLock, &lock); err != nil {
		t.Fatal(err)
	}
	return lock.Type != syscall.F_UNLCK
}

// Closing a file ends all locks that the process has on it. Nothing that runs beside SQLite may open and
// close the database, else another process could write into it or remove its write-ahead log.
func TestFolder_KeepsLocksAndSecrets(t *testing.T) {
	storetest.SkipOnPostgres(t)
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	p := apptest.Start(t, func(c *app.Config) { c.Data = dir })
	otto := p.Operator(t, "otto")
	otto.Must(http.MethodPost, "/api/v1/files?name=a.png", picture(), http.StatusCreated)
	room := otto.Conversation("calc")
	otto.Say(room, "1+1")
	path := filepath.Join(dir, store.FileName)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if !isLocked(t, f) {
		t.Fatal("SQLite holds no lock")
	}
	c := p.Control()
	if err := c.Backup(t.Context(), io.Discard, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Doctor(t.Context(), doctor.Question{}); err != nil {
		t.Fatal(err)
	}
	p.Guest(t).Must(http.MethodGet, "/readyz", nil, http.StatusOK)
	if !isLocked(t, f) {
		t.Error("the locks of the database are gone")
	}
	// A second process is refused before it opens anything, whatever was removed.
	if err := os.Remove(filepath.Join(dir, "lock")); err != nil {
		t.Fatal(err)
	}
	if _, err := control.LockData(dir); err == nil {
		t.Error("a second process comes in")
	}
	if !isLocked(t, f) {
		t.Error("the locks of the database are gone")
	}
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := d.Info()
		if err == nil && st.Mode().Perm()&0o077 != 0 {
			t.Errorf("others can read %s (%v)", strings.TrimPrefix(name, dir), st.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	// The way in which the locks would be lost.
	if g, err := os.Open(path); err != nil || g.Close() != nil || isLocked(t, f) {
		t.Error("this test would not notice lost locks")
	}
}

func TestFolder_WarnsOfReaders(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	p := apptest.Start(t, func(c *app.Config) { c.Data = dir })
	if !strings.Contains(p.Log(), "Others on this machine can read the data folder") || !strings.Contains(p.Log(), "chmod 700") {
		t.Errorf("no warning: %s", p.Log())
	}
}
