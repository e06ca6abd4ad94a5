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

// ErrInUse is returned by LockData if another process has locked the data folder.
var ErrInUse = errors.New("another agentsite runs on this data folder")

// LockData locks the data folder for this process until Release. It creates a missing folder, readable
// by its user only. It fails with ErrInUse if another process has the lock.
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

// DataLock is the exclusive right to use a data folder. The operating system releases it if the process
// dies.
type DataLock struct{ file *os.File }

// Release unlocks the data folder.
func (l *DataLock) Release() { l.file.Close() }

// OpenKeys reads the portal's keys. It creates them only in a folder without a database, so that a
// database with a missing key is an error instead of getting a new identity.
func OpenKeys(dir string) (*ident.Keys, error) {
	if dataExists(dir) {
		return ident.LoadKeys(dir)
	}
	return ident.CreateKeys(dir)
}

// dataExists reports whether the folder has a database, that is, whether a portal has run on it.
func dataExists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, store.FileName))
	return err == nil
}
