package control

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"agentsite/store"
)

// BackupTo writes a backup to the file path and returns its size. It writes to a temporary file beside
// path first and then renames it, so that an unfinished backup cannot be mistaken for a complete one. It
// removes those that killed backups left in the same folder, because they hold keys.
func BackupTo(ctx context.Context, c Control, path, passphrase string) (size int64, err error) {
	part, err := store.CreateScratch(filepath.Dir(path))
	if err != nil {
		return 0, fmt.Errorf("create the backup: %w", err)
	}
	defer part.Remove()
	f, err := os.OpenFile(part.Path, os.O_WRONLY, 0)
	if err != nil {
		return 0, fmt.Errorf("create the backup: %w", err)
	}
	if err := errors.Join(c.Backup(ctx, f, passphrase), f.Sync(), f.Close()); err != nil {
		return 0, err
	}
	if err := os.Rename(part.Path, path); err != nil {
		return 0, fmt.Errorf("keep the backup: %w", err)
	}
	st, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}
