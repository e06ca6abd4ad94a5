package sqlite

import (
	"errors"
	"runtime"
	"sync"
	"testing"

	"agentsite/store/engine"
)

// A write that fails by another of its batch is told so when that one can be
// read.
func TestWrite_FailsWhenItsBatchIsOnDisk(t *testing.T) {
	t.Parallel()
	d := openTestFile(t, t.TempDir())
	const insert = `INSERT INTO first_asks (caller_id, agent_id, client_id, conversation_id) VALUES (?, 'a', 'm', 'c')`
	begun, free := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		first := true
		err := d.Write(t.Context(), func(engine.Tx) error {
			if first { // the others come meanwhile and are one batch
				first = false
				close(begun)
				<-free
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-begun
	queue := func(n int, fn func()) {
		wg.Go(fn)
		for len(d.ops) < n {
			runtime.Gosched()
		}
	}
	queue(1, func() {
		if err := d.Write(t.Context(), func(t engine.Tx) error { _, err := t.Exec(insert, "first"); return err }); err != nil {
			t.Error(err)
		}
	})
	queue(2, func() {
		no := errors.New("there is one")
		err := d.Write(t.Context(), func(t engine.Tx) error {
			if _, err := t.Exec(insert, "second"); err != nil {
				return err
			}
			return no
		})
		var n int
		if err := d.Get(t.Context(), &n, `SELECT COUNT(*) FROM first_asks`); err != nil || n != 1 {
			t.Errorf("%d rows %v", n, err)
		}
		if !errors.Is(err, no) {
			t.Error(err)
		}
	})
	close(free)
	wg.Wait()
}
