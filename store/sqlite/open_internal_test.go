package sqlite

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentsite/internal/testing/filetest"

	"agentsite/internal/ident"

	"agentsite/store/engine"
)

// openTestFile opens the database of a folder, which begins as an empty one.
func openTestFile(t *testing.T, dir string) *DB {
	t.Helper()
	if _, err := ident.CreateKeys(dir); err != nil {
		t.Fatal(err)
	}
	f, err := OpenPortal(context.Background(), dir, nil, quiet())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// Each of these DSNs opens without an error in the driver; only reading the
// settings back shows that durability is not what was meant.
func TestCheckPragmas_RefusesWrongSettings(t *testing.T) {
	t.Parallel()
	for name, dsn := range map[string]string{
		"synchronous misspelt":   "?_journal_mode=WAL&_foreign_keys=1&_busy_timeout=5000&_pragma=synchronous(FUL)",
		"synchronous NORMAL":     "?_journal_mode=WAL&_foreign_keys=1&_busy_timeout=5000&_synchronous=NORMAL",
		"journal misspelt":       "?_pragma=journal_mode(WALL)&_foreign_keys=1&_busy_timeout=5000&_synchronous=FULL",
		"journal key misspelt":   "?_jurnal_mode=WAL&_foreign_keys=1&_busy_timeout=5000&_synchronous=FULL",
		"foreign keys misspelt":  "?_journal_mode=WAL&_pragma=foreign_keys(yse)&_busy_timeout=5000&_synchronous=FULL",
		"busy timeout forgotten": "?_journal_mode=WAL&_foreign_keys=1&_synchronous=FULL",
	} {
		path := filepath.Join(t.TempDir(), FileName)
		pool, err := Connect(path, "file:"+path+dsn, 1)
		if err != nil {
			t.Fatal(err)
		}
		c, err := pool.Connx(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := checkPragmas(t.Context(), c, writerPragmas()); err == nil || !strings.Contains(err.Error(), "refusing to start") {
			t.Errorf("%s: %v", name, err)
		}
		c.Close()
		pool.Close()
	}
}

func TestOpen_ChecksItsOwnSettings(t *testing.T) {
	t.Parallel()
	d := openTestFile(t, t.TempDir())
	if err := d.CheckSettings(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := d.read.ExecContext(t.Context(), "DELETE FROM accounts"); err == nil {
		t.Error("a reader can write")
	}
	st, err := os.Stat(d.path)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", st.Mode(), err)
	}
}

func TestOpen_RefusesOtherFiles(t *testing.T) {
	t.Parallel()
	foreign := filepath.Join(t.TempDir(), "other.db")
	pool, err := Connect(foreign, "file:"+foreign, 1)
	if err != nil {
		t.Fatal(err)
	}
	pool.MustExec("CREATE TABLE t (x)")
	pool.Close()
	other, err := os.ReadFile(foreign)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, says string
		file       []byte
	}{
		{"empty", "is empty", nil},
		{"text", "not an SQLite database", []byte("hello, this is a text file of some length\n")},
		{"short", "not an SQLite database", []byte("SQLite")},
		{"header only", "database", []byte("SQLite format 3\x00 and then nonsense that is none")},
		{"somebody else's", "not a database of agentsite", other},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, FileName)
		if err := os.WriteFile(path, tt.file, 0o600); err != nil {
			t.Fatal(err)
		}
		before := filetest.Hash(t, path)
		if _, err := OpenPortal(t.Context(), dir, nil, quiet()); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if filetest.Hash(t, path) != before {
			t.Errorf("%s: the file was changed", tt.name)
		}
		if left, _ := os.ReadDir(dir); len(left) != 1 {
			t.Errorf("%s: %v lie in the folder", tt.name, left)
		}
		if err := errors.Join(CheckFile(path), CheckPortal(t.Context(), path)); err == nil {
			t.Errorf("%s: not refused", tt.name)
		}
	}
}

func TestOpen_RefusesNewerSchemaUntouched(t *testing.T) {
	t.Parallel()
	for _, crashed := range []bool{false, true} {
		dir := t.TempDir()
		d := openTestFile(t, dir)
		if err := d.Write(t.Context(), func(tx engine.Tx) error {
			_, err := tx.Exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (?, 1)`, SchemaVersion()+1)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if crashed { // the newer schema is only in the WAL
			dir = copyKilled(t, dir)
		} else if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, FileName)
		before := filetest.Hash(t, path)
		if _, err := OpenPortal(t.Context(), dir, nil, quiet()); err == nil || !strings.Contains(err.Error(), "run the newer agentsite") {
			t.Error(err)
		}
		if err := CheckPortal(t.Context(), path); err == nil || !strings.Contains(err.Error(), "run the newer agentsite") {
			t.Error(err)
		}
		if filetest.Hash(t, path) != before {
			t.Error("the file was changed")
		}
	}
}

// copyKilled copies what a kill of the portal would leave of its folder.
func copyKilled(t *testing.T, dir string) string {
	t.Helper()
	return filetest.CopyFiles(t, dir, FileName, FileName+"-wal", ident.PortalKeyFile, ident.SealKeyFile)
}

func TestOpen_AgainChangesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, ScratchPrefix+"left by a crash"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := openTestFile(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
	before := filetest.Hash(t, filepath.Join(dir, FileName))
	d := openTestFile(t, dir)
	if have, err := SchemaOf(t.Context(), d.wconn); err != nil || have != SchemaVersion() {
		t.Error(have, err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if filetest.Hash(t, filepath.Join(dir, FileName)) != before {
		t.Error("opening a database of this version changed it")
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 3 { // no copy made before an upgrade, no scratch folder
		t.Error(left, err)
	}
}

// A WAL without its database holds what was acknowledged: neither is it
// thrown away nor does a new database swallow it.
func TestOpen_RefusesLostDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := note(openTestFile(t, dir), t.Context(), "only in the WAL"); err != nil {
		t.Fatal(err)
	}
	dir = copyKilled(t, dir)
	if err := os.Remove(filepath.Join(dir, FileName)); err != nil {
		t.Fatal(err)
	}
	wal := filetest.Hash(t, filepath.Join(dir, FileName+"-wal"))
	if _, err := OpenPortal(t.Context(), dir, nil, quiet()); err == nil || !strings.Contains(err.Error(), "without its database") {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 3 || filetest.Hash(t, filepath.Join(dir, FileName+"-wal")) != wal {
		t.Error(left, err)
	}
}

// After Close the database file alone holds everything.
func TestClose_LeavesNoWAL(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := openTestFile(t, dir)
	if err := note(d, t.Context(), "in the WAL"); err != nil {
		t.Fatal(err)
	}
	if got := subjects(t, d); len(got) != 1 {
		t.Fatal(got)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 3 {
		t.Error(left, err)
	}
}

// What was acknowledged before a kill is there after it.
func TestOpen_AfterCrash(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := openTestFile(t, dir)
	if err := note(d, t.Context(), "ada"); err != nil {
		t.Fatal(err)
	}
	again := openTestFile(t, copyKilled(t, dir))
	if got := subjects(t, again); got["ada"] != 1 {
		t.Error(got)
	}
}

func TestOpen_InFolderWithOddName(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a b?mode=memory&[x]*#%41")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := openTestFile(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(filepath.Join(dir, FileName)); err != nil || st.Size() < 4096 {
		t.Error("the database is not where it should be")
	}
	if faults, err := QuickCheckFile(t.Context(), filepath.Join(dir, FileName)); err != nil || len(faults) > 0 {
		t.Error(faults, err)
	}
}
