package replication_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/federation"
	"agentsite/internal/testing/federationtest"
)

// changes implements replication.Changes.
type changes struct {
	mu   sync.Mutex // guards next
	next chan struct{}
}

func (c *changes) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.next
}

// notify reports a change.
func (c *changes) notify() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.next)
	c.next = make(chan struct{})
}

// hears reports changes of decisions to a node, as the registry of a portal does.
func (n *node) hears() (told func()) {
	c := &changes{next: make(chan struct{})}
	n.changes = c
	return c.notify
}

var shutOut = federation.Decision{State: federation.Denied, Reason: "no"}

func TestSyncer_DeniedIsLetGoAtOnceAndComesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.end()
		a := w.add()
		b := w.add(a)
		b.register("x")
		b.publish()
		w.until(time.Minute, "settled", w.settled)
		a.halt()
		told := a.hears()
		a.start(b)
		w.until(time.Minute, "settled again", w.settled)
		held := func() int {
			n, _, err := a.replica.Holding(t.Context(), b.ID)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		// For a time only: what is held stays.
		kept := shutOut
		kept.Keep = true
		a.registry.Say(b.ID, kept)
		told()
		time.Sleep(time.Second)
		if held() != 1 {
			t.Error("what was to be kept is gone")
		}
		a.registry.Say(b.ID, federation.Decision{State: federation.Denied})
		told()
		time.Sleep(time.Second)
		if held() != 0 || a.directory.has(b.id("x")) {
			t.Error("it is still held after a second")
		}
		// It was a mistake.
		a.registry.Say(b.ID, federationtest.In)
		told()
		took := w.until(time.Minute, "back", func() bool { return a.holds(b) && a.directory.has(b.id("x")) })
		if took > 5*time.Second {
			t.Errorf("it took %v to come back", took)
		}
	})
}

func TestSyncer_PullEndsWhenItsPortalIsDenied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.end()
		a := w.add()
		told := a.hears()
		a.halt()
		a.start()
		b := w.add(a)
		w.until(time.Minute, "settled", w.settled)
		asked := make(chan struct{})
		var once sync.Once
		var said, ended atomic.Int64 // in ns
		b.lie = func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
			if !strings.HasSuffix(r.URL.Path, "/log") {
				next.ServeHTTP(rw, r)
				return
			}
			once.Do(func() { close(asked) })
			<-r.Context().Done() // drop by drop
			ended.Store(time.Now().UnixNano())
		}
		b.register("x")
		b.publish()
		<-asked
		said.Store(time.Now().UnixNano())
		a.registry.Say(b.ID, shutOut)
		told()
		time.Sleep(time.Second)
		if d := time.Duration(ended.Load() - said.Load()); d < 0 || d > time.Second {
			t.Errorf("it went on for %v", d)
		}
	})
}

func TestSyncer_QuotaCountsAtOnceAndIsSaidOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.end()
		var log strings.Builder // written by one goroutine at a time
		var mu sync.Mutex
		w.log = slog.New(slog.NewTextHandler(locked{&mu, &log}, nil))
		a := w.add()
		a.register(names("a", 20)...)
		a.publish()
		b := w.add(a)
		told := b.hears()
		b.halt()
		b.start(a)
		w.until(time.Minute, "settled", w.settled)
		d := federationtest.In
		d.MaxAgents = 10
		b.registry.Say(a.ID, d)
		told()
		time.Sleep(3 * time.Second)
		if n := b.directory.size(); n != 0 {
			t.Errorf("%d agents are shown three seconds after the quota is less", n)
		}
		for i := range 3 {
			a.register(fmt.Sprint("more", i))
			a.publish()
			time.Sleep(10 * time.Second)
		}
		lines := func() int {
			mu.Lock()
			defer mu.Unlock()
			return strings.Count(log.String(), "more agents than its quota")
		}
		if n := lines(); n != 1 {
			t.Errorf("it was said %d times", n)
		}
		b.registry.Say(a.ID, federationtest.In)
		told()
		w.until(10*time.Second, "whole", func() bool { return b.holds(a) && b.directory.size() == 23 })
		b.registry.Say(a.ID, d)
		told()
		time.Sleep(3 * time.Second)
		if n := lines(); n != 2 {
			t.Errorf("it was said %d times of two", n)
		}
	})
}

// locked is a writer for many.
type locked struct {
	mu *sync.Mutex
	to *strings.Builder
}

func (l locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(b)
}
