package link

import (
	"context"
	"sync"
	"time"

	"agentsite/internal/hub"
)

// watch tells of agents that have come or gone. It only keeps which agents
// changed: what is told is how they stand when their turn comes, so that the
// last word is true. Several are told at once, one agent never twice at once.
type watch struct {
	observe func(context.Context, string, hub.Liveness)
	now     func(string) hub.Liveness
	ctx     context.Context
	stop    context.CancelFunc
	done    chan struct{}
	wake    chan struct{}

	mu     sync.Mutex // guards the rest
	dirty  map[string]bool
	timers map[string]*time.Timer
	closed bool
}

// atOnce is how many agents are told of at the same time: they share commits.
const atOnce = 16

func newWatch(observe func(context.Context, string, hub.Liveness), now func(string) hub.Liveness) *watch {
	w := &watch{observe: observe, now: now, done: make(chan struct{}), wake: make(chan struct{}, 1),
		dirty: make(map[string]bool), timers: make(map[string]*time.Timer)}
	w.ctx, w.stop = context.WithCancel(context.Background())
	go w.run()
	return w
}

func (w *watch) close() {
	w.mu.Lock()
	w.closed = true
	for _, t := range w.timers {
		t.Stop()
	}
	w.mu.Unlock()
	w.stop()
	<-w.done
}

// soon has the agent told of now, and not again later.
func (w *watch) soon(id string) {
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

// later has the agent told of after a while.
func (w *watch) later(id string, wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	if t := w.timers[id]; t != nil {
		t.Stop()
	}
	w.timers[id] = time.AfterFunc(wait, func() { w.soon(id) })
}

func (w *watch) run() {
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
				if w.ctx.Err() == nil {
					w.observe(w.ctx, id, w.now(id))
				}
			})
		}
		wg.Wait()
	}
}
