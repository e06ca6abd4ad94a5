package clock

import (
	"sync"
	"time"
)

// minSetBack is the smallest step back that Watch reports. A time service that only slows the clock down
// stays far below it.
const minSetBack = time.Second

// SetBack is a step back of the wall clock; the zero value is none.
type SetBack struct {
	By time.Duration
	At time.Time // as the clock says afterwards
}

// Watch notices when the wall clock is set back: it compares it with the time that passes. Create it with
// NewWatch; it is safe for concurrent use.
type Watch struct {
	wall Clock

	mu       sync.Mutex // guards the fields below
	read     time.Time  // of the last check, with Go's monotonic reading
	readWall time.Time
	last     SetBack
}

// NewWatch returns a Watch that begins now.
func NewWatch(wall Clock) *Watch { return &Watch{wall: wall, read: time.Now(), readWall: wall()} }

// Check returns the step by which the clock was set back since the last call, or the zero value.
func (w *Watch) Check() SetBack {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, wall := time.Now(), w.wall()
	by := now.Sub(w.read) - wall.Sub(w.readWall)
	w.read, w.readWall = now, wall
	if by < minSetBack {
		return SetBack{}
	}
	w.last = SetBack{By: by.Round(time.Millisecond), At: wall}
	return w.last
}

// Last returns the newest step that Check has returned, or the zero value.
func (w *Watch) Last() SetBack {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}
