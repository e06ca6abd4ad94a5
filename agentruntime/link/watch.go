package link

import (
	"context"
	"sync"
	"time"
)

// watch reports agents that have connected or disconnected. It stores only the changed agents and reads
// their state when it reports them, so that the last report is correct. It reports several agents
// concurrently, but never one agent twice at a time.
type watch struct {
	driver *Driver
	ctx    context.Context
	stop   context.CancelFunc
	done   chan struct{}
	wake   chan struct{}

	mu     sync.Mutex // guards the rest
	dirty  map[string]bool
	timers map[string]*time.Timer
	closed bool
}

// atOnce is the number of concurrent reports. Several are quicker than one, because their writes share
// commits.
const atOnce = 16

func newWatch(d *Driver) *watch {
	w := &watch{driver: d, done: make(chan struct{}), wake: make(chan struct{}, 1),
		dirty: make(map[string]bool), timers: make(map[string]*time.Timer)}
	w.ctx, w.stop = context.WithCancel(context.Background())
	go w.runReports()
	return w
}

func (w *watch) closeWatch() {
	w.mu.Lock()
	w.closed = true
	for _, t := range w.timers {
		t.Stop()
	}
	w.mu.Unlock()
	w.stop()
	<-w.done
}

// reportSoon queues a report of the agent, and cancels a pending later one. It does nothing after
// closeWatch.
func (w *watch) reportSoon(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	if t := w.timers[id]; t != nil {
		t.Stop()
		delete(w.timers, id)
	}
	w.dirty[id] = true
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// reportLater queues a report of the agent after wait, in place of a pending later one.
func (w *watch) reportLater(id string, wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	if t := w.timers[id]; t != nil {
		t.Stop()
	}
	w.timers[id] = time.AfterFunc(wait, func() { w.reportSoon(id) })
}

func (w *watch) runReports() {
	defer close(w.done)
	for {
		select {
		case <-w.wake:
		case <-w.ctx.Done():
			return
		}
		w.mu.Lock()
		batch := w.dirty
		w.dirty = make(map[string]bool)
		w.mu.Unlock()
		var wg sync.WaitGroup
		places := make(chan struct{}, atOnce)
		for id := range batch {
			places <- struct{}{}
			wg.Go(func() {
				defer func() { <-places }()
				if o := w.driver.cfg.Observer; o != nil && w.ctx.Err() == nil {
					o.Observe(w.ctx, id, w.driver.Liveness(id))
				}
			})
		}
		wg.Wait()
	}
}
