package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"

	"agentsite/store/engine"
)

// Codes of PostgreSQL that need their own handling, see appendix A of its manual.
const (
	uniqueViolation     = "23505"
	foreignKeyViolation = "23503"
	checkViolation      = "23514"
	tooLong             = "22001"
	badEncoding         = "22021" // also the character NUL
	notRepresentable    = "22P05"
	diskFull            = "53100"
	ioError             = "58030"
	tooManyConnections  = "53300"
	lockNotAvailable    = "55P03"
	queryCanceled       = "57014" // statement_timeout
	adminShutdown       = "57P01"
	crashShutdown       = "57P02"
	cannotConnectNow    = "57P03"
	idleInTransaction   = "25P03"
	serialization       = "40001"
	deadlock            = "40P01"
	undefinedTable      = "42P01"
	undefinedColumn     = "42703"
	duplicateTable      = "42P07"
	dataCorrupted       = "XX001"
	indexCorrupted      = "XX002"
)

// codeOf returns the SQLSTATE of err, "" for other errors and nil.
func codeOf(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// classify returns an error of PostgreSQL as an engine.Error with its reason; other errors unchanged.
func classify(err error) error {
	if err == nil || engine.ReasonOf(err) != 0 || errors.Is(err, sql.ErrNoRows) {
		return err
	}
	var reason engine.Reason
	switch codeOf(err) {
	case uniqueViolation:
		reason = engine.Duplicate
	case foreignKeyViolation:
		reason = engine.NoParent
	case checkViolation, tooLong, badEncoding, notRepresentable:
		reason = engine.BadValue
	case diskFull:
		reason = engine.DiskFull
	case ioError:
		reason = engine.DiskFailed
	case tooManyConnections, lockNotAvailable, queryCanceled, serialization, deadlock:
		reason = engine.Busy
	default:
		if !isLost(err) {
			return err
		}
		reason = engine.Unreachable
	}
	return &engine.Error{Reason: reason, Err: err}
}

// IsUnusable reports whether err says that a schema is damaged, lacks a part, or was written by a newer
// binary.
func IsUnusable(err error) bool {
	switch codeOf(err) {
	case undefinedTable, undefinedColumn, duplicateTable, dataCorrupted, indexCorrupted:
		return true
	}
	return errors.Is(err, errNewer)
}

// isLost reports whether err says that the connection to the server was lost or could not be made.
func isLost(err error) bool {
	switch codeOf(err) {
	case adminShutdown, crashShutdown, cannotConnectNow, idleInTransaction:
		return true
	case "":
	default:
		return false
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok && !errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, pgconn.ErrConnClosed)
}
