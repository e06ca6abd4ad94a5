package space_test

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/fault"
	"agentsite/store/space"
)

// meter reports a free space that the test sets, and counts the questions.
type meter struct{ free, asked atomic.Int64 }

func (m *meter) FreeBytes(string) (int64, error) {
	m.asked.Add(1)
	return m.free.Load(), nil
}

const mib = 1 << 20

func TestSpace_Levels(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		m := &meter{}
		m.free.Store(100 * mib)
		s := space.New(dir, space.Config{Floor: 32 * mib, ShortText: 100, Reserve: 2 * mib, Meter: m})
		reserve := func() bool {
			st, err := os.Stat(filepath.Join(dir, space.FileName))
			return err == nil && st.Size() == 2*mib
		}
		if err := s.Refill(); err != nil || !reserve() {
			t.Fatalf("the reserve is not there: %v", err)
		}
		for i, c := range []struct {
			free        int64
			level       space.Level
			held        bool
			long, short bool // a long and a short text of an account pass
			guest       bool
		}{
			{100 * mib, space.Ample, true, true, true, true},
			{31 * mib, space.Low, true, false, true, false},
			{5 * mib, space.Low, true, false, true, false},
			{1 * mib, space.Full, false, false, false, false},
			{5 * mib, space.Full, false, false, false, false},
			{32*mib + mib/2, space.Full, false, false, false, false}, // the floor without the reserve's room
			{33 * mib, space.Ample, false, true, true, true},
		} {
			m.free.Store(c.free)
			time.Sleep(time.Second)
			if got := s.Level(); got != c.level || reserve() != c.held {
				t.Errorf("step %d: level %d, reserve %v, want %+v", i, got, reserve(), c)
			}
			for _, w := range []struct {
				err  error
				pass bool
			}{{s.Check(101, true), c.long}, {s.Check(100, true), c.short}, {s.Check(1, false), c.guest}} {
				if f := fault.As(w.err); w.pass != (w.err == nil) || w.err != nil && (f.Kind != fault.Unavailable || !f.Full || f.RetryAfter == 0) {
					t.Errorf("step %d: %v", i, w.err)
				}
			}
			if err := s.Refill(); err != nil || c.free < 34*mib && reserve() != c.held {
				t.Errorf("step %d: the reserve was filled again at %d bytes: %v", i, c.free, err)
			}
		}
		m.free.Store(40 * mib)
		if err := s.Refill(); err != nil || !reserve() {
			t.Errorf("the reserve is not filled again: %v", err)
		}
		before := m.asked.Load()
		for range 1000 {
			s.Level()
		}
		if n := m.asked.Load() - before; n > 1 {
			t.Errorf("the file system was asked %d times at once", n)
		}
		if !s.GiveUp() || s.GiveUp() || reserve() {
			t.Error("the reserve is given up once")
		}
	})
}

// The real file system answers, and the reserve takes room of it.
func TestSpace_AllocatesOnDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := space.New(dir, space.Config{Reserve: 3 * mib})
	if err := s.Refill(); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(filepath.Join(dir, space.FileName))
	if err != nil || st.Size() != 3*mib || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
}
