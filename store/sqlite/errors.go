package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"syscall"

	"modernc.org/sqlite"

	"agentsite/internal/fault"
	"agentsite/store/space"
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

// IsIndexDamaged reports whether err is damage that a full-text index found in itself. The index can be
// filled again, so writing need not stop.
func IsIndexDamaged(err error) bool { return ErrorCode(err) == sqliteCorruptVTab }

// IsDuplicate reports whether err says that a unique or primary key is taken.
func IsDuplicate(err error) bool {
	c := ErrorCode(err)
	return c == sqliteConstraintUnique || c == sqliteConstraintPrimaryKey
}

// MapError returns err as a fault: NotFound for sql.ErrNoRows and a missing referenced row, Conflict for
// a duplicate, Invalid for a failed check, Unavailable for a full or busy database. Other errors, faults
// and nil are returned unchanged.
func MapError(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return fault.Wrap(fault.NotFound, err, "Not found.")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case IsDuplicate(err):
		return fault.Wrap(fault.Conflict, err, "That already exists.")
	case ErrorCode(err) == sqliteConstraintForeignKey:
		return fault.Wrap(fault.NotFound, err, "What this belongs to is gone.")
	case ErrorCode(err) == sqliteConstraintCheck:
		return fault.Wrap(fault.Invalid, err, "A value is too long or not allowed.")
	case IsFull(err):
		return space.ErrFull(err)
	case ErrorCode(err)&0xff == sqliteBusy:
		return fault.Wrap(fault.Unavailable, err, "This portal is busy. Try again in a moment.")
	}
	return err
}
