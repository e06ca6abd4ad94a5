package a2a

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"agentsite/internal/a2a"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// Bounds of the events that are kept of one task for readers that reconnect. A reader that missed more
// gets a note of the gap.
const (
	maxLogEvents = 1000
	maxLogBytes  = 512 << 10
)

// errGap means that the requested event is no longer in the log.
var errGap = errors.New("the place is no longer kept")

// eventLog numbers the events of one task from 1, the same for all readers under ExtEvents, and
// keeps the last ones. It lives in memory: numbers are valid within one log, which has a name of
// its own. It has no goroutine: the first reader that waits for an event reads from the task for
// all.
type eventLog struct {
	name string
	task string
	f    follower
	turn chan struct{} // capacity 1; the goroutine that reads from f holds its slot

	mu      sync.Mutex    // guards the fields below
	changed chan struct{} // closed and replaced at each new event
	kept    []a2a.Event   // the newest events; kept[i] has the number first+i
	sizes   []int
	size    int
	first   int64
	err     error // set once no more events come: io.EOF after the end of the task
	state   a2a.Task
	// tail is text that is still to be appended to the last part of the artifact with the id tailOf. It
	// is appended when a reader needs the state, because appending each piece would copy all text before
	// it.
	tail   []byte
	tailOf string
}

// openLog starts a log with the present state of a task that has not ended.
func openLog(ctx context.Context, d *Handler, actor ident.Actor, t task.Task) (*eventLog, error) {
	l := &eventLog{name: ident.NewID(), task: t.ID, f: follower{handler: d, actor: actor, speakers: true, on: true},
		turn:    make(chan struct{}, 1),
		changed: make(chan struct{}), first: 1}
	if err := l.f.followTask(ctx, t); err != nil {
		return nil, err
	}
	// The task is read after the follower has started, so that no event is lost in between.
	t, err := d.cfg.Chat.Task(ctx, actor, t.ID)
	if err == nil {
		l.state, err = d.viewTask(ctx, actor, t, detail{history: new(int), artifacts: true, speakers: true})
	}
	if err != nil {
		l.f.closeStream()
		return nil, err
	}
	if t.State.Terminal() {
		l.err = io.EOF
		l.f.closeStream()
	}
	return l, nil
}

// lastNumber returns the number of the newest event, 0 for none.
func (l *eventLog) lastNumber() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first + int64(len(l.kept)) - 1
}

// currentTask returns the state of the task after the newest event, and the number of that event.
func (l *eventLog) currentTask() (a2a.Task, int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.joinTail()
	t := l.state
	t.Artifacts = make([]task.Artifact, len(l.state.Artifacts))
	for i, a := range l.state.Artifacts {
		a.Parts = append([]task.Part(nil), a.Parts...)
		t.Artifacts[i] = a
	}
	return t, l.first + int64(len(l.kept)) - 1
}

// nextEvent returns the event after a number, and waits for it until ctx ends. It returns io.EOF
// after the last event of a task that has ended, and errGap if the event is no longer kept.
func (l *eventLog) nextEvent(ctx context.Context, after int64) (a2a.Event, error) {
	for {
		l.mu.Lock()
		e, err, there := l.eventAt(after + 1)
		changed := l.changed
		l.mu.Unlock()
		if there || err != nil {
			return e, err
		}
		select {
		case l.turn <- struct{}{}:
			l.readEvents(ctx, after)
			<-l.turn
		case <-changed:
		case <-ctx.Done():
		}
		if err := ctx.Err(); err != nil && l.lastNumber() <= after {
			return a2a.Event{}, err
		}
	}
}

// eventAt returns the event with number n and true. Without it, the error is errGap if the event was
// dropped, l.err if no more events come, and nil if the event is yet to come. The caller holds l.mu.
func (l *eventLog) eventAt(n int64) (a2a.Event, error, bool) {
	switch i := n - l.first; {
	case i < 0:
		return a2a.Event{}, errGap, false
	case i < int64(len(l.kept)):
		return l.kept[i], nil, true
	}
	return a2a.Event{}, l.err, false
}

// readEvents reads the next events of the task into the log, for all readers. It does nothing if the
// event after the number is there already. The caller holds the slot of l.turn.
func (l *eventLog) readEvents(ctx context.Context, after int64) {
	l.mu.Lock()
	_, err, there := l.eventAt(after + 1)
	l.mu.Unlock()
	if there || err != nil {
		return // another reader has read the event meanwhile
	}
	events, err := l.f.nextEvents(ctx)
	if err != nil && ctx.Err() != nil {
		return // only this reader's context ended; the task goes on
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range events {
		l.addEvent(e)
	}
	if l.f.g.ended && l.f.g.task.State.Terminal() && err == nil {
		err = io.EOF
	}
	if l.err = err; err != nil {
		l.f.closeStream()
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// addEvent gives an event the next number, applies it to the state and keeps it; the oldest events are
// dropped above the bounds. The caller holds l.mu.
func (l *eventLog) addEvent(e a2a.Event) {
	e.Metadata = l.eventMetadata(l.first+int64(len(l.kept)), nil)
	size := 0
	switch {
	case e.Status != nil:
		l.state.Status = e.Status.Status
		size = 300
	case e.Artifact != nil:
		l.applyUpdate(e.Artifact)
		size = 300 + taskSize(a2a.Task{Artifacts: []task.Artifact{e.Artifact.Artifact}})
	}
	l.kept, l.sizes, l.size = append(l.kept, e), append(l.sizes, size), l.size+size
	for len(l.kept) > 1 && (len(l.kept) > maxLogEvents || l.size > maxLogBytes) {
		l.size -= l.sizes[0]
		l.kept[0] = a2a.Event{}
		l.kept, l.sizes, l.first = l.kept[1:], l.sizes[1:], l.first+1
	}
}

// joinTail appends the collected text in l.tail to its artifact in the state. The caller holds l.mu.
func (l *eventLog) joinTail() {
	for i := range l.state.Artifacts {
		if have := &l.state.Artifacts[i]; l.tailOf != "" && have.ID == l.tailOf {
			have.Parts = slices.Clone(have.Parts) // events in l.kept may share this slice
			have.Parts[len(have.Parts)-1].Text += string(l.tail)
			break
		}
	}
	l.tail, l.tailOf = nil, ""
}

// logSize returns the approximate memory of the log in bytes, for the limit of all logs.
func (l *eventLog) logSize() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size + taskSize(l.state) + len(l.tail)
}

// hasFailed reports whether the log ended with an error before its task ended; such a log is replaced.
func (l *eventLog) hasFailed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err != nil && !errors.Is(l.err, io.EOF)
}

// applyUpdate applies an artifact update to the state that new readers get. The caller holds l.mu.
func (l *eventLog) applyUpdate(u *a2a.ArtifactUpdate) {
	if u.Append && len(u.Artifact.Parts) == 1 && u.Artifact.Parts[0].Text != "" && l.tailOf == u.Artifact.ID {
		l.tail = append(l.tail, u.Artifact.Parts[0].Text...)
		return
	}
	l.joinTail()
	for i := range l.state.Artifacts {
		have := &l.state.Artifacts[i]
		switch {
		case have.ID != u.Artifact.ID:
			continue
		case !u.Append:
			*have = u.Artifact
			return
		}
		for _, p := range u.Artifact.Parts {
			if n := len(have.Parts); n > 0 && p.Text != "" && have.Parts[n-1].Text != "" {
				l.joinTail() // an earlier part of this update may have left text in l.tail
				l.tail, l.tailOf = []byte(p.Text), have.ID
			} else if !(p.Text == "" && p.URL == "" && p.Raw == nil && p.Data == nil) {
				l.joinTail()
				have.Parts = append(have.Parts, p)
			}
		}
		return
	}
	l.state.Artifacts = append(l.state.Artifacts, u.Artifact)
}

// eventMetadata returns the metadata of event n under ExtEvents: its number, the log's name, and the
// entries of more.
func (l *eventLog) eventMetadata(n int64, more map[string]any) map[string]any {
	m := map[string]any{"seq": n, "log": l.name}
	for k, v := range more {
		m[k] = v
	}
	return map[string]any{a2a.ExtEvents: m}
}

// placeOf returns the Last-Event-ID of event n: the log's name, a hyphen and the number.
func (l *eventLog) placeOf(n int64) string { return l.name + "-" + strconv.FormatInt(n, 10) }

// parsePlace returns the number in a Last-Event-ID. ok is false if the id belongs to another log or the
// log no longer has the next event.
func (l *eventLog) parsePlace(place string) (after int64, ok bool) {
	name, number, _ := strings.Cut(place, "-")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || name != l.name || n < 0 {
		return 0, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return n, n >= l.first-1 && n < l.first+int64(len(l.kept))
}

// logError returns err if the log ended before its task, and nil for io.EOF.
func logError(err error) error {
	if f := fault.As(err); errors.Is(err, io.EOF) || f.Kind == fault.Internal {
		return nil
	}
	return err
}
