package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jmoiron/sqlx"
)

// CopyInto writes a consistent copy of the database, as of one moment, to a new file. The file is
// readable by its owner only, and on disk when CopyInto returns. VACUUM INTO reads every row, so that
// damage fails the copy, and deleted data is not in the copy.
func CopyInto(ctx context.Context, c *sqlx.Conn, path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := c.ExecContext(ctx, "VACUUM INTO ?", path); err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir flushes the names in dir to disk, so that new and renamed files survive a power cut.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
