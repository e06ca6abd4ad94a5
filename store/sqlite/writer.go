package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"agentsite/internal/fault"
	"agentsite/store/engine"
)

const (
	// maxQueuedWrites bounds the waiting writes. Beyond it callers wait for maxWriteWait, and then get
	// an Unavailable fault.
	maxQueuedWrites = 4096
	// maxBatch bounds the writes in one transaction, because one that fails makes the others run again.
	maxBatch     = 256
	maxWriteWait = 5 * time.Second
	// gathers bounds how often a batch waits for running goroutines to add writes; it stops at the first
	// time without a new one.
	gathers = 3
)

// op is one queued write. claimed decides between the writer, which runs it, and the caller, which
// gave up waiting: exactly one of them wins.
type op struct {
	fn      func(engine.Tx) error
	err     error
	done    chan struct{}
	soon    engine.SoonWrite // set for a write by WriteSoon
	claimed atomic.Bool
}

// Tx is the writer's transaction as one write sees it. It counts the changes, so that a write which
// failed before its first change needs no rollback. It is valid only during the call that got it.
type Tx struct {
	f      *DB
	writes int
	ends   map[engine.Ender]struct{}
}

// AtEnd calls e.Ended once, when the transaction has ended, however often e was passed.
func (t *Tx) AtEnd(e engine.Ender) {
	if t.ends == nil {
		t.ends = make(map[engine.Ender]struct{})
	}
	t.ends[e] = struct{}{}
}

func (t *Tx) endTx(committed bool) {
	for e := range t.ends {
		e.Ended(committed)
	}
}

func (t *Tx) stmt(query string) (*sqlx.Stmt, error) {
	s, ok := t.f.wstmt[query]
	if !ok {
		prepared, err := t.f.wconn.PreparexContext(context.Background(), query)
		if err != nil {
			return nil, classify(err)
		}
		s = prepared
		t.f.wstmt[query] = s
	}
	return s, nil
}

// Exec runs a statement that changes rows. The statement stays prepared, so query must not contain
// values.
func (t *Tx) Exec(query string, args ...any) (sql.Result, error) {
	s, err := t.stmt(query)
	if err != nil {
		return nil, err
	}
	res, err := s.Exec(args...)
	t.note(err)
	return res, classify(err)
}

// Send implements engine.Tx.
func (t *Tx) Send(query string, args ...any) error {
	_, err := t.Exec(query, args...)
	return err
}

// note counts a change. A statement that broke a constraint is undone by SQLite alone, so that a refused
// duplicate needs no rollback.
func (t *Tx) note(err error) {
	if ErrorCode(err)&0xff != sqliteConstraint {
		t.writes++
	}
}

// Try implements engine.Tx. SQLite undoes a refused statement alone.
func (t *Tx) Try(fn func() error) error { return fn() }

// RequireRollback causes a rollback if the current write fails, even if it changed no row. Call it for
// changes of data in memory that belongs to the transaction.
func (t *Tx) RequireRollback() { t.writes++ }

// Get reads one row into dest; sql.ErrNoRows when there is none. A statement other than SELECT counts as
// a change.
func (t *Tx) Get(dest any, query string, args ...any) error {
	s, err := t.stmt(query)
	if err != nil {
		return err
	}
	err = s.Get(dest, args...)
	if !strings.HasPrefix(query, "SELECT") {
		t.note(err)
	}
	return classify(err)
}

// List reads all rows into dest, a pointer to a slice, and sees the changes of the transaction.
func (t *Tx) List(dest any, query string, args ...any) error {
	s, err := t.stmt(query)
	if err != nil {
		return err
	}
	return classify(s.Select(dest, args...))
}

// Write runs fn in a transaction that other writes may share, and returns once it is on disk. fn may run
// more than once, when another write of its batch failed: it must set its results anew each time and
// have no other effects. It must not block on anything but the database.
//
// If ctx ends while the write still waits, the write is withdrawn; once it has begun, Write waits for
// its outcome.
func (f *DB) Write(ctx context.Context, fn func(engine.Tx) error) error {
	if err := f.Writable(); err != nil {
		return err
	}
	o := &op{fn: fn, done: make(chan struct{})}
	select {
	case f.ops <- o:
	default:
		wait := time.NewTimer(maxWriteWait)
		defer wait.Stop()
		select {
		case f.ops <- o:
		case <-f.stop:
			return errStopping()
		case <-ctx.Done():
			return ctx.Err()
		case <-wait.C:
			return &fault.Error{Kind: fault.Unavailable, Safe: "This portal is busy writing. Try again in a moment.",
				RetryAfter: maxWriteWait}
		}
	}
	select {
	case <-o.done:
	case <-ctx.Done():
		if o.claimed.CompareAndSwap(false, true) {
			return ctx.Err()
		}
		<-o.done
	case <-f.done:
		// The writer has ended: it ran the write before, or never will.
		if o.claimed.CompareAndSwap(false, true) {
			return errStopping()
		}
		<-o.done
	}
	return engine.MapError(o.err)
}

// WriteSoon runs w at the beginning of the next transaction, and after delay at the latest, so that a
// small write can share the commit of the next one. It does not wait.
func (f *DB) WriteSoon(delay time.Duration, w engine.SoonWrite) {
	f.soonMu.Lock()
	f.soon = append(f.soon, &op{fn: w.WriteRows, done: make(chan struct{}), soon: w})
	f.soonMu.Unlock()
	time.AfterFunc(delay, func() {
		select {
		case f.flush <- struct{}{}:
		default: // A wake-up is pending already.
		}
	})
}

func (f *DB) takeSoon() []*op {
	f.soonMu.Lock()
	defer f.soonMu.Unlock()
	soon := f.soon
	f.soon = nil
	return soon
}

// Writable returns the error with which Write would refuse a write, nil if it would not.
func (f *DB) Writable() error {
	if err := f.Err(); err != nil {
		return fault.Wrap(fault.Unavailable, err,
			"This portal cannot write to its disk and has to be restarted. Nothing that was confirmed is lost.")
	}
	if f.closed.Load() {
		return errStopping() // Refuse new writes, because a steady stream of them would keep Close waiting.
	}
	return nil
}

func errStopping() error {
	return fault.New(fault.Unavailable, "This portal is stopping. Try again in a moment.")
}

// runWriter commits the queued writes until Close. Only its goroutine uses the writing connection.
func (f *DB) runWriter() {
	defer close(f.done)
	tick := time.NewTicker(checkpointEvery)
	defer tick.Stop()
	batch := make([]*op, 0, maxBatch)
	for {
		batch = batch[:0]
		select {
		case o := <-f.ops:
			batch = append(batch, o)
		case <-tick.C:
			f.checkpoint()
			continue
		case fn := <-f.between:
			fn()
			continue
		case <-f.flush:
		case <-f.stop:
			// Writes that were queued before Close are still committed.
			select {
			case o := <-f.ops:
				batch = append(batch, o)
			default:
				f.commitBatch(nil)
				return
			}
		}
		f.commitBatch(f.gatherOps(batch))
	}
}

// gatherOps adds queued writes to a batch after a yield to running goroutines, because the caller of the
// last commit often writes again at once, and a commit costs as much as several writes. Without running
// goroutines the yield takes no time.
func (f *DB) gatherOps(batch []*op) []*op {
	for range gathers {
		runtime.Gosched()
		had := len(batch)
		for len(batch) < maxBatch && len(f.ops) > 0 {
			batch = append(batch, <-f.ops) // This does not block, because no other goroutine receives from ops.
		}
		if len(batch) == had || len(batch) == maxBatch {
			break
		}
	}
	return batch
}

// commitBatch runs the writes as one transaction, after those of WriteSoon. If a write fails after
// changing rows, the batch is rolled back and run again without it, so that one bad write never fails
// another. Its caller is answered only after the retry commits, because the row it conflicted with may
// be in the same batch.
func (f *DB) commitBatch(batch []*op) {
	if soon := f.takeSoon(); len(soon) > 0 {
		batch = slices.Insert(batch, 0, soon...)
		defer func() {
			for _, o := range soon {
				o.soon.NoteOutcome(o.err)
			}
		}()
	}
	live := batch[:0]
	for _, o := range batch {
		if o.claimed.CompareAndSwap(false, true) {
			live = append(live, o)
		}
	}
	var out []*op
	defer func() {
		for _, o := range out {
			close(o.done)
		}
	}()
	for len(live) > 0 {
		bad, err := f.attemptBatch(live)
		if bad >= 0 {
			out = append(out, live[bad])
			live = append(live[:bad], live[bad+1:]...)
			continue
		}
		for _, o := range live {
			if err != nil {
				o.err = err
			}
			close(o.done)
		}
		return
	}
}

// attemptBatch is runBatch, and runs the writes once more if the disk was full and the reserve could be
// given up.
func (f *DB) attemptBatch(ops []*op) (bad int, err error) {
	bad, err = f.runBatch(ops)
	full := IsFull(err) || bad >= 0 && IsFull(ops[bad].err)
	if full && f.kind.Reserve != nil && f.kind.Reserve.GiveUp() {
		f.log.Warn("the disk is full, the reserve is given up", "file", f.path)
		return f.runBatch(ops)
	}
	return bad, err
}

// runBatch runs the writes and commits. It returns the index of a write that must be removed from
// the batch, or -1 and the outcome of the commit. Writes that failed before their first change keep
// their error and stay.
func (f *DB) runBatch(ops []*op) (bad int, err error) {
	if err := f.Err(); err != nil {
		return -1, fault.Wrap(fault.Unavailable, err, "This portal cannot write to its disk and has to be restarted.")
	}
	ctx := context.Background()
	t := &Tx{f: f}
	if _, err := t.Exec("BEGIN IMMEDIATE"); err != nil {
		f.NoteError(err)
		return -1, fmt.Errorf("begin: %w", classify(err))
	}
	for i, o := range ops {
		before := t.writes
		o.err = runOp(o.fn, t)
		// An error of SQLite itself may have ended the transaction, so that later statements would be
		// committed on their own.
		broke := ErrorCode(o.err) != 0 && ErrorCode(o.err)&0xff != sqliteConstraint
		if o.err != nil && (t.writes > before || broke) {
			t.endTx(false)
			f.rollback(ctx)
			f.NoteError(o.err)
			return i, nil
		}
	}
	_, err = t.Exec("COMMIT")
	t.endTx(err == nil)
	if err != nil {
		f.rollback(ctx)
		f.NoteError(err)
		return -1, fmt.Errorf("commit: %w", classify(err))
	}
	return -1, nil
}

func runOp(fn func(engine.Tx) error, t *Tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			t.writes++ // The changes of a write that panicked are unknown, so require a rollback.
			err = fmt.Errorf("panic in a write: %v\n%s", p, debug.Stack())
		}
	}()
	return fn(t)
}

func (f *DB) rollback(ctx context.Context) {
	if _, err := f.wconn.ExecContext(ctx, "ROLLBACK"); err != nil && !strings.Contains(err.Error(), "no transaction") {
		f.stopWriting(fmt.Errorf("rollback: %w", err))
	}
}

// NoteError stops all writing after an I/O error or damage: after a failed fsync the state on disk is
// unknown, and another attempt could report success for lost bytes. A full disk is no such error,
// because SQLite rolls back and recovers by itself.
func (f *DB) NoteError(err error) {
	if ErrorCode(err) == sqliteCorruptVTab {
		return // A damaged full-text index is filled again, so writing goes on.
	}
	c := ErrorCode(err) & 0xff
	if c == sqliteIOErr && !IsFull(err) || c == sqliteCorrupt || c == sqliteNotADB {
		f.stopWriting(err)
	}
	if c == sqliteCorrupt || c == sqliteNotADB {
		f.MarkDamaged()
	}
}

// MarkDamaged creates the file that marks the database as damaged, if its kind has one. The next start
// of the portal reads it.
func (f *DB) MarkDamaged() {
	if f.kind.DamagedSuffix == "" {
		return
	}
	if err := os.WriteFile(f.path+f.kind.DamagedSuffix, nil, 0o600); err != nil {
		f.log.Error("mark the database as damaged", "file", f.path, "error", err)
	}
}

func (f *DB) stopWriting(err error) {
	err = fmt.Errorf("database %s: %w", f.path, err)
	if f.broken.CompareAndSwap(nil, &err) {
		f.log.Error("database failed, writing stops", "error", err)
		close(f.fatal)
	}
}
