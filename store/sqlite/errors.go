package sqlite

import (
	"errors"
	"syscall"

	"modernc.org/sqlite"

	"agentsite/store/engine"
)

// Result codes of SQLite that need their own handling; the last group is extended codes.
const (
	sqliteBusy       = 5
	sqliteNoMem      = 7
	sqliteIOErr      = 10
	sqliteCorrupt    = 11
	sqliteFull       = 13
	sqliteCantOpen   = 14
	sqliteShmSize    = 4874 // the index of the WAL could not grow; nothing was written
	sqliteConstraint = 19
	sqliteNotADB     = 26

	// sqliteCorruptVTab is damage that a full-text index found in itself.
	sqliteCorruptVTab = 267

	sqliteConstraintUnique     = 2067
	sqliteConstraintPrimaryKey = 1555
	sqliteConstraintCheck      = 275
	sqliteConstraintForeignKey = 787
)

// ErrorCode returns the extended SQLite result code of err, 0 for other errors and nil.
func ErrorCode(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()
	}
	return 0
}

// IsFull reports whether err says that the disk has no room. Nothing of the write was stored then.
func IsFull(err error) bool {
	c := ErrorCode(err)
	return c&0xff == sqliteFull || c == sqliteShmSize
}

// IsPassing reports whether err comes from the state of the process or the machine and not from the file:
// no descriptor or memory is left, or another process holds the file.
func IsPassing(err error) bool {
	switch ErrorCode(err) & 0xff {
	case sqliteBusy, sqliteNoMem, sqliteCantOpen:
		return true
	}
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// classify returns an error of SQLite as an engine.Error with its reason; other errors unchanged.
func classify(err error) error {
	if err == nil || engine.ReasonOf(err) != 0 {
		return err
	}
	var reason engine.Reason
	switch c := ErrorCode(err); {
	case c == 0:
		return err
	case c == sqliteConstraintUnique, c == sqliteConstraintPrimaryKey:
		reason = engine.Duplicate
	case c == sqliteConstraintForeignKey:
		reason = engine.NoParent
	case c == sqliteConstraintCheck:
		reason = engine.BadValue
	case IsFull(err):
		reason = engine.DiskFull
	case c&0xff == sqliteIOErr:
		reason = engine.DiskFailed
	case c&0xff == sqliteBusy:
		reason = engine.Busy
	case c == sqliteCorruptVTab:
		reason = engine.IndexDamaged
	default:
		return err
	}
	return &engine.Error{Reason: reason, Err: err}
}
