package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// ScratchPrefix begins the names of temporary files and folders of a backup, a restore or an upload; a
// crash can leave them.
const ScratchPrefix = ".agentsite-tmp-"

// Scratch is a temporary file or folder that may hold keys and messages. Its lock shows other processes
// that it is in use; the operating system releases the lock if the process dies, and RemoveAbandoned
// removes the scratch then. Its maker calls Remove.
type Scratch struct {
	Path string
	lock *os.File
}

// MakeScratch creates a temporary folder in dir, readable by its owner only.
func MakeScratch(dir string) (*Scratch, error) {
	return lockScratch(func() (string, error) { return os.MkdirTemp(dir, ScratchPrefix) })
}

// CreateScratch creates a temporary file in dir, readable by its owner only.
func CreateScratch(dir string) (*Scratch, error) {
	return lockScratch(func() (string, error) {
		f, err := os.CreateTemp(dir, ScratchPrefix)
		if err != nil {
			return "", err
		}
		return f.Name(), f.Close()
	})
}

// lockScratch locks the path that create makes. It tries again when RemoveAbandoned came between the two.
func lockScratch(create func() (string, error)) (*Scratch, error) {
	for range 3 {
		path, err := create()
		if err != nil {
			return nil, err
		}
		f, err := os.Open(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		// On file systems without locks a scratch is removed by the start of the portal only.
		_ = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if sameFile(f, path) {
			return &Scratch{path, f}, nil
		}
		f.Close()
	}
	return nil, errors.New("another process removes temporary files")
}

// sameFile reports whether path is still the name of the open file.
func sameFile(f *os.File, path string) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(path)
	return err == nil && os.SameFile(open, named)
}

// Remove deletes the scratch, if it still has its name.
func (s *Scratch) Remove() {
	if sameFile(s.lock, s.Path) {
		os.RemoveAll(s.Path)
	}
	s.lock.Close()
}

// RemoveAbandoned deletes the scratch in dir that killed processes left, and none that is in use.
func RemoveAbandoned(dir string) {
	for _, path := range scratchIn(dir) {
		f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil && sameFile(f, path) {
			os.RemoveAll(path)
		}
		f.Close()
	}
}

// RemoveScratch deletes temporary files in dir that a crash left. No portal or restore may be using the
// folder.
func RemoveScratch(dir string) {
	for _, path := range scratchIn(dir) {
		os.RemoveAll(path)
	}
}

func scratchIn(dir string) []string {
	list, err := filepath.Glob(filepath.Join(EscapeGlob(dir), ScratchPrefix+"*"))
	if err != nil {
		return []string{} // cannot happen: the pattern is escaped
	}
	return list
}

func EscapeGlob(path string) string {
	var b []byte
	for _, c := range []byte(path) {
		if c == '*' || c == '?' || c == '[' || c == '\\' {
			b = append(b, '\\')
		}
		b = append(b, c)
	}
	return string(b)
}

// CheckPlace returns an error if the database file or its write-ahead log was moved, replaced or deleted
// since it was opened: later writes are not in the files that the next start reads. Close
// saves the content of a deleted log.
func (f *DB) CheckPlace() error {
	now, err := os.Stat(f.path)
	if err != nil || !os.SameFile(f.place, now) {
		return fmt.Errorf("the database %s was moved, replaced or deleted while the portal ran; "+
			"put it back and start the portal again", f.path)
	}
	// SQLite keeps one log as long as the database is open.
	if now, err = os.Stat(f.path + "-wal"); f.walPlace != nil && (err != nil || !os.SameFile(f.walPlace, now)) {
		return fmt.Errorf("%s-wal was moved, replaced or deleted while the portal ran; "+
			"its content is saved in the database now, so do not put it back, and start the portal again", f.path)
	}
	return nil
}
