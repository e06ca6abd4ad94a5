// Package engine declares the port between the stores and a database engine, so that the same stores run
// on SQLite and on PostgreSQL. Statements are written in the SQL that both engines take, with ? for
// parameters; see store/DESIGN.md for its rules.
package engine

import (
	"context"
	"database/sql"
	"log/slog"
	"time"

	"github.com/jmoiron/sqlx"
)

// DB is an open database. It is safe for concurrent use.
type DB interface {
	// Get reads one row into dest, a struct or scalar; sql.ErrNoRows when there is none.
	Get(ctx context.Context, dest any, query string, args ...any) error
	// List reads all rows into dest, a pointer to a slice. No rows are no error.
	List(ctx context.Context, dest any, query string, args ...any) error
	// Rows runs a query; the caller closes the rows and passes their error to Classify. The statement
	// stays prepared, so query must not contain values. The same holds for Get and List.
	Rows(ctx context.Context, query string, args ...any) (*sqlx.Rows, error)
	// Write runs fn in a transaction and returns once it is on disk. Writes run one after another. fn
	// may run more than once: it must set its results anew each time and have no other effects. It must
	// not block on anything but the database.
	Write(ctx context.Context, fn func(Tx) error) error
	// WriteSoon runs w at the beginning of the next transaction, and after delay at the latest. It does
	// not wait.
	WriteSoon(delay time.Duration, w SoonWrite)
	// Writable returns the error with which Write would refuse a write, nil if it would not.
	Writable() error
	// Words returns the full-text index of messages.
	Words() WordIndex
	// Log returns the logger that the database was opened with.
	Log() *slog.Logger
	// Close refuses new writes, waits for the queued ones and closes the database. A second call does
	// nothing.
	Close() error
	// Classify returns an error of the driver as an Error of this package; other errors unchanged.
	Classify(err error) error
}

// Tx is a transaction as one write sees it. It is valid only during the call that got it.
type Tx interface {
	// Exec runs a statement that changes rows. The statement stays prepared, so query must not contain
	// values.
	Exec(query string, args ...any) (sql.Result, error)
	// Send is Exec for a statement with a result that does not matter. It may run later, together with those
	// that follow: before the next call of another method, or at the end of the write, which returns its
	// error then.
	Send(query string, args ...any) error
	// Get reads one row into dest; sql.ErrNoRows when there is none.
	Get(dest any, query string, args ...any) error
	// List reads all rows into dest, a pointer to a slice, and sees the changes of the transaction.
	List(dest any, query string, args ...any) error
	// InsertRows inserts rows, many by one statement. insert is the statement without the rows, which
	// follow its word VALUES; all rows have the same number of values.
	InsertRows(insert string, rows [][]any) error
	// Try runs fn, which executes one statement. If a constraint refuses it, the transaction goes on.
	Try(fn func() error) error
	// RequireRollback causes a rollback if the current write fails, even if it changed no row. Call it
	// for changes of data in memory that belongs to the transaction.
	RequireRollback()
	// AtEnd calls e.Ended once, when the transaction has ended, however often e was passed.
	AtEnd(e Ender)
}

// Ender is called at the end of a transaction, before any caller is answered. A transaction that is
// rolled back and tried again ends several times.
type Ender interface{ Ended(committed bool) }

// SoonWrite is a small write that may share the commit of the next write.
type SoonWrite interface {
	// WriteRows changes rows, by the rules of DB.Write.
	WriteRows(t Tx) error
	// NoteOutcome is called once with the outcome of the transaction.
	NoteOutcome(err error)
}
