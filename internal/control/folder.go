package control

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/settings"
	"agentsite/store"
)

// ErrInUse is returned by LockData if another process has locked the data folder.
var ErrInUse = errors.New("another agentsite runs on this data folder")

// LockData locks the data folder for this process until Release. It creates a missing folder, readable
// by its user only. It fails with ErrInUse if another process has the lock.
//
// The folder itself is locked, because whoever removes a file in it must not let a second process in.
// The file "lock" is locked too, for portals of versions that lock only that.
func LockData(dir string) (*DataLock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the data folder: %w", err)
	}
	if isReadOnly(dir) {
		return nil, fault.New(fault.Conflict, "Nothing can be written into the data folder %s. Give it to the user that the portal runs as, or mount its disk for writing.", dir)
	}
	return lockFolder(dir, true)
}

// isReadOnly reports whether this process cannot write into a folder, which exists.
func isReadOnly(dir string) bool {
	const writable = 2 // W_OK of access(2)
	err := syscall.Access(dir, writable)
	return err != nil && !errors.Is(err, os.ErrNotExist)
}

// lockFolder locks a folder and, if withFile is true, the file "lock" in it.
func lockFolder(dir string, withFile bool) (*DataLock, error) {
	folder, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("open the data folder: %w", err)
	}
	l := &DataLock{dir: dir, folder: folder}
	if err = l.lockAll(withFile); err == nil {
		err = l.CheckPlace() // The folder may have been replaced before it was locked.
	}
	if err != nil {
		l.Release()
		return nil, err
	}
	return l, nil
}

// DataLock is the exclusive right to use a data folder. The operating system releases it if the process
// dies.
type DataLock struct {
	dir    string
	folder *os.File
	file   *os.File // the file "lock"; nil for a folder that cannot be written
}

func (l *DataLock) lockAll(withFile bool) error {
	err := l.lock(l.folder)
	if errors.Is(err, ErrInUse) || !withFile {
		return err
	}
	// Network file systems have no locks of folders; there the file is the lock.
	if l.file, err = os.OpenFile(filepath.Join(l.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return fmt.Errorf("open the data folder: %w", err)
	}
	return l.lock(l.file)
}

func (l *DataLock) lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("%w (%s); stop it first, or choose another folder with --data", ErrInUse, l.dir)
	}
	if err != nil {
		return fmt.Errorf("lock the data folder: %w", err)
	}
	return nil
}

// CheckPlace returns an error if another folder has taken the place of the locked one, or it was moved
// or deleted.
func (l *DataLock) CheckPlace() error {
	locked, err := l.folder.Stat()
	if err != nil {
		return fmt.Errorf("look at the data folder: %w", err)
	}
	now, err := os.Stat(l.dir)
	if err == nil && os.SameFile(locked, now) {
		return nil
	}
	return fmt.Errorf("the data folder %s was moved, replaced or deleted while it was in use", l.dir)
}

// Release unlocks the data folder. It does so before it closes the files, because a process that is being started has
// its copies of them for a moment, and closing alone would leave the lock to these.
func (l *DataLock) Release() {
	for _, f := range []*os.File{l.file, l.folder} {
		if f != nil {
			_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) // closing follows
			f.Close()
		}
	}
}

// OpenKeys reads the portal's keys. It creates them only in a folder without a database, so that a
// database with a missing key is an error instead of getting a new identity.
func OpenKeys(cfg settings.Config) (*ident.Keys, error) {
	if dataExists(cfg) {
		return keyFiles(cfg).Load()
	}
	return keyFiles(cfg).Create()
}

func keyFiles(cfg settings.Config) ident.KeyFiles {
	return ident.KeyFiles{Dir: cfg.Data, Root: cfg.KeyFile}
}

// dataExists reports whether a portal has run on the data folder: it has a database, or the key that is
// always there if the database is on a server.
func dataExists(cfg settings.Config) bool {
	name := store.FileName
	if cfg.Database != "" {
		name = ident.SealKeyFile
	}
	_, err := os.Stat(filepath.Join(cfg.Data, name))
	return err == nil
}
