package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"

	"agentsite/internal/fault"
	"agentsite/store/engine"
)

const (
	// maxWriteTime bounds one transaction; the connection is given up then.
	maxWriteTime = 30 * time.Second
	// maxAttempts bounds the runs of one batch after lost connections.
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
	// changes counts the statements that changed rows or broke the transaction, so that a write which
	// failed before its first one needs no rollback.
	changes int
	broken  error     // of the statement after which the server refuses all others
	sent    pgx.Batch // statements of Send that were not run yet
}

// note counts a statement that may have changed rows.
func (t *Tx) note() { t.changes++ }

// fail notes the error of a statement and returns it in the form of engine.
func (t *Tx) fail(err error) error {
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		t.note()
		t.broken = err
	}
	return classify(err)
}

// Send implements engine.Tx. Each statement that runs alone costs a round trip.
func (t *Tx) Send(query string, args ...any) error {
	query, args, err := translate(query, args)
	if err != nil {
		return err
	}
	t.note()
	t.sent.Queue(query, args...)
	return nil
}

// flush runs the statements of Send in one round trip.
func (t *Tx) flush() error {
	if t.sent.Len() == 0 {
		return nil
	}
	err := t.conn.Raw(func(c any) error { return c.(*stdlib.Conn).Conn().SendBatch(t.ctx, &t.sent).Close() })
	t.sent = pgx.Batch{}
	return t.fail(err)
}

// prepare returns the translated query after the statements of Send have run.
func (t *Tx) prepare(query string, args []any) (string, []any, error) {
	if err := t.flush(); err != nil {
		return "", nil, err
	}
	return translate(query, args)
}

// Exec implements engine.Tx.
func (t *Tx) Exec(query string, args ...any) (sql.Result, error) {
	query, args, err := t.prepare(query, args)
	if err != nil {
		return nil, err
	}
	t.note()
	res, err := t.conn.ExecContext(t.ctx, query, args...)
	return res, t.fail(err)
}

// Get implements engine.Tx.
func (t *Tx) Get(dest any, query string, args ...any) error {
	query, args, err := t.prepare(query, args)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(query, "SELECT") {
		t.note()
	}
	return t.fail(t.conn.GetContext(t.ctx, dest, query, args...))
}

// List implements engine.Tx.
func (t *Tx) List(dest any, query string, args ...any) error {
	query, args, err := t.prepare(query, args)
	if err != nil {
		return err
	}
	return t.fail(t.conn.SelectContext(t.ctx, dest, query, args...))
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
	if err := t.flush(); err != nil {
		return err
	}
	if _, err := t.conn.ExecContext(t.ctx, `SAVEPOINT try`); err != nil {
		return t.fail(err)
	}
	before := t.changes
	err := fn()
	if err == nil {
		err = t.flush()
	}
	if err != nil {
		t.changes, t.broken, t.sent = before, nil, pgx.Batch{} // undone below, or never run
		if _, undo := t.conn.ExecContext(t.ctx, `ROLLBACK TO try`); undo != nil {
			return errors.Join(err, t.fail(undo))
		}
	}
	return err
}

// RequireRollback implements engine.Tx.
func (t *Tx) RequireRollback() { t.note() }

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

// runBatch runs writes in one transaction, and again if the connection was lost before the outcome was decided
// or if the transaction failed for another one. bad is the index of a write that failed after it changed
// rows, so that nothing of the batch was stored; -1 if there is none. err is the outcome for all writes. The
// caller holds turn.
func (d *DB) runBatch(ops []*op) (bad int, err error) {
	for attempt := 1; ; attempt++ {
		again, bad, err := d.attempt(ops)
		if !again || attempt == maxAttempts {
			return bad, err
		}
		d.log.Warn("write again", "database", d.place, "error", err)
		select {
		case <-time.After(time.Duration(attempt) * retryAfter):
		case <-d.stop:
			return bad, err
		}
	}
}

// attempt runs a batch once. again is true if nothing was written and another attempt may succeed.
func (d *DB) attempt(ops []*op) (again bool, bad int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), maxWriteTime)
	defer cancel()
	if err := d.reconnect(ctx); err != nil {
		return isLost(err), -1, classify(err)
	}
	t := &Tx{ctx: ctx, conn: d.conn}
	turn, err := d.beginTx(ctx)
	bad = -1
	if err == nil {
		bad, err = runOps(ops, t)
	}
	if err != nil {
		t.end(false)
		_, rollback := d.conn.ExecContext(ctx, `ROLLBACK`)
		if rollback != nil {
			d.dropConn()
		}
		code := codeOf(err)
		again = isLost(err) || code == serialization || code == deadlock
		if again || bad < 0 {
			return again, -1, classify(err)
		}
		return false, bad, nil // the error is that of the write
	}
	_, err = d.conn.ExecContext(ctx, `COMMIT`)
	if err == nil {
		t.end(true)
		return false, -1, nil
	}
	d.dropConn()
	committed, lookup := d.outcomeOf(turn)
	if committed {
		t.end(true)
		return false, -1, nil
	}
	t.end(false)
	if lookup != nil {
		return false, -1, fault.Wrap(fault.Unavailable, errors.Join(err, lookup),
			"The database did not say whether this was stored. Look before you try again.")
	}
	return true, -1, classify(err)
}

// runOps runs writes and sets their errors. A write that failed before it changed rows is no obstacle for the
// others. One that failed later ends the batch: bad is its index, and err its error.
func runOps(ops []*op, t *Tx) (bad int, err error) {
	for i, o := range ops {
		before := t.changes
		if o.err = runFn(o.fn, t); o.err != nil && t.changes > before {
			return i, o.err
		}
	}
	return -1, nil
}

func runFn(fn func(engine.Tx) error, t *Tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			t.note()
			err = fmt.Errorf("panic in a write: %v\n%s", p, debug.Stack())
		}
	}()
	if err := fn(t); err != nil {
		return err
	}
	if err := t.flush(); err != nil || t.broken == nil {
		return err
	}
	// The server would answer COMMIT by a rollback.
	return fmt.Errorf("a write goes on after a statement that failed: %w", t.broken)
}

// beginTx begins a transaction and takes the next turn in the row of the process, so that a process that lost
// the database cannot commit. It returns the number of the turn.
func (d *DB) beginTx(ctx context.Context) (turn int64, err error) {
	var epoch int64
	err = d.conn.Raw(func(c any) error {
		var b pgx.Batch
		b.Queue(`BEGIN`)
		b.Queue(`UPDATE process SET turn = turn + 1 RETURNING epoch, turn`)
		r := c.(*stdlib.Conn).Conn().SendBatch(ctx, &b)
		_, err := r.Exec()
		if err == nil {
			err = r.QueryRow().Scan(&epoch, &turn)
		}
		return errors.Join(err, r.Close())
	})
	if err == nil && epoch != d.epoch {
		err = d.stopWriting()
	}
	return turn, err
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

// outcomeOf finds out whether a transaction was committed after its COMMIT got no answer: then its turn is the
// last. The lock of the row waits for a transaction that the server has not ended yet. An error means that the
// server did not answer in time, or that another process took the database meanwhile.
func (d *DB) outcomeOf(turn int64) (committed bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), maxWriteTime)
	defer cancel()
	for {
		var row struct {
			Epoch int64 `db:"epoch"`
			Turn  int64 `db:"turn"`
		}
		if err = d.reconnect(ctx); err == nil {
			err = d.conn.GetContext(ctx, &row, `SELECT epoch, turn FROM process FOR UPDATE`)
		}
		switch {
		case err != nil:
			d.dropConn()
		case row.Epoch != d.epoch:
			return false, d.stopWriting()
		default:
			return row.Turn >= turn, nil
		}
		select {
		case <-time.After(retryAfter):
		case <-ctx.Done():
			return false, errors.Join(ctx.Err(), err)
		}
	}
}
