// Package space watches the free space of the data folder's file system, and holds a reserve: a file
// that is given up when the disk is full, so that an operator can still sign in, disable and delete.
package space

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"agentsite/internal/fault"
)

// FileName is the name of the reserve in the data folder.
const FileName = "reserve"

const (
	// askEvery bounds how often the file system is asked.
	askEvery = time.Second
	// fullBelow is the free space below which the disk counts as full: a few commits and the growth of
	// the WAL need that much.
	fullBelow = 4 << 20
	// startRoom is the part of the reserve that stays when it is given up, for the files that a start needs:
	// the WAL and its index.
	startRoom = 1 << 20
	// retryAfter is the advised wait, because an operator has to make room.
	retryAfter = 5 * time.Minute
)

// Config holds the sizes in bytes; a zero Config watches nothing.
type Config struct {
	// Floor is the free space below which only writes of operators, short texts of accounts and the
	// outcomes of tasks are stored. ShortText is the size of a text that still passes.
	Floor, ShortText int64
	// Reserve is the size of the reserve, 0 for none.
	Reserve int64
	// Meter measures the free space; nil asks the file system.
	Meter Meter
}

// Meter measures the free bytes of a folder's file system for a process without privileges.
type Meter interface {
	FreeBytes(dir string) (int64, error)
}

// Level is the state of the disk.
type Level int

// The levels. At Low only short texts pass, at Full only operators; outcomes of tasks pass at each.
const (
	Ample Level = iota
	Low
	Full
)

// Space watches the file system of one folder. It is safe for concurrent use.
type Space struct {
	dir string
	cfg Config

	mu    sync.Mutex // guards the fields below
	asked time.Time
	free  int64
	known bool  // the file system has answered
	size  int64 // size of the reserve
	given bool  // the reserve was given up, by this process or an earlier one
}

// New returns the watch of a folder, which must exist. If the disk is full, the reserve is given up here,
// at last whole, so that the database can be opened.
func New(dir string, cfg Config) *Space {
	s := &Space{dir: dir, cfg: cfg}
	if cfg.Meter == nil {
		s.cfg.Meter = fileSystem{}
	}
	if st, err := os.Stat(s.path()); err == nil {
		s.size = st.Size()
		s.given = s.size <= startRoom && s.size < cfg.Reserve
	}
	if s.Level() == Full && s.free < startRoom {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.shrink(0)
	}
	return s
}

func (s *Space) path() string { return filepath.Join(s.dir, FileName) }

// Level returns the state of the disk, which may be askEvery old. It gives up the reserve if the disk is
// full. An error of the file system counts as Ample, because the database reports its own errors.
func (s *Space) Level() Level {
	if s == nil || s.cfg.Floor == 0 && s.cfg.Reserve == 0 {
		return Ample
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.measure(false)
	switch {
	case !s.known:
		return Ample
	case s.free < fullBelow && s.size > startRoom:
		s.shrink(startRoom)
		return Full
	case s.free < fullBelow, s.given && s.free < s.cfg.Floor+s.cfg.Reserve-s.size:
		// The room of the reserve is for operators, until Refill has taken it back.
		return Full
	case s.free < s.cfg.Floor:
		return Low
	}
	return Ample
}

// measure asks the file system, at most once in askEvery unless it must be now. The caller must hold mu.
func (s *Space) measure(now bool) {
	if !now && !s.asked.IsZero() && time.Since(s.asked) < askEvery {
		return
	}
	free, err := s.cfg.Meter.FreeBytes(s.dir)
	s.asked, s.free, s.known = time.Now(), free, err == nil
}

// shrink gives up the reserve except for rest bytes, and reports whether that made room. The caller must
// hold mu.
func (s *Space) shrink(rest int64) bool {
	if s.size <= rest || os.Truncate(s.path(), rest) != nil {
		return false
	}
	s.size, s.given = rest, true
	s.measure(true)
	return true
}

// FreeBytes returns the free bytes of the disk, at most askEvery old; ok is false if they are not known.
func (s *Space) FreeBytes() (free int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.measure(false)
	return s.free, s.known
}

// GiveUp gives up the reserve and reports whether that made room.
func (s *Space) GiveUp() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shrink(startRoom)
}

// Refill creates the reserve again if it is missing and the disk has room for it above the floor. It
// creates the part for a start as soon as that fits.
func (s *Space) Refill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.size >= s.cfg.Reserve {
		return nil
	}
	s.measure(true)
	want := s.cfg.Reserve
	if s.free < s.cfg.Floor+want {
		want = startRoom
	}
	if !s.known || s.size >= want || s.free < want+fullBelow/2 || want == startRoom && !s.given {
		return nil
	}
	tmp := s.path() + ".new"
	err := allocate(tmp, want)
	if err == nil {
		err = os.Rename(tmp, s.path())
	}
	if err != nil {
		if rerr := os.Remove(tmp); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
		return fmt.Errorf("allocate the reserve: %w", err)
	}
	s.size, s.given = want, want < s.cfg.Reserve
	s.measure(true)
	return nil
}

// Check returns an Unavailable fault if add bytes must not be stored now. short is true for an account,
// whose short texts still pass on a disk that is nearly full; it is false for guests and other portals.
// Do not call it for operators and for the outcomes of tasks.
func (s *Space) Check(add int64, short bool) error {
	switch s.Level() {
	case Ample:
		return nil
	case Low:
		if short && add <= s.cfg.ShortText {
			return nil
		}
		text := "This portal's disk is nearly full, so that only short texts of accounts are stored."
		return &fault.Error{Kind: fault.Unavailable, Full: true, RetryAfter: retryAfter,
			Safe: text + " Nothing was stored. Try again when the operator has made room."}
	default:
		return ErrFull(nil)
	}
}

// ErrFull returns the fault for a write that found the disk full; cause may be nil.
func ErrFull(cause error) error {
	return &fault.Error{Kind: fault.Unavailable, Full: true, RetryAfter: retryAfter, Err: cause,
		Safe: "This portal's disk is full; nothing was stored. Reading goes on. Try again when the operator has made room."}
}
