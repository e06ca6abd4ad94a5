// Package filetest gives tests copies and checksums of files.
package filetest

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"testing"
)

// CopyFiles copies the named files of a folder to a new folder, which the test removes, and returns the
// new folder.
func CopyFiles(t testing.TB, dir string, names ...string) string {
	t.Helper()
	to := t.TempDir()
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// Hash returns the SHA-256 of the file's content. It ends the test when the file cannot be read.
func Hash(t testing.TB, path string) [sha256.Size]byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(b)
}
