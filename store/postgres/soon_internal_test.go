package postgres

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"agentsite/internal/testing/pgtest"
	"agentsite/store/engine"
)

// soonWrite sets a counter, or fails if it has no name.
type soonWrite struct {
	name    string
	outcome chan error
}

var errNameless = errors.New("no name")

func (w *soonWrite) WriteRows(t engine.Tx) error {
	if w.name == "" {
		return errNameless
	}
	_, err := t.Exec(`INSERT INTO counters (name, value) VALUES (?, 1)`, w.name)
	return err
}

func (w *soonWrite) NoteOutcome(err error) { w.outcome <- err }

// A write sees the small writes that came before it, and does not fail with them.
func TestWriteSoon_RunsBeforeTheNextWrite(t *testing.T) {
	t.Parallel()
	d, err := Open(t.Context(), pgtest.NewDatabase(t), Portal(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	count := func(fail error) (n int, err error) {
		err = d.Write(t.Context(), func(t engine.Tx) error {
			return errors.Join(t.Get(&n, `SELECT COUNT(*) FROM counters WHERE name LIKE 'soon%'`), fail)
		})
		return n, err
	}
	good := &soonWrite{"soon", make(chan error, 1)}
	d.WriteSoon(time.Hour, good)
	if n, err := count(nil); n != 1 || err != nil {
		t.Errorf("the next write sees %d, %v", n, err)
	}
	if err := <-good.outcome; err != nil {
		t.Error(err)
	}

	bad, own := &soonWrite{"", make(chan error, 1)}, errors.New("own")
	d.WriteSoon(time.Hour, bad)
	if n, err := count(nil); n != 1 || err != nil {
		t.Errorf("beside a small write that fails: %d, %v", n, err)
	}
	if err := <-bad.outcome; !errors.Is(err, errNameless) {
		t.Error(err)
	}

	kept := &soonWrite{"soon kept", make(chan error, 1)}
	d.WriteSoon(time.Hour, kept)
	if _, err := count(own); !errors.Is(err, own) {
		t.Errorf("a write that fails: %v", err)
	}
	if err := <-kept.outcome; err != nil {
		t.Errorf("the small write failed with the other: %v", err)
	}
	if n, err := count(nil); n != 2 || err != nil {
		t.Errorf("%d small writes are there, %v", n, err)
	}
}
