package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// cached is the folder with one compiled module.
type cached struct {
	path string
	used time.Time
	size int64
}

// pruneCache deletes the folders of modules that were used longest ago until all are within most bytes. It marks the
// folder of keep as used and does not delete it.
func pruneCache(folder, keep string, most int64) error {
	now := time.Now()
	err := os.Chtimes(filepath.Join(folder, keep), now, now)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // it is loaded for the first time
	}
	entries, rerr := os.ReadDir(folder)
	if err = errors.Join(err, rerr); err != nil {
		return err
	}
	var list []cached
	var all int64
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !e.IsDir() {
			continue
		}
		c := cached{path: filepath.Join(folder, e.Name()), used: info.ModTime()}
		c.size = sizeOf(c.path)
		all += c.size
		if e.Name() != keep {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b cached) int { return a.used.Compare(b.used) })
	for _, c := range list {
		if all <= most {
			break
		}
		if err := os.RemoveAll(c.path); err != nil {
			return err
		}
		all -= c.size
	}
	return nil
}

// sizeOf returns the bytes of the files in a folder, as far as they can be read.
func sizeOf(folder string) (size int64) {
	_ = filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := d.Info(); err == nil && !d.IsDir() {
			size += info.Size()
		}
		return nil
	})
	return size
}
