package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"agentsite/internal/fault"

	"agentsite/store/engine"
)

func note(d *DB, ctx context.Context, subject string) error {
	return d.Write(ctx, func(t engine.Tx) error { return putSubject(t, subject) })
}

func putSubject(t engine.Tx, subject string) error {
	_, err := t.Exec(`INSERT INTO audit (actor_kind, actor_id, act, subject, created_at) VALUES ('', '', '', ?, 0)`, subject)
	return err
}

// addName takes the name ada, which may be taken once.
func addName(t engine.Tx, ref string) error {
	_, err := t.Exec(`INSERT INTO names (name, kind, ref, created_at) VALUES ('ada', 'agent', ?, 1)`, ref)
	return engine.MapError(err)
}

func subjects(t *testing.T, d *DB) map[string]int {
	t.Helper()
	var list []string
	if err := d.List(t.Context(), &list, `SELECT subject FROM audit`); err != nil {
		t.Fatal(err)
	}
	m := make(map[string]int, len(list))
	for _, s := range list {
		m[s]++
	}
	return m
}

// hold stops the writer inside an op until the returned function is called,
// so that what is queued meanwhile becomes one batch.
func hold(t *testing.T, d *DB) (release func()) {
	t.Helper()
	in, out := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- d.Write(context.Background(), func(engine.Tx) error {
			select {
			case <-in:
			default:
				close(in)
			}
			<-out
			return nil
		})
	}()
	<-in
	return func() {
		close(out)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// together queues the ops behind one another and runs them as one batch.
func together(t *testing.T, d *DB, ops ...func(engine.Tx) error) []error {
	t.Helper()
	release := hold(t, d)
	errs := make([]error, len(ops))
	var wg sync.WaitGroup
	for i, fn := range ops {
		queued := len(d.ops)
		wg.Go(func() { errs[i] = d.Write(context.Background(), fn) })
		for len(d.ops) == queued {
			runtime.Gosched() // the next op must stand behind this one
		}
	}
	release()
	wg.Wait()
	return errs
}

func TestWrite_AcknowledgedIsThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := openTestFile(t, dir)
	const writers, each = 64, 50
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if err := note(d, t.Context(), fmt.Sprint(w, "/", i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	copied := copyKilled(t, dir) // as a kill right after the last acknowledgement leaves it
	for _, d := range []*DB{d, openTestFile(t, copied)} {
		got := subjects(t, d)
		if len(got) != writers*each {
			t.Errorf("%d rows of %d", len(got), writers*each)
		}
		for s, n := range got {
			if n != 1 {
				t.Errorf("%s is there %d times", s, n)
			}
		}
	}
}

func TestWrite_FailureCostsOnlyItself(t *testing.T) {
	t.Parallel()
	d := openTestFile(t, t.TempDir())
	refused := errors.New("refused")
	errs := together(t, d,
		func(t engine.Tx) error { return putSubject(t, "first") },
		func(t engine.Tx) error { return refused },
		func(t engine.Tx) error { return errors.Join(putSubject(t, "taken back"), refused) },
		func(t engine.Tx) error { panic("planted") },
		func(t engine.Tx) error { putSubject(t, "taken back too"); panic("planted") },
		func(t engine.Tx) error { return addName(t, "x") },
		func(t engine.Tx) error { return addName(t, "y") }, // taken
		func(t engine.Tx) error { return errors.Join(putSubject(t, "and back"), addName(t, "y")) },
		func(t engine.Tx) error { _, err := t.Exec(`INSERT INTO nowhere VALUES (1)`); return err },
		func(t engine.Tx) error { return putSubject(t, "last") },
	)
	for i, fails := range []bool{false, true, true, true, true, false, true, true, true, false} {
		if (errs[i] != nil) != fails {
			t.Errorf("op %d: %v", i, errs[i])
		}
	}
	if !errors.Is(errs[1], refused) || !errors.Is(errs[2], refused) || !fault.Is(errs[6], fault.Conflict) {
		t.Error(errs)
	}
	if got := subjects(t, d); len(got) != 2 || got["first"] != 1 || got["last"] != 1 {
		t.Error(got)
	}
	if d.Err() != nil {
		t.Error(d.Err())
	}
}

// A batch of refused duplicates is not run again for each of them.
func TestWrite_DuplicatesAreCheap(t *testing.T) {
	t.Parallel()
	d := openTestFile(t, t.TempDir())
	runs := 0 // the writer's alone
	ops := make([]func(engine.Tx) error, 100)
	for i := range ops {
		ops[i] = func(t engine.Tx) error { runs++; return addName(t, fmt.Sprint(i)) }
	}
	failed := 0
	for _, err := range together(t, d, ops...) {
		if err != nil {
			failed++
		}
	}
	if failed != 99 || runs != 100 {
		t.Errorf("%d failed, %d runs", failed, runs)
	}
}

func TestWrite_CancelledWhileQueuedIsWithdrawn(t *testing.T) {
	t.Parallel()
	d := openTestFile(t, t.TempDir())
	release := hold(t, d)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := note(d, ctx, "withdrawn"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	release()
	if err := note(d, t.Context(), "after"); err != nil {
		t.Error(err)
	}
	if got := subjects(t, d); len(got) != 1 {
		t.Error(got)
	}
}

// Once a write has begun its outcome is told, whatever the caller's context.
func TestWrite_BegunIsNotWithdrawn(t *testing.T) {
	t.Parallel()
	d := openTestFile(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	if err := d.Write(ctx, func(t engine.Tx) error { cancel(); return putSubject(t, "begun") }); err != nil {
		t.Error(err)
	}
	if got := subjects(t, d); len(got) != 1 {
		t.Error(got)
	}
}

func TestWrite_QueueIsBounded(t *testing.T) {
	t.Parallel()
	d := openTestFile(t, t.TempDir())
	release := hold(t, d)
	for len(d.ops) < cap(d.ops) {
		d.ops <- &op{fn: func(engine.Tx) error { return nil }, done: make(chan struct{})}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := note(d, ctx, "too many"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	// Who waits in front of a full queue is told when the portal stops.
	waiting := make(chan error, 1)
	go func() { waiting <- note(d, t.Context(), "waits") }()
	closed := make(chan error, 1)
	go func() { closed <- d.Close() }()
	err := <-waiting
	if !fault.Is(err, fault.Unavailable) {
		t.Error(err)
	}
	release()
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

func TestWrite_AfterClose(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := openTestFile(t, dir)
	release := hold(t, d)
	queued := make(chan error, 1)
	go func() { queued <- note(d, context.Background(), "queued before") }()
	for len(d.ops) == 0 {
		runtime.Gosched()
	}
	closed := make(chan error, 1)
	go func() { closed <- d.Close() }()
	<-d.stop
	if err := note(d, t.Context(), "too late"); !fault.Is(err, fault.Unavailable) {
		t.Error(err)
	}
	release()
	if err := errors.Join(<-queued, <-closed, d.Close()); err != nil {
		t.Error(err)
	}
	if err := note(d, t.Context(), "later still"); !fault.Is(err, fault.Unavailable) {
		t.Error(err)
	}
	if got := subjects(t, openTestFile(t, dir)); len(got) != 1 || got["queued before"] != 1 {
		t.Error(got)
	}
}

// Racing with Close a write is done or refused, and told which.
func TestWrite_WhileClosing(t *testing.T) {
	t.Parallel()
	for range 10 {
		dir := t.TempDir()
		d := openTestFile(t, dir)
		acked := make(chan string, 1000)
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				for i := 0; ; i++ {
					s := fmt.Sprint(w, "/", i)
					if err := note(d, context.Background(), s); err != nil {
						if !fault.Is(err, fault.Unavailable) {
							t.Error(err)
						}
						return
					}
					select {
					case acked <- s:
					default:
						return
					}
				}
			})
		}
		<-acked
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
		got := subjects(t, openTestFile(t, dir))
		for len(acked) > 0 {
			if s := <-acked; got[s] != 1 {
				t.Errorf("%s was acknowledged and is gone", s)
			}
		}
	}
}

// A full disk refuses writes and nothing else; with room again it goes on.
func TestWrite_DiskFull(t *testing.T) {
	t.Parallel()
	d := openTestFile(t, t.TempDir())
	pages := func(n int) {
		t.Helper()
		var now int
		if err := d.Write(t.Context(), func(t engine.Tx) error {
			return d.wconn.GetContext(context.Background(), &now, fmt.Sprintf("PRAGMA max_page_count = %d", n))
		}); err != nil {
			t.Fatal(err)
		}
	}
	pages(1) // SQLite makes it the present size
	big := func(t engine.Tx) error {
		for range 200 {
			if err := putSubject(t, fmt.Sprintf("%0500d", 0)); err != nil {
				return err
			}
		}
		return nil
	}
	errs := together(t, d, func(t engine.Tx) error { return putSubject(t, "small") }, big, func(t engine.Tx) error { return putSubject(t, "small too") })
	if errs[0] != nil || !fault.Is(errs[1], fault.Unavailable) || errs[2] != nil {
		t.Error(errs)
	}
	if got := subjects(t, d); len(got) != 2 {
		t.Errorf("%d rows", len(got))
	}
	pages(1 << 30)
	if err := d.Write(t.Context(), big); err != nil {
		t.Error(err)
	}
	if d.Err() != nil {
		t.Error(d.Err())
	}
}

// Damage that a write meets stops all writing for good, even when the op had
// only read so far; reading goes on.
func TestWrite_DamageStopsWriting(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := openTestFile(t, dir)
	var page int64
	if err := d.Get(t.Context(), &page, `SELECT rootpage FROM sqlite_master WHERE name = 'audit'`); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, FileName), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(make([]byte, 4096), (page-1)*4096); err != nil {
		t.Fatal(err)
	}
	f.Close()

	d = openTestFile(t, dir)
	err = d.Write(t.Context(), func(t engine.Tx) error {
		var n int
		return t.Get(&n, `SELECT COUNT(*) FROM audit WHERE subject <> ''`)
	})
	if ErrorCode(err)&0xff != sqliteCorrupt {
		t.Fatal(err)
	}
	<-d.Fatal()
	if d.Err() == nil {
		t.Error("no reason")
	}
	if err := note(d, t.Context(), "more"); !fault.Is(err, fault.Unavailable) {
		t.Error(err)
	}
	var name string
	if err := d.Get(t.Context(), &name, `SELECT name FROM accounts`); !errors.Is(err, sql.ErrNoRows) {
		t.Error(err)
	}
	if faults, err := d.QuickCheck(t.Context()); err != nil || len(faults) == 0 {
		t.Error(faults, err)
	}
}
