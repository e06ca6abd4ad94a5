// Package store keeps everything a portal must not lose, in SQLite by sqlx.
// One writer connection commits what waits for it as one transaction at
// synchronous=FULL (group commit), so a write is acknowledged only when it is
// on disk; a pool of query-only connections reads. Exported methods open the
// transaction, unexported helpers take it and compose. The package implements
// the ports that the services in internal/ declare and holds no rules of its
// own: no decision who may do what.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"agentsite/internal/chat"
	"agentsite/internal/hub"
	"agentsite/migrations"
)

// FileName is the database inside the data folder.
const FileName = "agentsite.db"

// applicationID marks our database files: "AGST" in ASCII.
const applicationID = 0x41475354

const (
	readConns = 4
	// readCacheKB, of each connection, holds the inner pages of a large
	// database; the system's own cache has the rest. SQLite gives it back only
	// at the end.
	readCacheKB = 2 << 10
	// writeCacheKB is for the one writer.
	writeCacheKB = 8 << 10
	// checkpointEvery bounds how long the WAL grows under constant readers.
	checkpointEvery = time.Minute
	// checkpointBytes is the WAL size below which the timer leaves it alone:
	// an idle portal does nothing.
	checkpointBytes = 8 << 20
)

// DB is an open database. It is safe for concurrent use; whoever opened it
// closes it, which waits for queued writes.
type DB struct {
	path  string
	log   *slog.Logger
	wpool *sqlx.DB
	wconn *sqlx.Conn
	wstmt map[string]wstmt // owned by the writer goroutine
	read  *sqlx.DB
	rstmt sync.Map // query → *sqlx.Stmt

	credentials remembered[credentialRow]
	members     remembered[[]chat.Member]         // by conversation
	settings    remembered[settingsRow]           // by conversation
	agents      remembered[hub.Agent]             // by id and by name, each behind its mark
	listeners   remembered[map[string][]listener] // under one key: see tx.listeners
	wordless    rooms

	// blobs is held to put a blob in its place or to take one away; keep by a
	// backup, which needs every blob its copy names.
	blobs   sync.Mutex
	keep    sync.RWMutex
	owned   remembered[int] // agents that are there, by owner
	touches touches

	ops    chan *op
	flush  chan struct{} // tells the writer that touches have waited long enough
	hooked chan struct{} // tells that hooks have something to send
	stop   chan struct{}
	done   chan struct{}
	closed atomic.Bool
	// broken is set once by the writer after an I/O error: nothing is
	// written any more, because after a failed fsync nobody knows what is
	// on disk. fatal is closed then.
	broken atomic.Pointer[error]
	fatal  chan struct{}
}

// Open opens or creates the database in the folder dir, migrates it to this
// binary's schema, and refuses to go on when SQLite runs with other settings
// than those durability needs, or when the file was written by a newer binary.
func Open(ctx context.Context, dir string, log *slog.Logger) (*DB, error) {
	path := filepath.Join(dir, FileName)
	if err := checkFile(path); err != nil {
		return nil, err
	}
	sweep(dir)
	sweep(filepath.Join(dir, blobsDir))
	_, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		err = create(ctx, dir, log)
	case err == nil:
		err = inspect(ctx, path)
	}
	if err != nil {
		return nil, err
	}
	return openFile(ctx, path, log)
}

// create makes a database beside its place and puts it there whole: a crash
// leaves no empty file, which the next start would have to refuse.
func create(ctx context.Context, dir string, log *slog.Logger) error {
	path := filepath.Join(dir, FileName)
	if nonEmpty(path + "-wal") {
		return fmt.Errorf("%s-wal lies there without its database %s, which was a portal's before. Put the database back, restore a backup into a new folder with `agentsite restore FILE`, or delete that file too to start afresh", path, FileName)
	}
	tmp, err := os.MkdirTemp(dir, scratch)
	if err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	defer os.RemoveAll(tmp)
	// Created here so that the file is private from its first byte.
	f, err := os.OpenFile(filepath.Join(tmp, FileName), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	defer f.Close()
	d, err := openFile(ctx, f.Name(), log)
	if err != nil {
		return err
	}
	if err := errors.Join(d.Close(), f.Sync()); err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	// Link fails when the name exists: a database is never replaced.
	if err := errors.Join(os.Link(f.Name(), path), flushDir(dir)); err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	return nil
}

func openFile(ctx context.Context, path string, log *slog.Logger) (*DB, error) {
	d := &DB{
		path: path, log: log,
		agents: remembered[hub.Agent]{most: maxRememberedAgents},
		wstmt:  make(map[string]wstmt),
		ops:    make(chan *op, maxQueuedWrites),
		flush:  make(chan struct{}, 1), hooked: make(chan struct{}, 1),
		stop: make(chan struct{}), done: make(chan struct{}), fatal: make(chan struct{}),
	}
	var err error
	if d.wpool, err = connect(path, writeDSN(path), 1); err != nil {
		return nil, err
	}
	if d.wconn, err = d.wpool.Connx(ctx); err != nil {
		d.wpool.Close()
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	if err := d.prepare(ctx); err != nil {
		d.wconn.Close()
		d.wpool.Close()
		return nil, err
	}
	if d.read, err = connect(path, readDSN(path), readConns); err == nil {
		if err = checkReaders(ctx, d.read); err != nil {
			d.read.Close()
		}
	}
	if err != nil {
		d.wconn.Close()
		d.wpool.Close()
		return nil, err
	}
	go d.writer()
	return d, nil
}

// Close stops accepting writes, waits for the queued ones and closes the
// database. It is safe to call twice.
func (d *DB) Close() error {
	if d.closed.Swap(true) {
		return nil
	}
	close(d.stop)
	<-d.done
	errs := []error{d.read.Close()}
	// database/sql does not close statements prepared on one connection with
	// it. With one left SQLite keeps the file open and the WAL as it is, and
	// whoever then copies the database file alone has next to nothing.
	for _, s := range d.wstmt {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, d.wconn.Close(), d.wpool.Close())...)
}

// Fatal is closed when the database had an error after which writing must
// stop for good; Err tells which. The portal should exit and be started anew.
func (d *DB) Fatal() <-chan struct{} { return d.fatal }

// Err is the reason Fatal was closed, or nil.
func (d *DB) Err() error {
	if p := d.broken.Load(); p != nil {
		return *p
	}
	return nil
}

// Path is the database file.
func (d *DB) Path() string { return d.path }

func connect(path, dsn string, conns int) (*sqlx.DB, error) {
	db, err := sqlx.Open("sqlite", dsn)
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns) // the checked connections are the ones used
	return db, nil
}

// writeDSN also has what is deleted overwritten: a text that somebody took away
// is not left in the file.
func writeDSN(path string) string {
	return fmt.Sprintf("file:%s?_busy_timeout=5000&_journal_mode=WAL&_synchronous=%s&_foreign_keys=1&_txlock=immediate&_time_format=sqlite&_dqs=0&_pragma=cache_size(-%d)&_pragma=wal_autocheckpoint(2000)&_pragma=secure_delete(1)",
		uriPath(path), synchronous, writeCacheKB)
}

func readDSN(path string) string {
	return fmt.Sprintf("file:%s?mode=ro&_query_only=1&_busy_timeout=5000&_foreign_keys=1&_dqs=0&_pragma=cache_size(-%d)", uriPath(path), readCacheKB)
}

// copyDSN lets VACUUM INTO write its copy, which query_only would forbid.
func copyDSN(path string) string {
	return fmt.Sprintf("file:%s?mode=ro&_busy_timeout=5000&_dqs=0", uriPath(path))
}

// uriPath escapes what an SQLite file URI would read as its own syntax.
func uriPath(path string) string { return (&url.URL{Path: path}).EscapedPath() }

// prepare checks the writer's settings and brings the schema up to date.
func (d *DB) prepare(ctx context.Context) error {
	if err := checkPragmas(ctx, d.wconn, writerPragmas()); err != nil {
		return err
	}
	var app int64
	if err := d.wconn.GetContext(ctx, &app, "PRAGMA application_id"); err != nil {
		return fmt.Errorf("read database %s: %w", d.path, err)
	}
	return d.migrate(ctx, app != applicationID)
}

func writerPragmas() map[string]string {
	return map[string]string{"journal_mode": "wal", "synchronous": synchronousValue, "foreign_keys": "1", "busy_timeout": "5000"}
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

// checkReaders holds every connection of the pool at once, so that each one
// that will ever serve a query is seen with its settings.
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
		if err := checkPragmas(ctx, c, map[string]string{"query_only": "1", "busy_timeout": "5000"}); err != nil {
			return err
		}
	}
	return nil
}

// SchemaVersion is the newest migration this binary knows.
func SchemaVersion() int64 {
	p, err := goose.NewProvider(goose.DialectSQLite3, new(sql.DB), migrations.SQLite())
	if err != nil {
		return 0
	}
	sources := p.ListSources()
	return sources[len(sources)-1].Version
}

// migrate applies pending migrations, after a copy of a database that holds
// something, and refuses a database that is newer than this binary.
func (d *DB) migrate(ctx context.Context, mark bool) error {
	have, err := schemaOf(ctx, d.wconn)
	if err != nil {
		return fmt.Errorf("read database %s: %w", d.path, err)
	}
	target := SchemaVersion()
	if have == target {
		return nil
	}
	if have > 0 {
		copyPath := fmt.Sprintf("%s.before-%d", d.path, target)
		if err := os.Remove(copyPath); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("copy the database before its upgrade: %w", err)
		}
		if err := copyInto(ctx, d.wconn, copyPath); err != nil {
			return fmt.Errorf("copy the database before its upgrade: %w", err)
		}
	}
	if mark {
		if _, err := d.wconn.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d", applicationID)); err != nil {
			return fmt.Errorf("mark database: %w", err)
		}
	}
	// goose takes a pool: the writer's one connection is lent to it.
	if err := d.wconn.Close(); err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, d.wpool.DB, migrations.SQLite())
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("upgrade the database: %w", err)
	}
	c, err := d.wpool.Connx(ctx)
	if err != nil {
		return err
	}
	d.wconn = c
	// The pool may have opened another connection meanwhile.
	return checkPragmas(ctx, d.wconn, writerPragmas())
}

// reader returns the prepared form of query on the reading pool.
func (d *DB) reader(ctx context.Context, query string) (*sqlx.Stmt, error) {
	if s, ok := d.rstmt.Load(query); ok {
		return s.(*sqlx.Stmt), nil
	}
	s, err := d.read.PreparexContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if prev, loaded := d.rstmt.LoadOrStore(query, s); loaded {
		s.Close()
		return prev.(*sqlx.Stmt), nil
	}
	return s, nil
}

// get reads one row into dest; sql.ErrNoRows when there is none.
func (d *DB) get(ctx context.Context, dest any, query string, args ...any) error {
	s, err := d.reader(ctx, query)
	if err != nil {
		return err
	}
	return s.GetContext(ctx, dest, args...)
}

// list reads rows into the slice dest points to.
func (d *DB) list(ctx context.Context, dest any, query string, args ...any) error {
	s, err := d.reader(ctx, query)
	if err != nil {
		return err
	}
	return s.SelectContext(ctx, dest, args...)
}
