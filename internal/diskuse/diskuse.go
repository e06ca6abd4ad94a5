// Package diskuse measures the data folder of a portal by the kind of data, so that an operator sees why a disk fills.
// It reads names and sizes only.
package diskuse

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Kind is a kind of data in the folder.
type Kind struct {
	Name  string
	Hint  string // how to make room
	Bytes int64
}

// kindOf returns the index in kinds of a file or folder at the top of the data folder.
func kindOf(name string) int {
	for i, k := range patterns {
		for _, p := range k {
			if ok, err := filepath.Match(p, name); ok && err == nil {
				return i
			}
		}
	}
	return len(patterns)
}

// patterns are the names of each kind, in the order of kinds: the first that matches counts.
var patterns = [][]string{
	{"*.schema-*", "*.moved*", "*.backup", "*.backup.*", "backup*"},
	{"agentsite.db", "agentsite.db-wal", "agentsite.db-shm"},
	{"files", "*.wasm", "programs", "pdf"},
	{"replica.db*"},
	{"*.cache", "*cache*", ".tmp*", "tmp*"},
	{"reserve"},
}

func kinds() []Kind {
	return []Kind{
		{Name: "Backups and copies", Hint: "Move backups to another disk. Copies agentsite.db.schema-… can go once the upgrade works."},
		{Name: "Database", Hint: "People delete conversations and agents; the greatest users stand below."},
		{Name: "Files", Hint: "Files of conversations, libraries and programs; the greatest users stand below."},
		{Name: "Records of other portals", Hint: "Forget portals, or lower their quota under Portals."},
		{Name: "Caches", Hint: "May be deleted while the portal does not run."},
		{Name: "Reserve", Hint: "Given up when the disk is full, so that people can still delete."},
		{Name: "Keys and the rest", Hint: "Never delete these."},
	}
}

// Measure returns the bytes of each kind in the folder dir. Files that vanish meanwhile do not count, nor folders that
// the portal may not read, such as lost+found.
func Measure(ctx context.Context, dir string) ([]Kind, error) {
	out := kinds()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case errors.Is(err, fs.ErrPermission) && path != dir:
			return fs.SkipDir
		case err != nil:
			return err
		}
		if !e.Type().IsRegular() {
			return nil
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		rest, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		top, _, _ := strings.Cut(rest, string(os.PathSeparator))
		out[kindOf(top)].Bytes += info.Size()
		return nil
	})
	return out, err
}
