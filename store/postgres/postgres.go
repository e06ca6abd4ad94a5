// Package postgres runs the stores on PostgreSQL 15 or newer. It is the only package that knows the
// driver of PostgreSQL.
//
// Writes run one after another on one connection, each in a transaction of its own, which locks the row
// of the process first; see store/DESIGN.md for the reasons.
package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"

	"agentsite/internal/fault"
	"agentsite/migrations"
	"agentsite/store/engine"
)

const (
	readConns = 8
	// maxRecovery bounds the wait at the start for a server that recovers, asked every recoveryCheck.
	maxRecovery   = time.Minute
	recoveryCheck = 100 * time.Millisecond
	// lockWait bounds the wait at the start for the end of another process, asked every lockCheck.
	lockWait  = 2 * time.Second
	lockCheck = 50 * time.Millisecond
	// minVersion is the oldest version of PostgreSQL that is supported, as server_version_num.
	minVersion = 150000
	// Bounds on the server's side on a process that hangs.
	statementTimeout = 30 * time.Second
	lockTimeout      = 10 * time.Second
	idleTimeout      = 30 * time.Second
	// connectTimeout bounds one attempt to connect, unless the address has another bound.
	connectTimeout = 10 * time.Second
	// unlockTimeout bounds the release of the process's lock when the database is closed.
	unlockTimeout = 2 * time.Second
)

// Kind describes one kind of database: the portal's or the replica.
type Kind struct {
	Schema     string // the PostgreSQL schema with its tables
	Migrations fs.FS
}

// Portal returns the kind of the portal's database.
func Portal() Kind { return Kind{Schema: "agentsite", Migrations: migrations.Postgres()} }

// Replica returns the kind of the replica, in the same database as the portal's.
func Replica() Kind {
	return Kind{Schema: "agentsite_replica", Migrations: migrations.PostgresReplica()}
}

// DB is one schema of a database with one writing connection and a pool of reading ones. It is safe for
// concurrent use. It implements engine.DB.
type DB struct {
	kind  Kind
	cfg   *pgx.ConnConfig
	place string // host and database for messages, without a password
	log   *slog.Logger

	write *sqlx.DB // of one connection
	read  *sqlx.DB
	epoch int64 // the number of this process in the row that each write locks

	turn   chan struct{} // has capacity 1: held by the running write
	conn   *sqlx.Conn    // the writing connection, used by the holder of turn; nil when it was lost
	closed atomic.Bool
	stop   chan struct{}
	broken atomic.Pointer[error] // set once, when another process took the database
	fatal  chan struct{}         // closed when broken is set

	waitMu  sync.Mutex // guards the fields below
	waiting []*op
	soon    []*op // writes by WriteSoon, which run before those of waiting
}

var _ engine.DB = (*DB)(nil)

// Open opens the database at url, creates or migrates its schema, and takes it for this process. It
// returns an error if another process has it, or if the server could lose confirmed writes. The caller
// closes it.
func Open(ctx context.Context, url string, k Kind, log *slog.Logger) (*DB, error) {
	d, err := connect(url, k, log)
	if err != nil {
		return nil, err
	}
	if err := d.begin(ctx); err != nil {
		_ = d.closePools() // return the first error
		return nil, d.explain(err)
	}
	return d, nil
}

func connect(url string, k Kind, log *slog.Logger) (*DB, error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, explainAddress(url, err)
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = connectTimeout
	}
	place := fmt.Sprintf("%s at %s", cfg.Database, cfg.Host)
	params := map[string]string{
		"application_name": "agentsite", "search_path": k.Schema, "timezone": "UTC",
		"statement_timeout":                   milliseconds(statementTimeout),
		"lock_timeout":                        milliseconds(lockTimeout),
		"idle_in_transaction_session_timeout": milliseconds(idleTimeout),
		// Without these a server holds the lock of a portal whose machine lost power for two hours.
		"tcp_keepalives_idle": "30", "tcp_keepalives_interval": "10", "tcp_keepalives_count": "3",
	}
	for name, value := range params {
		cfg.RuntimeParams[name] = value
	}
	reader := cfg.Copy()
	reader.RuntimeParams["default_transaction_read_only"] = "on"
	d := &DB{kind: k, cfg: cfg, place: place, log: log, turn: make(chan struct{}, 1), stop: make(chan struct{}),
		fatal: make(chan struct{})}
	d.write, d.read = openPool(cfg, 1), openPool(reader, readConns)
	return d, nil
}

func openPool(cfg *pgx.ConnConfig, conns int) *sqlx.DB {
	pool := sqlx.NewDb(stdlib.OpenDB(*cfg), "pgx")
	pool.SetMaxOpenConns(conns)
	pool.SetMaxIdleConns(conns)
	return pool
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// begin checks the server, migrates the schema and takes the database for this process.
func (d *DB) begin(ctx context.Context) error {
	c, err := d.write.Connx(ctx)
	if err != nil {
		return fmt.Errorf("connect to the database %s: %w", d.place, err)
	}
	d.conn = c
	if err := d.CheckSettings(ctx); err != nil {
		return err
	}
	if err := d.awaitPrimary(ctx); err != nil {
		return err
	}
	if err := d.awaitLock(ctx); err != nil {
		return err
	}
	if err := d.migrate(ctx); err != nil {
		return err
	}
	err = c.GetContext(ctx, &d.epoch, `UPDATE process SET epoch = epoch + 1 RETURNING epoch`)
	if err != nil {
		return fmt.Errorf("take the database %s: %w", d.place, err)
	}
	return nil
}

// awaitPrimary waits until the server accepts writes: after a recovery it answers reads earlier.
func (d *DB) awaitPrimary(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, maxRecovery)
	defer cancel()
	tick := time.NewTicker(recoveryCheck)
	defer tick.Stop()
	for {
		var recovers bool
		err := d.conn.GetContext(ctx, &recovers, `SELECT pg_is_in_recovery()`)
		if err == nil && !recovers {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fault.New(fault.Unavailable, "The database %s accepts no writes: its server is a standby, or still "+
				"recovers. Name the primary server, or start the portal again later.", d.place)
		}
	}
}

// awaitLock is lockProcess for a start. It waits a moment, because the server notices late that the process
// before was killed.
func (d *DB) awaitLock(ctx context.Context) error {
	end := time.NewTimer(lockWait)
	defer end.Stop()
	tick := time.NewTicker(lockCheck)
	defer tick.Stop()
	for {
		err := d.lockProcess(ctx)
		if !fault.Is(err, fault.Conflict) {
			return err
		}
		select {
		case <-tick.C:
		case <-end.C:
			return err
		case <-ctx.Done():
			return err
		}
	}
}

// lockProcess takes the advisory lock of the schema, which the connection holds until it ends.
func (d *DB) lockProcess(ctx context.Context) error {
	var got bool
	err := d.conn.GetContext(ctx, &got, `SELECT pg_try_advisory_lock(hashtextextended($1, 0))`, "agentsite "+d.kind.Schema)
	if err != nil {
		return fmt.Errorf("lock the database %s: %w", d.place, err)
	}
	if !got {
		return fault.New(fault.Conflict, "Another portal process uses the database %s. Stop it first: one database serves "+
			"one portal process.", d.place)
	}
	return nil
}

// CheckSettings returns an error if the server is too old or runs with settings with which it can lose
// confirmed writes.
func (d *DB) CheckSettings(ctx context.Context) error {
	var s serverSettings
	err := d.read.GetContext(ctx, &s, `SELECT current_setting('server_version') AS version,
		current_setting('server_version_num')::int AS number, current_setting('server_encoding') AS encoding,
		current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_pages,
		current_setting('synchronous_commit') AS commit`)
	if err != nil {
		return fmt.Errorf("connect to the database %s: %w", d.place, err)
	}
	return s.check(d.place)
}

// serverSettings are those settings of a server on which durability and order depend.
type serverSettings struct {
	Version   string `db:"version"`
	Number    int    `db:"number"`
	Encoding  string `db:"encoding"`
	Fsync     string `db:"fsync"`
	FullPages string `db:"full_pages"`
	Commit    string `db:"commit"`
}

// check returns a fault unless a portal can run with the settings.
func (s serverSettings) check(place string) error {
	switch {
	case s.Number < minVersion:
		return fault.New(fault.Conflict, "The database server runs PostgreSQL %s; agentsite needs version 15 or newer.",
			s.Version)
	case s.Encoding != "UTF8":
		return fault.New(fault.Conflict, "The database %s has the encoding %s. Create it with the encoding UTF8.", place,
			s.Encoding)
	}
	for name, value := range map[string]string{
		"fsync": s.Fsync, "full_page_writes": s.FullPages, "synchronous_commit": s.Commit,
	} {
		if value == "off" || name == "synchronous_commit" && value == "local" {
			return fault.New(fault.Conflict, "The database server runs with %s=%s, so confirmed writes could be lost. "+
				"Set it to on for the database %s.", name, value, place)
		}
	}
	return nil
}

// Close implements engine.DB.
func (d *DB) Close() error {
	if d.closed.Swap(true) {
		return nil
	}
	d.turn <- struct{}{} // until the running write has ended
	close(d.stop)
	d.commitWaiting()
	return d.closePools()
}

func (d *DB) closePools() error {
	var err error
	if d.conn != nil {
		// The server ends a closed connection later, and until then the lock would refuse the next Open. If
		// the connection is lost, the lock ends with it.
		ctx, cancel := context.WithTimeout(context.Background(), unlockTimeout)
		_, _ = d.conn.ExecContext(ctx, `SELECT pg_advisory_unlock_all()`)
		cancel()
		err = d.conn.Close()
	}
	return errors.Join(err, d.write.Close(), d.read.Close())
}

// Fatal returns a channel that is closed when another process took the database; Err returns that error.
// The portal should exit then.
func (d *DB) Fatal() <-chan struct{} { return d.fatal }

// Err returns the error for which Fatal was closed, nil before.
func (d *DB) Err() error {
	if p := d.broken.Load(); p != nil {
		return *p
	}
	return nil
}

// Log implements engine.DB.
func (d *DB) Log() *slog.Logger { return d.log }

// Size returns the size of the schema's tables and indexes in bytes.
func (d *DB) Size(ctx context.Context) (int64, error) {
	var n int64
	err := d.Get(ctx, &n, `SELECT COALESCE(SUM(pg_total_relation_size(c.oid)), 0) FROM pg_class c
		WHERE c.relkind = 'r' AND c.relnamespace = to_regnamespace(?)`, d.kind.Schema)
	return n, err
}

// Name returns the name of the database for messages.
func (d *DB) Name() string { return "PostgreSQL schema " + d.kind.Schema + " of " + d.place }

// CheckPlace returns an error if another process took the database.
func (d *DB) CheckPlace() error { return d.Err() }

// QuickCheck reports that the server answers. The server checks its pages itself, if it was created with
// checksums.
func (d *DB) QuickCheck(ctx context.Context) ([]string, error) {
	var one int
	return nil, d.Get(ctx, &one, `SELECT 1`)
}

// Compact does nothing, because the server's autovacuum gives space back.
func (d *DB) Compact(context.Context) (int64, error) { return 0, nil }

// readAgain repeats a read that failed because its connection was lost, once for each connection of the pool: after the
// server was restarted, all of them are dead. It does not wait for a server that does not answer.
func readAgain(ctx context.Context, read func() error) (err error) {
	for range readConns + 1 {
		err = read()
		if _, down := errors.AsType[*pgconn.ConnectError](err); down || !isLost(err) || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// Get implements engine.DB.
func (d *DB) Get(ctx context.Context, dest any, query string, args ...any) error {
	query, args, err := translate(query, args)
	if err == nil && hasBadText(args) {
		err = sql.ErrNoRows
	}
	if err != nil {
		return err
	}
	return classify(readAgain(ctx, func() error { return d.read.GetContext(ctx, dest, query, args...) }))
}

// List implements engine.DB.
func (d *DB) List(ctx context.Context, dest any, query string, args ...any) error {
	query, args, err := translate(query, args)
	if err != nil || hasBadText(args) {
		return err
	}
	rows := reflect.ValueOf(dest).Elem()
	before := rows.Len()
	return classify(readAgain(ctx, func() error {
		rows.SetLen(before) // without those of an attempt that was broken off
		return d.read.SelectContext(ctx, dest, query, args...)
	}))
}

// Rows implements engine.DB.
func (d *DB) Rows(ctx context.Context, query string, args ...any) (*sqlx.Rows, error) {
	query, args, err := translate(query, args)
	if err != nil {
		return nil, err
	}
	var rows *sqlx.Rows
	err = readAgain(ctx, func() (err error) {
		rows, err = d.read.QueryxContext(ctx, query, args...)
		return err
	})
	return rows, classify(err)
}

// Classify implements engine.DB.
func (d *DB) Classify(err error) error { return classify(err) }
