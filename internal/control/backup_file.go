package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"agentsite/store"
)

// BackupTo writes a backup to the file path, which must not exist, and returns its size. It writes to a
// temporary file beside path first and then renames it, so that an unfinished backup cannot be mistaken for
// a complete one. It removes those that killed backups left in the same folder, because they hold keys.
func BackupTo(ctx context.Context, c Control, path, passphrase string) (size int64, err error) {
	if err := refuseExisting(path); err != nil {
		return 0, err
	}
	return writeWhole(path, func(w io.Writer) error { return c.Backup(ctx, w, passphrase) })
}

// ExportUserTo writes all data about an account to the file path and returns its size, as BackupTo does, but
// replaces an existing file.
func ExportUserTo(ctx context.Context, c Control, name, path string) (size int64, err error) {
	return writeWhole(path, func(w io.Writer) error { return c.ExportUser(ctx, name, w) })
}

// refuseExisting returns an error if there is a file at path. It may be the only good copy, so it is not replaced.
func refuseExisting(path string) error {
	switch _, err := os.Lstat(path); {
	case err == nil:
		return fmt.Errorf("%s exists already and is left as it is; use another name or delete it first", path)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return nil
}

// writeWhole writes the file path, which appears once it is complete.
func writeWhole(path string, write func(io.Writer) error) (size int64, err error) {
	part, err := store.CreateScratch(filepath.Dir(path))
	if err != nil {
		return 0, fmt.Errorf("create %s: %w", path, err)
	}
	defer part.Remove()
	f, err := os.OpenFile(part.Path, os.O_WRONLY, 0)
	if err != nil {
		return 0, fmt.Errorf("create %s: %w", path, err)
	}
	if err := errors.Join(write(f), f.Sync(), f.Close()); err != nil {
		return 0, err
	}
	if err := os.Rename(part.Path, path); err != nil {
		return 0, fmt.Errorf("keep %s: %w", path, err)
	}
	st, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}
