package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"agentsite/internal/fault"
	"agentsite/store/engine"
)

const (
	// maxWriteWait bounds how long a write waits for the one before it. Then it gets an Unavailable fault.
	maxWriteWait = 5 * time.Second
	// maxWriteTime bounds one transaction; the connection is given up then.
	maxWriteTime = 30 * time.Second
	// maxAttempts bounds the runs of one write after lost connections.
	maxAttempts = 4
	// retryAfter is the pause before another attempt, times the number of the attempt.
	retryAfter = 100 * time.Millisecond
	// insertRows bounds the rows of one INSERT. The server allows 65,535 parameters.
	insertRows = 64
)

// Tx is a transaction as one write sees it. It implements engine.Tx.
type Tx struct {
	ctx  context.Context
	conn *sqlx.Conn
	ends map[engine.Ender]struct{}
}

// Exec implements engine.Tx.
func (t *Tx) Exec(query string, args ...any) (sql.Result, error) {
	query, args, err := translate(query, args)
	if err != nil {
		return nil, err
	}
	res, err := t.conn.ExecContext(t.ctx, query, args...)
	return res, classify(err)
}

// Get implements engine.Tx.
func (t *Tx) Get(dest any, query string, args ...any) error {
	query, args, err := translate(query, args)
	if err != nil {
		return err
	}
	return classify(t.conn.GetContext(t.ctx, dest, query, args...))
}

// List implements engine.Tx.
func (t *Tx) List(dest any, query string, args ...any) error {
	query, args, err := translate(query, args)
	if err != nil {
		return err
	}
	return classify(t.conn.SelectContext(t.ctx, dest, query, args...))
}

// InsertRows implements engine.Tx.
func (t *Tx) InsertRows(insert string, rows [][]any) error {
	for part := range slices.Chunk(rows, insertRows) {
		args := make([]any, 0, len(part)*len(part[0]))
		for _, r := range part {
			args = append(args, r...)
		}
		if _, err := t.Exec(engine.InsertStatement(insert, len(part[0]), len(part)), args...); err != nil {
			return err
		}
	}
	return nil
}

// Try implements engine.Tx.
func (t *Tx) Try(fn func() error) error {
	if _, err := t.conn.ExecContext(t.ctx, `SAVEPOINT try`); err != nil {
		return classify(err)
	}
	err := fn()
	if err != nil {
		if _, undo := t.conn.ExecContext(t.ctx, `ROLLBACK TO try`); undo != nil {
			return errors.Join(err, undo)
		}
	}
	return err
}

// RequireRollback implements engine.Tx. A write that fails is always rolled back here.
func (t *Tx) RequireRollback() {}

// AtEnd implements engine.Tx.
func (t *Tx) AtEnd(e engine.Ender) {
	if t.ends == nil {
		t.ends = make(map[engine.Ender]struct{})
	}
	t.ends[e] = struct{}{}
}

func (t *Tx) end(committed bool) {
	for e := range t.ends {
		e.Ended(committed)
	}
}

// Write implements engine.DB. It waits for its turn while ctx lasts. Once it has begun it goes on to its
// outcome.
func (d *DB) Write(ctx context.Context, fn func(engine.Tx) error) error {
	if err := d.takeTurn(ctx); err != nil {
		return err
	}
	defer d.endTurn()
	return engine.MapError(d.writeWithSoon(fn))
}

func (d *DB) takeTurn(ctx context.Context) error {
	if err := d.Writable(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case d.turn <- struct{}{}:
		return nil
	default:
	}
	wait := time.NewTimer(maxWriteWait)
	defer wait.Stop()
	select {
	case d.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-d.stop:
		return errStopping()
	case <-wait.C:
		return &fault.Error{Kind: fault.Unavailable, Safe: "This portal is busy writing. Try again in a moment.",
			RetryAfter: maxWriteWait}
	}
}

func (d *DB) endTurn() { <-d.turn }

// Writable implements engine.DB.
func (d *DB) Writable() error {
	if err := d.Err(); err != nil {
		return fault.Wrap(fault.Unavailable, err,
			"This portal cannot write to its database and has to be restarted. Nothing that was confirmed is lost.")
	}
	if d.closed.Load() {
		return errStopping()
	}
	return nil
}

func errStopping() error {
	return fault.New(fault.Unavailable, "This portal is stopping. Try again in a moment.")
}

// runWrite runs fn in a transaction, and again if the connection was lost before the outcome was decided
// or if the transaction failed for another one. The caller holds turn.
func (d *DB) runWrite(fn func(engine.Tx) error) error {
	for attempt := 1; ; attempt++ {
		again, err := d.attempt(fn)
		if !again || attempt == maxAttempts {
			return err
		}
		d.log.Warn("write again", "database", d.place, "error", err)
		select {
		case <-time.After(time.Duration(attempt) * retryAfter):
		case <-d.stop:
			return err
		}
	}
}

// attempt runs fn once. again is true if nothing was written and another attempt may succeed.
func (d *DB) attempt(fn func(engine.Tx) error) (again bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), maxWriteTime)
	defer cancel()
	if err := d.reconnect(ctx); err != nil {
		return isLost(err), classify(err)
	}
	t := &Tx{ctx: ctx, conn: d.conn}
	xid, err := d.beginTx(ctx)
	if err == nil {
		err = runFn(fn, t)
	}
	if err != nil {
		t.end(false)
		_, rollback := d.conn.ExecContext(ctx, `ROLLBACK`)
		if rollback != nil {
			d.dropConn()
		}
		code := codeOf(err)
		return isLost(err) || code == serialization || code == deadlock, classify(err)
	}
	_, err = d.conn.ExecContext(ctx, `COMMIT`)
	if err == nil {
		t.end(true)
		return false, nil
	}
	d.dropConn()
	committed, lookup := d.outcomeOf(xid)
	if committed {
		t.end(true)
		return false, nil
	}
	t.end(false)
	if lookup != nil {
		return false, fault.Wrap(fault.Unavailable, errors.Join(err, lookup),
			"The database did not say whether this was stored. Look before you try again.")
	}
	return true, classify(err)
}

func runFn(fn func(engine.Tx) error, t *Tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a write: %v\n%s", p, debug.Stack())
		}
	}()
	return fn(t)
}

// beginTx begins a transaction and locks the row of the process, so that a process that lost the database
// cannot commit. It returns the id of the transaction.
func (d *DB) beginTx(ctx context.Context) (xid string, err error) {
	if _, err := d.conn.ExecContext(ctx, `BEGIN`); err != nil {
		return "", err
	}
	var row struct {
		Epoch int64  `db:"epoch"`
		XID   string `db:"xid"`
	}
	err = d.conn.GetContext(ctx, &row, `SELECT epoch, pg_current_xact_id()::text AS xid FROM process FOR UPDATE`)
	if err == nil && row.Epoch != d.epoch {
		err = d.stopWriting()
	}
	return row.XID, err
}

// stopWriting stops all writing, because another process took the database.
func (d *DB) stopWriting() error {
	err := fmt.Errorf("another portal process took the database %s", d.place)
	if d.broken.CompareAndSwap(nil, &err) {
		d.log.Error("writing stops", "error", err)
		close(d.fatal)
	}
	return err
}

// reconnect makes the writing connection again if it was lost, and the lock that it holds.
func (d *DB) reconnect(ctx context.Context) error {
	if d.conn != nil {
		return nil
	}
	c, err := d.write.Connx(ctx)
	if err != nil {
		return err
	}
	d.conn = c
	// The lock of the lost connection ends when the server notices the loss. The row decides until then.
	if err := d.lockProcess(ctx); err != nil {
		d.log.Warn("lock the database again", "error", err)
	}
	return nil
}

// dropConn gives the writing connection up; the next write makes another.
func (d *DB) dropConn() {
	if d.conn == nil {
		return
	}
	// Keep the pool from using it again: its session may still have an open transaction.
	_ = d.conn.Raw(func(any) error { return errGiveUp })
	_ = d.conn.Close() // the connection is lost anyway
	d.conn = nil
}

// errGiveUp makes database/sql close a connection.
var errGiveUp = fmt.Errorf("give the connection up: %w", driver.ErrBadConn)

// outcomeOf asks the server whether a transaction was committed after its COMMIT got no answer. An error means
// that the server did not say in time.
func (d *DB) outcomeOf(xid string) (committed bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), maxWriteTime)
	defer cancel()
	for {
		var status sql.NullString
		if err = d.reconnect(ctx); err == nil {
			err = d.conn.GetContext(ctx, &status, `SELECT pg_xact_status($1::text::xid8)`, xid)
		}
		switch {
		case err != nil:
			d.dropConn()
		case status.String == "committed":
			return true, nil
		case status.String == "aborted":
			return false, nil
		}
		select {
		case <-time.After(retryAfter):
		case <-ctx.Done():
			return false, errors.Join(ctx.Err(), err)
		}
	}
}

// WriteSoon implements engine.DB.
func (d *DB) WriteSoon(delay time.Duration, w engine.SoonWrite) {
	d.soonMu.Lock()
	d.soon = append(d.soon, w)
	first := len(d.soon) == 1
	d.soonMu.Unlock()
	if !first {
		return
	}
	time.AfterFunc(delay, func() {
		if d.takeTurn(context.Background()) == nil {
			defer d.endTurn()
			d.flushSoon()
		}
	})
}

// writeWithSoon runs fn after the waiting small writes in one transaction. If that fails, the small writes
// get a transaction of their own, and fn runs again if they were the reason. The caller holds turn.
func (d *DB) writeWithSoon(fn func(engine.Tx) error) error {
	soon := d.takeSoon()
	if len(soon) == 0 {
		return d.runWrite(fn)
	}
	var soonErr error
	err := d.runWrite(func(t engine.Tx) error {
		if soonErr = writeRows(t, soon); soonErr != nil {
			return soonErr
		}
		return fn(t)
	})
	if err == nil {
		noteOutcome(soon, nil)
		return nil
	}
	d.writeSoon(soon)
	if soonErr != nil {
		return d.runWrite(fn)
	}
	return err
}

// flushSoon writes the waiting small writes. The caller holds turn.
func (d *DB) flushSoon() { d.writeSoon(d.takeSoon()) }

func (d *DB) takeSoon() []engine.SoonWrite {
	d.soonMu.Lock()
	defer d.soonMu.Unlock()
	soon := d.soon
	d.soon = nil
	return soon
}

func (d *DB) writeSoon(soon []engine.SoonWrite) {
	if len(soon) > 0 {
		noteOutcome(soon, d.runWrite(func(t engine.Tx) error { return writeRows(t, soon) }))
	}
}

func writeRows(t engine.Tx, soon []engine.SoonWrite) error {
	for _, w := range soon {
		if err := w.WriteRows(t); err != nil {
			return err
		}
	}
	return nil
}

func noteOutcome(soon []engine.SoonWrite, err error) {
	for _, w := range soon {
		w.NoteOutcome(engine.MapError(err))
	}
}
