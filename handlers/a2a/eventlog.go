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

// Bounds of what is kept of one task's events for those who come back: an
// earlier place is a gap.
const (
	maxLogEvents = 1000
	maxLogBytes  = 512 << 10
)

// errGap says that a place is no longer in the log.
var errGap = errors.New("the place is no longer kept")

// eventLog numbers the events of one task from 1, the same for all who read
// them under ExtEvents, and keeps the last. It lives in memory: numbers hold
// within one log, which has a name of its own. It has no goroutine: whoever
// waits for an event and finds nobody else at it reads the task for all.
type eventLog struct {
	name string
	task string
	f    follower
	turn chan struct{} // capacity 1: held by who reads f

	mu      sync.Mutex    // guards the rest
	changed chan struct{} // closed and replaced with every event
	kept    []a2a.Event   // the last ones; kept[i] has the number first+i
	sizes   []int
	size    int
	first   int64
	err     error // once nothing more comes
	state   a2a.Task
	// tail is text that the last part of the artifact tailOf goes on with: it
	// is put there when somebody asks, or each piece would copy all before it.
	tail   []byte
	tailOf string
}

// openLog begins a log with the task as it is. The task must not have ended.
func openLog(ctx context.Context, d *Door, actor ident.Actor, t task.Task) (*eventLog, error) {
	l := &eventLog{name: ident.NewID(), task: t.ID, f: follower{door: d, actor: actor, speakers: true, on: true}, turn: make(chan struct{}, 1),
		changed: make(chan struct{}), first: 1}
	if err := l.f.begin(ctx, t); err != nil {
		return nil, err
	}
	// Read after following has begun, so that nothing falls in between.
	t, err := d.cfg.Chat.Task(ctx, actor, t.ID)
	if err == nil {
		l.state, err = d.view(ctx, actor, t, detail{history: new(int), artifacts: true, speakers: true})
	}
	if err != nil {
		l.f.close()
		return nil, err
	}
	if t.State.Terminal() {
		l.err = io.EOF
		l.f.close()
	}
	return l, nil
}

// last is the number of the newest event, 0 for none.
func (l *eventLog) last() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first + int64(len(l.kept)) - 1
}

// now is the task as the events up to a number make it.
func (l *eventLog) now() (a2a.Task, int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.join()
	t := l.state
	t.Artifacts = make([]task.Artifact, len(l.state.Artifacts))
	for i, a := range l.state.Artifacts {
		a.Parts = append([]task.Part(nil), a.Parts...)
		t.Artifacts[i] = a
	}
	return t, l.first + int64(len(l.kept)) - 1
}

// next returns the event after a number, waiting for it until ctx ends. It
// returns io.EOF behind the last event of a task that has ended, and errGap
// where the event is kept no more.
func (l *eventLog) next(ctx context.Context, after int64) (a2a.Event, error) {
	for {
		l.mu.Lock()
		e, err, there := l.at(after + 1)
		changed := l.changed
		l.mu.Unlock()
		if there || err != nil {
			return e, err
		}
		select {
		case l.turn <- struct{}{}:
			l.read(ctx, after)
			<-l.turn
		case <-changed:
		case <-ctx.Done():
		}
		if err := ctx.Err(); err != nil && l.last() <= after {
			return a2a.Event{}, err
		}
	}
}

// at is the event of a number, as far as it is there; the caller holds l.mu.
func (l *eventLog) at(n int64) (a2a.Event, error, bool) {
	switch i := n - l.first; {
	case i < 0:
		return a2a.Event{}, errGap, false
	case i < int64(len(l.kept)):
		return l.kept[i], nil, true
	}
	return a2a.Event{}, l.err, false
}

// read takes what happens next to the task, for all; the caller has the turn.
func (l *eventLog) read(ctx context.Context, after int64) {
	l.mu.Lock()
	_, err, there := l.at(after + 1)
	l.mu.Unlock()
	if there || err != nil {
		return // somebody else did
	}
	events, err := l.f.next(ctx)
	if err != nil && ctx.Err() != nil {
		return // it is the reader who gives up
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range events {
		l.add(e)
	}
	if l.f.g.ended && l.f.g.task.State.Terminal() && err == nil {
		err = io.EOF
	}
	if l.err = err; err != nil {
		l.f.close()
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// add numbers an event and keeps it; the caller holds l.mu.
func (l *eventLog) add(e a2a.Event) {
	e.Metadata = l.mark(l.first+int64(len(l.kept)), nil)
	size := 0
	switch {
	case e.Status != nil:
		l.state.Status = e.Status.Status
		size = 300
	case e.Artifact != nil:
		l.grow(e.Artifact)
		size = 300 + weight(a2a.Task{Artifacts: []task.Artifact{e.Artifact.Artifact}})
	}
	l.kept, l.sizes, l.size = append(l.kept, e), append(l.sizes, size), l.size+size
	for len(l.kept) > 1 && (len(l.kept) > maxLogEvents || l.size > maxLogBytes) {
		l.size -= l.sizes[0]
		l.kept[0] = a2a.Event{}
		l.kept, l.sizes, l.first = l.kept[1:], l.sizes[1:], l.first+1
	}
}

// join puts the tail where it belongs; the caller holds l.mu.
func (l *eventLog) join() {
	for i := range l.state.Artifacts {
		if have := &l.state.Artifacts[i]; l.tailOf != "" && have.ID == l.tailOf {
			have.Parts = slices.Clone(have.Parts) // what is kept may have the same
			have.Parts[len(have.Parts)-1].Text += string(l.tail)
			break
		}
	}
	l.tail, l.tailOf = nil, ""
}

// weight is about how many bytes it holds.
func (l *eventLog) weight() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size + weight(l.state) + len(l.tail)
}

// broke reports whether it ended before its task did.
func (l *eventLog) broke() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err != nil && !errors.Is(l.err, io.EOF)
}

// grow brings the state up to an update of an artifact.
func (l *eventLog) grow(u *a2a.ArtifactUpdate) {
	if u.Append && len(u.Artifact.Parts) == 1 && u.Artifact.Parts[0].Text != "" && l.tailOf == u.Artifact.ID {
		l.tail = append(l.tail, u.Artifact.Parts[0].Text...)
		return
	}
	l.join()
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
				l.join() // of an earlier part of the same update
				l.tail, l.tailOf = []byte(p.Text), have.ID
			} else if !(p.Text == "" && p.URL == "" && p.Raw == nil && p.Data == nil) {
				l.join()
				have.Parts = append(have.Parts, p)
			}
		}
		return
	}
	l.state.Artifacts = append(l.state.Artifacts, u.Artifact)
}

// mark is the metadata of the event with a number; more goes along.
func (l *eventLog) mark(n int64, more map[string]any) map[string]any {
	m := map[string]any{"seq": n, "log": l.name}
	for k, v := range more {
		m[k] = v
	}
	return map[string]any{a2a.ExtEvents: m}
}

// place is how a number is written for Last-Event-ID.
func (l *eventLog) place(n int64) string { return l.name + "-" + strconv.FormatInt(n, 10) }

// resumes reads the place that a reader has come to; ok is false where the log
// does not go on from there.
func (l *eventLog) resumes(place string) (after int64, ok bool) {
	name, number, _ := strings.Cut(place, "-")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || name != l.name || n < 0 {
		return 0, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return n, n >= l.first-1 && n < l.first+int64(len(l.kept))
}

// broken is the error of a log that ended otherwise than its task, nil else.
func broken(err error) error {
	if f := fault.As(err); errors.Is(err, io.EOF) || f.Kind == fault.Internal {
		return nil
	}
	return err
}
