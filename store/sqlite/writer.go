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
)

const (
	// maxQueuedWrites bounds the waiting writes; beyond it callers wait for maxWriteWait and then get an
	// error that asks to retry.
	maxQueuedWrites = 4096
	// maxBatch bounds the work one failing write can cost the others.
	maxBatch     = 256
	maxWriteWait = 5 * time.Second
	// gathers bounds how often a batch yields to running goroutines, if each yield brought another write.
	gathers = 3
)

// op is one queued write. claimed decides between the writer, which runs it, and the caller, which
// gave up waiting: exactly one of them wins.
type op struct {
	fn      func(*Tx) error
	err     error
	done    chan struct{}
	soon    SoonWrite // of a write by WriteSoon
	claimed atomic.Bool
}

// Tx is the writer's transaction as one op sees it. It counts writes, so that
// an op that failed before it wrote anything needs no rollback.
type Tx struct {
	f      *DB
	writes int
	ends   map[Ender]struct{}
}

// Ender acts on the end of a transaction that it has something to do with. The
// writer calls it before any caller is answered, also for a batch that is
// rolled back and tried again without a failed write.
type Ender interface{ Ended(committed bool) }

// AtEnd has e called once when the transaction has ended.
func (t *Tx) AtEnd(e Ender) {
	if t.ends == nil {
		t.ends = make(map[Ender]struct{})
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
			return nil, err
		}
		s = prepared
		t.f.wstmt[query] = s
	}
	return s, nil
}

// Exec runs a statement that writes.
func (t *Tx) Exec(query string, args ...any) (sql.Result, error) {
	s, err := t.stmt(query)
	if err != nil {
		return nil, err
	}
	res, err := s.Exec(args...)
	t.note(err)
	return res, err
}

// note counts a write. SQLite takes back a statement that broke a constraint
// by itself, so a refused duplicate costs the batch no rollback.
func (t *Tx) note(err error) {
	if ErrorCode(err)&0xff != sqliteConstraint {
		t.writes++
	}
}

// RequireRollback causes a rollback if the current write fails, even if it changed no row, because it
// changed data that the transaction has in memory.
func (t *Tx) RequireRollback() { t.writes++ }

// Get reads one row; a statement with RETURNING counts as a write.
func (t *Tx) Get(dest any, query string, args ...any) error {
	s, err := t.stmt(query)
	if err != nil {
		return err
	}
	err = s.Get(dest, args...)
	if !strings.HasPrefix(query, "SELECT") {
		t.note(err)
	}
	return err
}

// List reads rows.
func (t *Tx) List(dest any, query string, args ...any) error {
	s, err := t.stmt(query)
	if err != nil {
		return err
	}
	return s.Select(dest, args...)
}

// Write runs fn in a transaction that other writes may share and returns once it is on disk. fn may
// run more than once, when another write of its batch failed: it must set its results anew each time
// and have no other effects. It must not block on anything but the database.
//
// When ctx ends while the write still waits, it is withdrawn; once it has begun, Write waits for its
// outcome.
func (f *DB) Write(ctx context.Context, fn func(*Tx) error) error {
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
		// The writer has ended: the op was run before it did, or never.
		if o.claimed.CompareAndSwap(false, true) {
			return errStopping()
		}
		<-o.done
	}
	return MapError(o.err)
}

// SoonWrite is a small write that may share the commit of the next write.
type SoonWrite interface {
	// WriteRows changes rows, by the rules of DB.Write.
	WriteRows(t *Tx) error
	// NoteOutcome is called once with the outcome of the transaction.
	NoteOutcome(err error)
}

// WriteSoon runs w at the beginning of the next transaction, at the latest after delay: one commit is enough for a
// small write and the one that follows it.
func (f *DB) WriteSoon(delay time.Duration, w SoonWrite) {
	f.soonMu.Lock()
	f.soon = append(f.soon, &op{fn: w.WriteRows, done: make(chan struct{}), soon: w})
	f.soonMu.Unlock()
	time.AfterFunc(delay, func() {
		select {
		case f.flush <- struct{}{}:
		default: // the writer is woken already
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

// Writable says why nothing can be written any more.
func (f *DB) Writable() error {
	if err := f.Err(); err != nil {
		return fault.Wrap(fault.Unavailable, err,
			"This portal cannot write to its disk and has to be restarted. Nothing that was confirmed is lost.")
	}
	if f.closed.Load() {
		return errStopping() // or a steady stream of writes would keep Close waiting
	}
	return nil
}

func errStopping() error {
	return fault.New(fault.Unavailable, "This portal is stopping. Try again in a moment.")
}

// runWriter is the one goroutine that uses the writing connection.
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
		case <-f.flush:
		case <-f.stop:
			// Whatever was queued before the stop is still written.
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

// gatherOps adds the queued writes to a batch after a yield to running goroutines: a caller of the last
// commit often writes again at once, and a commit costs as much as several writes. If no goroutine is
// running the yield takes no time.
func (f *DB) gatherOps(batch []*op) []*op {
	for range gathers {
		runtime.Gosched()
		had := len(batch)
		for len(batch) < maxBatch && len(f.ops) > 0 {
			batch = append(batch, <-f.ops) // no other goroutine receives from it
		}
		if len(batch) == had || len(batch) == maxBatch {
			break
		}
	}
	return batch
}

// commitBatch runs the ops as one transaction, after the rows that belong before them. If an op fails after
// changing rows, the batch is rolled back and run again without it, so one bad write never costs
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

// attemptBatch returns the index of an op that has to be taken out, or -1 and the
// outcome of the commit. Ops that failed without writing keep their error and
// stay.
func (f *DB) attemptBatch(ops []*op) (bad int, err error) {
	if err := f.Err(); err != nil {
		return -1, fault.Wrap(fault.Unavailable, err, "This portal cannot write to its disk and has to be restarted.")
	}
	ctx := context.Background()
	t := &Tx{f: f}
	if _, err := t.Exec("BEGIN IMMEDIATE"); err != nil {
		f.NoteError(err)
		return -1, fmt.Errorf("begin: %w", err)
	}
	for i, o := range ops {
		before := t.writes
		o.err = runOp(o.fn, t)
		// An error of SQLite itself may have ended the transaction already: later statements would be
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
		return -1, fmt.Errorf("commit: %w", err)
	}
	return -1, nil
}

func runOp(fn func(*Tx) error, t *Tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			t.writes++ // its changes are unknown: roll back
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

// NoteError stops all writing after an I/O error: after a failed fsync the state on disk is unknown,
// and another try could report success for lost bytes. A full disk is not such an error: SQLite rolls
// back and recovers by itself.
func (f *DB) NoteError(err error) {
	if ErrorCode(err) == sqliteCorruptVTab {
		return // the words of messages, which are read anew
	}
	c := ErrorCode(err) & 0xff
	if c == sqliteIOErr || c == sqliteCorrupt || c == sqliteNotADB {
		f.stopWriting(err)
	}
	if c == sqliteCorrupt || c == sqliteNotADB {
		f.MarkDamaged()
	}
}

// MarkDamaged notes beside the file that it is damaged, if its kind wants that.
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

// checkpoint empties a large WAL; readers that hold it make it a no-op.
func (f *DB) checkpoint() {
	st, err := os.Stat(f.path + "-wal")
	if err != nil || st.Size() < checkpointBytes || f.Err() != nil {
		return
	}
	if _, err := f.wconn.ExecContext(context.Background(), "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		f.NoteError(err)
		f.log.Warn("checkpoint", "error", err)
	}
}
