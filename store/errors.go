package store

import (
	"context"
	"database/sql"
	"errors"

	"modernc.org/sqlite"

	"agentsite/internal/fault"
)

// SQLite's primary result codes that we tell apart.
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

// code is the extended SQLite result code of err, or 0.
func code(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()
	}
	return 0
}

// isIndexDamaged reports whether err is damage that a full-text index found in
// itself. The index can be filled again.
func isIndexDamaged(err error) bool { return code(err) == sqliteCorruptVTab }

// duplicate reports whether err says that a unique value is taken.
func duplicate(err error) bool {
	c := code(err)
	return c == sqliteConstraintUnique || c == sqliteConstraintPrimaryKey
}

// mapError gives a driver error its kind; errors that have one pass through.
func mapError(err error) error {
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
	case duplicate(err):
		return fault.Wrap(fault.Conflict, err, "That already exists.")
	case code(err) == sqliteConstraintForeignKey:
		return fault.Wrap(fault.NotFound, err, "What this belongs to is gone.")
	case code(err) == sqliteConstraintCheck:
		return fault.Wrap(fault.Invalid, err, "A value is too long or not allowed.")
	case code(err)&0xff == sqliteFull:
		return fault.Wrap(fault.Unavailable, err, "This portal's disk is full; nothing was stored. Try again when the operator has made room.")
	case code(err)&0xff == sqliteBusy:
		return fault.Wrap(fault.Unavailable, err, "This portal is busy. Try again in a moment.")
	}
	return err
}
