package control

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"agentsite/internal/ident"
	"agentsite/store"
)

// ErrInUse says that another process owns the data folder.
var ErrInUse = errors.New("another agentsite runs on this data folder")

// LockData makes this process the owner of the data folder until release is
// called; the folder is created private if it is missing.
func LockData(dir string) (*DataLock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the data folder: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the data folder: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w (%s); stop it first, or choose another folder with --data", ErrInUse, dir)
		}
		return nil, fmt.Errorf("lock the data folder: %w", err)
	}
	return &DataLock{f}, nil
}

// DataLock is the right to use a data folder, which one process has at a time.
type DataLock struct{ file *os.File }

// Release gives the data folder back.
func (l *DataLock) Release() { l.file.Close() }

// OpenKeys reads the portal's keys; a folder without a database gets new ones
// first, so that a database never stands there without its keys.
func OpenKeys(dir string) (*ident.Keys, error) {
	if dataExists(dir) {
		return ident.LoadKeys(dir)
	}
	return ident.CreateKeys(dir)
}

// dataExists reports whether a portal has ever run on the folder.
func dataExists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, store.FileName))
	return err == nil
}
