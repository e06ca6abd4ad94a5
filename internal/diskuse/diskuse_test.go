package diskuse_test

import (
	"os"
	"path/filepath"
	"testing"

	"agentsite/internal/diskuse"
)

func TestMeasure_SortsFilesByKind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, size := range map[string]int{"agentsite.db": 100, "agentsite.db-wal": 20, "agentsite.db.schema-31": 7,
		"replica.db": 30, "files/ab/abc": 40, "embeddings.cache": 5, "reserve": 60, "portal.key": 3, "night.backup": 2} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc", filepath.Join(dir, "elsewhere")); err != nil {
		t.Fatal(err)
	}
	list, err := diskuse.Measure(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]int64)
	for _, k := range list {
		got[k.Name] = k.Bytes
	}
	for name, want := range map[string]int64{"Database": 120, "Backups and copies": 9, "Records of other portals": 30,
		"Files": 40, "Caches": 5, "Reserve": 60, "Keys and the rest": 3} {
		if got[name] != want {
			t.Errorf("%s: %d instead of %d", name, got[name], want)
		}
	}
}
