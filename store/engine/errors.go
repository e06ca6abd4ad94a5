package engine

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"agentsite/internal/fault"
	"agentsite/store/space"
)

// Reason says why an engine refused a statement.
type Reason int

const (
	// Duplicate: a unique or primary key is taken.
	Duplicate Reason = iota + 1
	// NoParent: a referenced row is missing.
	NoParent
	// BadValue: a check of a column or a limit of the engine refused a value.
	BadValue
	// DiskFull: nothing of the write was stored.
	DiskFull
	// DiskFailed: the disk or the file system reported an I/O error. Whether the write is stored shows only after a
	// restart.
	DiskFailed
	// Busy: another process holds the database, or the server refuses connections for now.
	Busy
	// Unreachable: the server does not answer, or the connection to it was lost.
	Unreachable
	// IndexDamaged is damage that a full-text index found in itself. The index can be filled again, so
	// writing need not stop.
	IndexDamaged
)

// Error is an error of a database driver with its reason.
type Error struct {
	Reason Reason
	Err    error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// ReasonOf returns the reason of an Error in err, 0 for other errors and nil.
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return 0
}

// retryAfter is the advice of faults that pass by themselves.
const retryAfter = time.Second

// passing returns an Unavailable fault with advice when to try again.
func passing(cause error, safe string) error {
	return &fault.Error{Kind: fault.Unavailable, Safe: safe, RetryAfter: retryAfter, Err: cause}
}

// MapError returns err as a fault: NotFound for sql.ErrNoRows and a missing referenced row, Conflict for
// a duplicate, Invalid for a refused value, Unavailable for a full, failing or busy database. Other errors, faults
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
	}
	switch ReasonOf(err) {
	case Duplicate:
		return fault.Wrap(fault.Conflict, err, "That already exists.")
	case NoParent:
		return fault.Wrap(fault.NotFound, err, "What this belongs to is gone.")
	case BadValue:
		return fault.Wrap(fault.Invalid, err, "A value is too long or not allowed.")
	case DiskFull:
		return space.ErrFull(err)
	case DiskFailed:
		return fault.Wrap(fault.Unavailable, err,
			"This portal's disk failed. Its operator has to look at it; look again later whether this was stored.")
	case Unreachable:
		return passing(err, "This portal's database does not answer. Try again in a moment.")
	case Busy:
		return passing(err, "This portal is busy. Try again in a moment.")
	}
	return err
}
