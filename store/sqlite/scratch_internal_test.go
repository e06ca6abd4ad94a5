package sqlite

import (
	"os"
	"path/filepath"
	"testing"

	"agentsite/store/engine"
)

// The scratch of a killed process is removed, and that of a running one stays.
func TestRemoveAbandoned(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	used, err := MakeScratch(dir)
	if err != nil {
		t.Fatal(err)
	}
	killed, err := MakeScratch(dir)
	if err != nil {
		t.Fatal(err)
	}
	part, err := CreateScratch(dir)
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(killed.Path, "portal.key")
	if err := os.WriteFile(key, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	killed.lock.Close() // as the operating system does at the end of a process
	part.lock.Close()
	other := filepath.Join(dir, "other")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	RemoveAbandoned(dir)
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 || left[0].Name() != filepath.Base(used.Path) || left[1].Name() != "other" {
		t.Errorf("%v %v", left, err)
	}
	if st, err := os.Stat(used.Path); err != nil || st.Mode().Perm() != 0o700 {
		t.Error(st, err)
	}
	used.Remove()
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Error(left, err)
	}
}

// A scratch that got its final name is not removed with its old one.
func TestScratch_Renamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := CreateScratch(dir)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "backup")
	if err := os.Rename(s.Path, name); err != nil {
		t.Fatal(err)
	}
	s.Remove()
	if st, err := os.Stat(name); err != nil || st.Mode().Perm() != 0o600 {
		t.Error(err)
	}
}

// A restore unpacks beside the new folder; the next start of a portal there removes the folder of a
// killed one.
func TestOpen_RemovesKilledRestore(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	killed, err := MakeScratch(parent)
	if err != nil {
		t.Fatal(err)
	}
	killed.lock.Close()
	dir := filepath.Join(parent, "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	openTestFile(t, dir)
	if _, err := os.Stat(killed.Path); !os.IsNotExist(err) {
		t.Error("the folder with all keys stays:", err)
	}
}

func TestCheckPlace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := openTestFile(t, dir)
	if err := f.CheckPlace(); err != nil {
		t.Error(err)
	}
	path := filepath.Join(dir, FileName)
	if err := os.Rename(path, path+".moved"); err != nil {
		t.Fatal(err)
	}
	if err := f.CheckPlace(); err == nil {
		t.Error("a moved database is not noticed")
	}
	if err := os.Link(path+".moved", path); err != nil {
		t.Fatal(err)
	}
	if err := f.CheckPlace(); err != nil {
		t.Error(err)
	}
}

// A deleted write-ahead log is noticed, and nothing is lost when the database is closed then.
func TestCheckPlace_NoticesADeletedLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := openTestFile(t, dir)
	write := func(table string) {
		t.Helper()
		err := f.Write(t.Context(), func(tx engine.Tx) error {
			_, err := tx.Exec(`CREATE TABLE ` + table + ` (id INTEGER)`)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	write("writtena")
	if err := f.CheckPlace(); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(dir, FileName+"-wal")); err != nil {
		t.Fatal(err)
	}
	write("writtenb")
	if err := f.CheckPlace(); err == nil {
		t.Error("a deleted log is not noticed")
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	again := openTestFile(t, dir)
	var n int
	if err := again.Get(t.Context(), &n, `SELECT COUNT(*) FROM sqlite_master WHERE name IN ('writtena', 'writtenb')`); err != nil || n != 2 {
		t.Errorf("%d of the 2 tables are there, %v", n, err)
	}
}
