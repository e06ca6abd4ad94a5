package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"agentsite/store/engine"
)

// createOlder creates a database as versions before compaction did.
func createOlder(t *testing.T, path string) {
	t.Helper()
	f, err := openWriter(t.Context(), path, portalFile(), quiet())
	if err != nil {
		t.Fatal(err)
	}
	if err := f.closeWriter(); err != nil {
		t.Fatal(err)
	}
}

// Deleted data makes the file smaller while the database is in use, also for a file that an older version
// created.
func TestCompact_GivesSpaceBack(t *testing.T) {
	t.Parallel()
	for _, older := range []bool{false, true} {
		dir := t.TempDir()
		path := filepath.Join(dir, FileName)
		if older {
			createOlder(t, path)
		}
		f, err := OpenPortal(t.Context(), dir, nil, quiet())
		if err != nil {
			t.Fatal(err)
		}
		change := func(query string) {
			if err := f.Write(t.Context(), func(t engine.Tx) error { _, err := t.Exec(query); return err }); err != nil {
				t.Fatal(err)
			}
		}
		count := func() (pages int64) {
			if err := f.Get(t.Context(), &pages, "PRAGMA page_count"); err != nil {
				t.Fatal(err)
			}
			return pages
		}
		for range 100 {
			change(`INSERT INTO icons (hash, created_at, data) VALUES (hex(randomblob(16)), 0, zeroblob(100000))`)
		}
		change(`DELETE FROM icons`)
		before := count()
		pages, err := f.Compact(t.Context())
		if after := count(); err != nil || pages < before*8/10 || after > before-pages {
			t.Errorf("older %v: %d pages before, %d after, %d given back, %v", older, before, after, pages, err)
		}
		if n, err := f.Compact(t.Context()); n != 0 || err != nil {
			t.Errorf("again: %d, %v", n, err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if st, err := os.Stat(path); err != nil || st.Size() > 3<<20 {
			t.Errorf("older %v: the file has %d bytes after all was deleted, %v", older, st.Size(), err)
		}
	}
}

// fullOnce is a reserve that makes room once.
type fullOnce struct{ f *DB }

func (r *fullOnce) GiveUp() bool {
	if r.f == nil {
		return false
	}
	_, err := r.f.wconn.ExecContext(context.Background(), "PRAGMA max_page_count = 1000000")
	r.f = nil
	return err == nil
}

// A write that finds the disk full is repeated after the reserve is given up. Without one it is refused,
// and later writes succeed once there is room.
func TestWrite_GivesUpTheReserve(t *testing.T) {
	t.Parallel()
	for _, reserved := range []bool{true, false} {
		r := &fullOnce{}
		f, err := OpenPortal(t.Context(), t.TempDir(), r, quiet())
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		write := func() error {
			return f.Write(t.Context(), func(t engine.Tx) error {
				_, err := t.Exec(`INSERT INTO icons (hash, created_at, data) VALUES (hex(randomblob(16)), 0, zeroblob(100000))`)
				return err
			})
		}
		if err := write(); err != nil {
			t.Fatal(err)
		}
		if err := f.Write(t.Context(), func(t engine.Tx) error { _, err := t.Exec("PRAGMA max_page_count = 1"); return err }); err != nil {
			t.Fatal(err)
		}
		if reserved {
			r.f = f
		}
		err = write()
		if reserved && err != nil || !reserved && !IsFull(errors.Unwrap(err)) {
			t.Errorf("with a reserve %v: %v", reserved, err)
		}
		if f.Err() != nil {
			t.Errorf("writing stopped: %v", f.Err())
		}
	}
}
