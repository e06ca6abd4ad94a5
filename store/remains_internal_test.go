package store

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"agentsite/internal/fault"
	"agentsite/store/chats"
	"agentsite/store/replica"
)

// A portal whose database is missing does not begin a second life beside its other data.
func TestOpen_RefusesAFolderWithoutItsDatabase(t *testing.T) {
	t.Parallel()
	for _, name := range []string{replica.FileName, filepath.Join(chats.BlobsDir, "ab", "abcd")} {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("of the first life"), 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := Open(t.Context(), dir, slog.New(slog.DiscardHandler))
		if err == nil {
			d.Close()
		}
		if !fault.Is(err, fault.Conflict) {
			t.Errorf("beside %s: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(dir, FileName)); err == nil {
			t.Errorf("a database was made beside %s", name)
		}
	}
}
