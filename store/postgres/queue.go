package postgres

import (
	"context"
	"runtime"
	"slices"
	"time"

	"agentsite/internal/fault"
	"agentsite/store/engine"
)

const (
	// maxWriteWait bounds how long a write waits for those before it. Then it gets an Unavailable fault.
	maxWriteWait = 5 * time.Second
	// maxBatch bounds the writes of one transaction, because one that fails makes the others run again.
	maxBatch = 64
)

// op is one waiting write. done is closed once err is set.
type op struct {
	fn   func(engine.Tx) error
	err  error
	done chan struct{}
	soon engine.SoonWrite // set for a write by WriteSoon
}

// finish passes err on to the caller of the write.
func (o *op) finish() {
	if o.soon != nil {
		o.soon.NoteOutcome(engine.MapError(o.err))
	}
	close(o.done)
}

// Write implements engine.DB. It waits for its turn while ctx lasts. Once it has begun it goes on to its
// outcome. The caller that gets the turn runs the writes that wait at that moment, its own among them, in one
// transaction.
func (d *DB) Write(ctx context.Context, fn func(engine.Tx) error) error {
	if err := d.Writable(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	o := &op{fn: fn, done: make(chan struct{})}
	d.waitMu.Lock()
	d.waiting = append(d.waiting, o)
	d.waitMu.Unlock()
	if err := d.await(ctx, o); err != nil && d.withdraw(o) {
		return err
	}
	<-o.done
	return engine.MapError(o.err)
}

// await returns nil when the write is done, and an error if it should be withdrawn. It runs batches when it
// gets the turn.
func (d *DB) await(ctx context.Context, o *op) error {
	wait := time.NewTimer(maxWriteWait)
	defer wait.Stop()
	for {
		select {
		case <-o.done: // also if the turn is free
			return nil
		default:
		}
		select {
		case <-o.done:
			return nil
		case d.turn <- struct{}{}:
			d.gather()
			d.commitWaiting()
			d.endTurn()
		case <-ctx.Done():
			return ctx.Err()
		case <-d.stop:
			return errStopping()
		case <-wait.C:
			return errBusy()
		}
	}
}

func errBusy() error {
	return &fault.Error{Kind: fault.Unavailable, Safe: "This portal is busy writing. Try again in a moment.",
		RetryAfter: maxWriteWait}
}

// gather lets running goroutines add writes to the next batch, until none does.
func (d *DB) gather() {
	for before := -1; ; {
		d.waitMu.Lock()
		n := len(d.waiting)
		d.waitMu.Unlock()
		if n == before || n >= maxBatch {
			return
		}
		before = n
		runtime.Gosched()
	}
}

// withdraw removes a write that has not begun, and reports whether it did.
func (d *DB) withdraw(o *op) bool {
	d.waitMu.Lock()
	defer d.waitMu.Unlock()
	i := slices.Index(d.waiting, o)
	if i >= 0 {
		d.waiting = slices.Delete(d.waiting, i, i+1)
	}
	return i >= 0
}

// commitWaiting runs the small writes and the first of those that wait. The caller holds turn.
func (d *DB) commitWaiting() {
	d.waitMu.Lock()
	n := min(len(d.waiting), maxBatch)
	ops := slices.Concat(d.soon, d.waiting[:n])
	d.soon, d.waiting = nil, slices.Delete(d.waiting, 0, n)
	d.waitMu.Unlock()
	// A write that failed is answered after the others are on disk, because the row that it conflicted with
	// may be one of theirs.
	for left, size := slices.Clone(ops), len(ops); len(left) > 0; {
		bad, err := d.runBatch(left[:size])
		if bad >= 0 {
			// Those before the one that failed run again, and those after it in the next transaction, so that
			// no write runs more than twice because of others.
			left = slices.Delete(left, bad, bad+1)
			if size = bad; size == 0 {
				size = len(left)
			}
			continue
		}
		for _, o := range left[:size] {
			if err != nil {
				o.err = err // it was not stored, whatever it returned
			}
		}
		left = left[size:]
		size = len(left)
	}
	for _, o := range ops {
		o.finish()
	}
}

// takeTurn waits for the turn, for writes that are no part of a batch.
func (d *DB) takeTurn(ctx context.Context) error {
	if err := d.Writable(); err != nil {
		return err
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
		return errBusy()
	}
}

// WriteSoon implements engine.DB.
func (d *DB) WriteSoon(delay time.Duration, w engine.SoonWrite) {
	d.waitMu.Lock()
	d.soon = append(d.soon, &op{fn: w.WriteRows, soon: w, done: make(chan struct{})})
	first := len(d.soon) == 1
	d.waitMu.Unlock()
	if !first {
		return
	}
	time.AfterFunc(delay, func() {
		if d.takeTurn(context.Background()) == nil {
			defer d.endTurn()
			d.commitWaiting()
		}
	})
}
