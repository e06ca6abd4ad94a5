package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"agentsite/internal/ident"
	"agentsite/store/chats"
	"agentsite/store/replica"
	"agentsite/store/sqlite"
)

// CopiedFolder is the name of the data folder in a copy by CopyFolder.
const CopiedFolder = "data"

// CopyFolder copies a data folder that cannot be written to a temporary folder of the system, so that its
// databases can be opened: SQLite needs to write beside a database with a write-ahead log. The databases
// and keys are copied, the files of messages are linked. The copy is the folder "data" in the scratch. No
// portal may be running on the original. The caller calls Remove.
func CopyFolder(ctx context.Context, dir string) (_ *Scratch, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the data folder: %w", err)
	}
	sqlite.RemoveAbandoned(os.TempDir())
	to, err := sqlite.MakeScratch(os.TempDir())
	if err != nil {
		return nil, fmt.Errorf("make room for a copy of the data: %w", err)
	}
	defer func() {
		if err != nil {
			to.Remove()
		}
	}()
	// The scratch itself is locked, so the data folder, which its user locks, is in it.
	copied := filepath.Join(to.Path, CopiedFolder)
	if err := os.Mkdir(copied, 0o700); err != nil {
		return nil, fmt.Errorf("make room for a copy of the data: %w", err)
	}
	for _, e := range entries {
		from, name := filepath.Join(dir, e.Name()), filepath.Join(copied, e.Name())
		switch {
		case e.Name() == chats.BlobsDir:
			err = os.Symlink(from, name)
		case e.Type().IsRegular() && isNeeded(e.Name()):
			err = copyTo(ctx, from, name)
		}
		if err != nil {
			return nil, fmt.Errorf("copy the data, which cannot be written where it is, to %s: %w; set TMPDIR to a folder with more room", to.Path, err)
		}
	}
	return to, nil
}

// isNeeded reports whether a file of a data folder is copied by CopyFolder: a database, its write-ahead
// log or mark of damage, or a key.
func isNeeded(name string) bool {
	switch strings.TrimSuffix(strings.TrimSuffix(name, "-wal"), ".damaged") {
	case sqlite.FileName, replica.FileName, ident.PortalKeyFile, ident.PublicKeyFile, ident.SealKeyFile,
		ident.OperationalKeysFile:
		return true
	}
	return false
}

func copyTo(ctx context.Context, from, to string) error {
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = copyFile(ctx, f, from)
	return errors.Join(err, f.Close())
}

// NeedsCopy reports whether the checks of a data folder that cannot be written need CopyFolder. A database
// without a write-ahead log can be read in place; a replica cannot, because its checks repair it.
func NeedsCopy(dir string) bool {
	wal, err := os.Stat(filepath.Join(dir, sqlite.FileName+"-wal"))
	if err == nil && wal.Size() > 0 {
		return true
	}
	_, err = os.Stat(filepath.Join(dir, replica.FileName))
	return !errors.Is(err, os.ErrNotExist)
}
