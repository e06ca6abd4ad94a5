package remote

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"time"

	"agentsite/internal/a2a"
	"agentsite/internal/task"
)

const (
	// namingTime is how long the request of a canceled task stays open for the name that the agent gives the task.
	namingTime = 5 * time.Second
	// maxNaming bounds the requests of one driver that wait for a name. Others are closed at once.
	maxNaming = 100
)

// inbox reads the events that the agent sends to one message. Its request does not end with the context of the run,
// because an agent can only be asked to cancel a task that it has named. One goroutine at a time uses it.
type inbox struct {
	next func() (a2a.Event, error, bool)
	end  func()             // frees next; not while next runs
	stop context.CancelFunc // closes the request, at any time

	last received      // result of the last read
	done chan struct{} // closed when the read of startRead has set last
}

// received is the result of a read: an event, an error, or the end of the events if ok is false.
type received struct {
	ev       a2a.Event
	err      error
	ok       bool
	panicked string // why reading panicked, with the stack
}

// openInbox sends the message. The caller closes the inbox.
func (r *run) openInbox(ctx context.Context, m a2a.Message) *inbox {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	events := func(yield func(a2a.Event, error) bool) { yield(r.client.Send(ctx, m, false)) }
	if r.stream {
		events = r.client.Stream(ctx, m)
	}
	b := &inbox{stop: stop}
	b.next, b.end = iter.Pull2(events)
	return b
}

func (b *inbox) close() {
	b.stop()
	b.end()
}

// read sets last. The end of ctx closes the request.
func (b *inbox) read(ctx context.Context) {
	defer context.AfterFunc(ctx, b.stop)()
	b.last = received{}
	b.last.ev, b.last.err, b.last.ok = b.next()
}

// startRead reads in the background and closes done.
func (b *inbox) startRead() {
	b.done = make(chan struct{})
	go func() {
		defer close(b.done)
		defer func() {
			// The parser of the remote agent's answers may panic, and no worker recovers in this goroutine.
			if p := recover(); p != nil {
				b.last = received{panicked: fmt.Sprintf("%v\n%s", p, debug.Stack())}
			}
		}()
		b.read(context.Background())
	}()
}

// named reports whether the agent has named the task, or answers without one.
func (r *run) named() bool { return r.at.Task != "" || r.adopted }

// cancelUnnamed cancels, in the background, a task that the agent has not named: it waits for the name up to namingTime
// and until Close. startRead of the inbox was called, and cancelUnnamed closes the inbox. When the portal stops, or
// maxNaming requests wait already, it closes the request at once, and the agent may complete the task.
func (d *A2A) cancelUnnamed(ctx context.Context, c *a2a.Client, b *inbox) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if errors.Is(context.Cause(ctx), task.ErrShutdown) || d.closing.Err() != nil || d.naming >= maxNaming {
		b.stop()
		go func() {
			<-b.done
			b.close()
		}()
		return
	}
	d.naming++
	d.wg.Go(func() {
		id := d.awaitName(b)
		d.mu.Lock()
		d.naming--
		d.mu.Unlock()
		d.stopRemote(ctx, c, id)
	})
}

// awaitName returns the id that the agent gives its task, "" if it gives none, and closes the inbox.
func (d *A2A) awaitName(b *inbox) string {
	defer context.AfterFunc(d.closing, b.stop)()
	late := time.AfterFunc(namingTime, b.stop)
	defer late.Stop()
	for ; ; b.startRead() {
		<-b.done
		if b.last.panicked != "" {
			d.cfg.Log.Error("read the name of a canceled task", "error", b.last.panicked)
		}
		id, _ := b.last.ev.IDs()
		if id != "" || !b.last.ok || b.last.err != nil || b.last.ev.Message != nil {
			b.close()
			return id
		}
	}
}
