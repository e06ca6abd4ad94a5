// Package sqlite opens SQLite files, gives them one writer that commits the waiting writes as one
// transaction at synchronous=FULL (group commit), and maps their errors. It is the only package that
// knows the driver. It knows the portal's file by name and migrations, and no tables; packages with
// statements take a DB and a Tx.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite" // registers the driver "sqlite"
)

const (
	readConns = 4
	// readCacheKB is the page cache of each reading connection. It holds the inner pages of a large
	// database; the cache of the operating system holds the rest. SQLite returns this memory only on
	// close.
	readCacheKB = 1 << 10
	// writeCacheKB is the page cache of the one writing connection.
	writeCacheKB = 8 << 10
	// checkpointEvery is how often the writer checks the size of the WAL, which constant readers keep
	// from shrinking.
	checkpointEvery = time.Minute
	// checkpointBytes is the size from which the WAL is emptied. An idle portal stays below it and does
	// nothing.
	checkpointBytes = 8 << 20
	// busyTimeout is how long a connection waits for locks of others, in milliseconds.
	busyTimeout = 5000
)

// Kind describes one kind of database file: the portal's or the replica.
type Kind struct {
	ID         int64  // the application id in the file's header
	Migrations fs.FS  // the migrations of this kind
	Schema     string // SQL of the schema after all migrations
	// WriterOptions are added to the writer's data source name.
	WriterOptions string
	// copied is true if the database is copied before its schema is migrated; see SchemaCopy.
	copied bool
	// DamagedSuffix, with the database's name before it, is the name of an empty file that marks a
	// damaged database; "" for no mark.
	DamagedSuffix string
	// Reserve is room on the disk that is given up when the disk is full; nil for none.
	Reserve Reserve
}

// Reserve is room on the disk that can be given up. GiveUp reports whether that made room.
type Reserve interface{ GiveUp() bool }

// DB is one SQLite database with one writing connection and a pool of reading ones. It is safe for
// concurrent use. Types with more knowledge of a database embed it.
type DB struct {
	path  string
	place os.FileInfo // of the file at path when it was opened
	// walPlace is likewise of the write-ahead log; nil if it was not there yet.
	walPlace os.FileInfo

	kind  Kind
	log   *slog.Logger
	wpool *sqlx.DB
	wconn *sqlx.Conn
	wstmt map[string]*sqlx.Stmt // used by the writer goroutine only
	read  *sqlx.DB
	rstmt sync.Map // prepared statement by query

	ops   chan *op
	flush chan struct{} // has capacity 1: wakes the writer for the writes in soon
	// between receives functions that the writer's goroutine calls between two transactions.
	between chan func()
	stop    chan struct{}
	done    chan struct{}
	closed  atomic.Bool
	// broken is set once, after an I/O error: all writing stops then, because after a failed fsync the
	// state on disk is unknown. fatal is closed at the same time.
	broken atomic.Pointer[error]
	fatal  chan struct{}

	soonMu sync.Mutex // guards soon
	soon   []*op      // writes to run at the beginning of the next transaction
}

// Open opens a database, migrates its schema and starts its writer. The caller closes it.
func Open(ctx context.Context, path string, k Kind, log *slog.Logger) (*DB, error) {
	f, err := openWriter(ctx, path, k, log)
	if err != nil {
		return nil, err
	}
	if f.place, err = os.Stat(path); err == nil {
		f.read, err = Connect(path, ReadDSN(path), readConns)
	}
	if err == nil {
		if err = checkReaders(ctx, f.read); err != nil {
			f.read.Close()
		}
	}
	if err != nil {
		_ = f.closeWriter() // return the first error
		return nil, err
	}
	if f.walPlace, err = os.Stat(path + "-wal"); err != nil {
		f.walPlace = nil
	}
	go f.runWriter()
	return f, nil
}

// openWriter opens the writing connection of a database and migrates its schema.
func openWriter(ctx context.Context, path string, k Kind, log *slog.Logger) (*DB, error) {
	f := &DB{
		path: path, kind: k, log: log,
		wstmt: make(map[string]*sqlx.Stmt),
		ops:   make(chan *op, maxQueuedWrites), flush: make(chan struct{}, 1), between: make(chan func()),
		stop: make(chan struct{}), done: make(chan struct{}), fatal: make(chan struct{}),
	}
	var err error
	if f.wpool, err = Connect(path, k.writeDSN(path), 1); err != nil {
		return nil, err
	}
	if f.wconn, err = f.wpool.Connx(ctx); err != nil {
		f.wpool.Close()
		if IsFull(err) {
			return nil, fmt.Errorf("open database %s: the disk is full; make room, for example by moving old backups away, and start again: %w", path, err)
		}
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	if err := f.prepareFile(ctx); err != nil {
		_ = f.closeWriter() // return the first error
		return nil, err
	}
	return f, nil
}

func (f *DB) closeWriter() error { return errors.Join(f.wconn.Close(), f.wpool.Close()) }

// Close refuses new writes, waits for the queued ones and closes the database. A second call does
// nothing.
func (f *DB) Close() error {
	if f.closed.Swap(true) {
		return nil
	}
	close(f.stop)
	<-f.done
	errs := []error{f.read.Close()}
	// database/sql does not close prepared statements with their connection. With one left open, SQLite
	// keeps the file and the WAL, and a copy of the database file alone would lack the WAL's content.
	for _, s := range f.wstmt {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, f.closeWriter())...)
}

// Fatal returns a channel that is closed when an error has stopped all writing; Err returns that error.
// The portal should exit then and be started again.
func (f *DB) Fatal() <-chan struct{} { return f.fatal }

// Err returns the error for which Fatal was closed, nil before.
func (f *DB) Err() error {
	if p := f.broken.Load(); p != nil {
		return *p
	}
	return nil
}

// Log returns the logger that Open got.
func (f *DB) Log() *slog.Logger { return f.log }

// Path returns the path of the database file.
func (f *DB) Path() string { return f.path }

func Connect(path, dsn string, conns int) (*sqlx.DB, error) {
	db, err := sqlx.Open("sqlite", dsn)
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns) // Keep all connections, because checkReaders has checked these.
	return db, nil
}

// writeDSN returns the data source name of the writer, with the settings that durability needs.
func (k Kind) writeDSN(path string) string {
	return fmt.Sprintf("file:%s?_busy_timeout=%d&_journal_mode=WAL&_synchronous=%s&_foreign_keys=1&_txlock=immediate&_dqs=0&%s",
		EscapePath(path), busyTimeout, Synchronous, k.WriterOptions)
}

// WriteDSN returns the data source name of a writer of the portal's database, for tests and tools.
func WriteDSN(path string) string { return portalFile().writeDSN(path) }

// FillDSN returns the data source name for filling a new file that is thrown away if that fails: without a
// journal, flushes and checks of references.
func FillDSN(path string) string {
	return fmt.Sprintf("file:%s?_busy_timeout=%d&_journal_mode=OFF&_synchronous=OFF&_foreign_keys=0&_dqs=0",
		EscapePath(path), busyTimeout)
}

func ReadDSN(path string) string {
	return fmt.Sprintf("file:%s?mode=ro&_query_only=1&_busy_timeout=%d&_foreign_keys=1&_dqs=0&_pragma=cache_size(-%d)",
		EscapePath(path), busyTimeout, readCacheKB)
}

// CopyDSN returns the data source name for a copy. It lacks query_only, which would forbid VACUUM INTO
// to write its copy.
func CopyDSN(path string) string {
	return fmt.Sprintf("file:%s?mode=ro&_busy_timeout=%d&_dqs=0", EscapePath(path), busyTimeout)
}

// EscapePath escapes characters that an SQLite file URI would read as its own syntax.
func EscapePath(path string) string { return (&url.URL{Path: path}).EscapedPath() }

// prepareFile checks the settings of the writer and migrates the schema. It refuses a file of a newer
// binary.
func (f *DB) prepareFile(ctx context.Context) error {
	if err := checkPragmas(ctx, f.wconn, writerPragmas()); err != nil {
		return err
	}
	var app int64
	if err := f.wconn.GetContext(ctx, &app, "PRAGMA application_id"); err != nil {
		return fmt.Errorf("read database %s: %w", f.path, err)
	}
	return f.migrateSchema(ctx, app != f.kind.ID)
}

func writerPragmas() map[string]string {
	return map[string]string{"journal_mode": "wal", "synchronous": synchronousValue, "foreign_keys": "1",
		"busy_timeout": strconv.Itoa(busyTimeout)}
}

func checkPragmas(ctx context.Context, c *sqlx.Conn, want map[string]string) error {
	for name, value := range want {
		var got string
		if err := c.GetContext(ctx, &got, "PRAGMA "+name); err != nil {
			return fmt.Errorf("read pragma %s: %w", name, err)
		}
		if got != value {
			return fmt.Errorf("the database runs with %s=%s instead of %s; refusing to start, because writes could be lost", name, got, value)
		}
	}
	return nil
}

// CheckSettings returns an error unless all connections run with the settings that durability needs.
func (f *DB) CheckSettings(ctx context.Context) error {
	if err := checkPragmas(ctx, f.wconn, writerPragmas()); err != nil {
		return err
	}
	return checkReaders(ctx, f.read)
}

// checkReaders checks the settings of every connection of the pool. It holds all at once, so that no
// connection is checked twice.
func checkReaders(ctx context.Context, pool *sqlx.DB) error {
	var held []*sqlx.Conn
	defer func() {
		for _, c := range held {
			c.Close()
		}
	}()
	for range readConns {
		c, err := pool.Connx(ctx)
		if err != nil {
			return fmt.Errorf("open reader: %w", err)
		}
		held = append(held, c)
		if err := checkPragmas(ctx, c, map[string]string{"query_only": "1", "busy_timeout": strconv.Itoa(busyTimeout)}); err != nil {
			return err
		}
	}
	return nil
}

// Statement returns the prepared statement of query on the reading pool. It is kept until Close, so
// query must not contain values.
func (f *DB) Statement(ctx context.Context, query string) (*sqlx.Stmt, error) {
	if s, ok := f.rstmt.Load(query); ok {
		return s.(*sqlx.Stmt), nil
	}
	s, err := f.read.PreparexContext(ctx, query)
	if err != nil {
		return nil, classify(err)
	}
	if prev, loaded := f.rstmt.LoadOrStore(query, s); loaded {
		s.Close()
		return prev.(*sqlx.Stmt), nil
	}
	return s, nil
}

// Get reads one row into dest, a struct or scalar; sql.ErrNoRows when there is none.
func (f *DB) Get(ctx context.Context, dest any, query string, args ...any) error {
	s, err := f.Statement(ctx, query)
	if err != nil {
		return err
	}
	return classify(s.GetContext(ctx, dest, args...))
}

// List reads all rows into dest, a pointer to a slice. No rows are no error.
func (f *DB) List(ctx context.Context, dest any, query string, args ...any) error {
	s, err := f.Statement(ctx, query)
	if err != nil {
		return err
	}
	return classify(s.SelectContext(ctx, dest, args...))
}

// Rows implements engine.DB.
func (f *DB) Rows(ctx context.Context, query string, args ...any) (*sqlx.Rows, error) {
	s, err := f.Statement(ctx, query)
	if err != nil {
		return nil, err
	}
	rows, err := s.QueryxContext(ctx, args...)
	return rows, classify(err)
}

// Classify implements engine.DB.
func (f *DB) Classify(err error) error { return classify(err) }

// Size returns the size of the file and its write-ahead log in bytes.
func (f *DB) Size(context.Context) (n int64, err error) {
	for _, suffix := range []string{"", "-wal"} {
		if st, err := os.Stat(f.path + suffix); err == nil {
			n += st.Size()
		}
	}
	return n, nil
}

// Name returns the name of the file for messages.
func (f *DB) Name() string { return filepath.Base(f.path) }
