package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"modernc.org/sqlite"

	"agentsite/internal/fault"
)

// SQLite's primary result codes that are handled differently.
const (
	sqliteBusy       = 5
	sqliteIOErr      = 10
	sqliteCorrupt    = 11
	sqliteFull       = 13
	sqliteConstraint = 19
	sqliteNotADB     = 26

	// sqliteCorruptVTab is damage that the index of words found in itself.
	sqliteCorruptVTab = 267

	sqliteConstraintUnique     = 2067
	sqliteConstraintPrimaryKey = 1555
	sqliteConstraintCheck      = 275
	sqliteConstraintForeignKey = 787
)

// ErrorCode is the extended SQLite result code of err, or 0.
func ErrorCode(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()
	}
	return 0
}

// IsIndexDamaged reports whether err is damage that a full-text index found in
// itself. The index can be filled again.
func IsIndexDamaged(err error) bool { return ErrorCode(err) == sqliteCorruptVTab }

// IsDuplicate reports whether err says that a unique value is taken.
func IsDuplicate(err error) bool {
	c := ErrorCode(err)
	return c == sqliteConstraintUnique || c == sqliteConstraintPrimaryKey
}

// MapError gives a driver error its kind; errors that have one pass through.
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
	case ErrorCode(err)&0xff == sqliteFull:
		return fault.Wrap(fault.Unavailable, err,
			"This portal's disk is full; nothing was stored. Try again when the operator has made room.")
	case ErrorCode(err)&0xff == sqliteBusy:
		return fault.Wrap(fault.Unavailable, err, "This portal is busy. Try again in a moment.")
	}
	return err
}
