package replication_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/federation"
	"agentsite/internal/record"
)

// What gossip tells of is asked for if it does not come by itself; what is not
// so is asked for once.
func TestSyncer_AsksOnceForWhatGossipTellsOf(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.end()
		a := w.add()
		b := w.add(a)
		b.register("x")
		b.publish()
		w.until(time.Minute, "settled", w.settled)
		a.lie = func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
			if strings.HasSuffix(r.URL.Path, "/hint") { // none arrives
				rw.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			next.ServeHTTP(rw, r)
		}
		head := func() record.Version {
			s, err := b.replica.Standing(t.Context(), b.ID)
			if err != nil {
				t.Fatal(err)
			}
			return s.Head
		}
		mark := federation.MarkOf(b.ID)
		a.syncer.Rumour(mark, head()) // known
		a.syncer.Rumour(federation.MarkOf(a.ID), record.Version{Epoch: 1 << 50, Seq: 1})
		a.syncer.Rumour(12345, record.Version{Epoch: 1 << 50, Seq: 1}) // nobody's
		time.Sleep(5 * time.Second)
		if n := w.times("head"); n != 0 {
			t.Errorf("asked %d times for what is known", n)
		}
		b.register("y")
		b.publish()
		for range 20 {
			a.syncer.Rumour(mark, head())
		}
		took := w.until(time.Minute, "y is there", func() bool { return a.holds(b) && a.directory.has(b.id("y")) })
		if took > 4*time.Second {
			t.Errorf("it took %v", took)
		}
		if n := w.times("head"); n != 1 {
			t.Errorf("asked %d times, want once", n)
		}
		// A lie costs one request in ten minutes.
		lie := head()
		lie.Seq += 1000
		for range 300 {
			time.Sleep(time.Second)
			a.syncer.Rumour(mark, lie)
		}
		if n := w.times("head"); n != 2 {
			t.Errorf("asked %d times for what nobody has, want once", n-1)
		}
	})
}
