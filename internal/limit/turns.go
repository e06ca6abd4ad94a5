package limit

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Turns lets each key do one thing at a time, so that what one account asks for at once takes the processor
// in turn, and not that of others. The zero value is ready to use. It is safe for concurrent use.
type Turns struct {
	mu   sync.Mutex               // guards busy
	busy map[string]chan struct{} // closed when the turn ends
}

// ErrTurnTaken is the error of Turns.Begin when another turn of the key runs for too long.
var ErrTurnTaken = errors.New("another turn of the same key runs")

// Begin waits until no turn of the key runs, for at most the time wait; then it returns ErrTurnTaken. The
// caller must call end.
func (g *Turns) Begin(ctx context.Context, key string, wait time.Duration) (end func(), err error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		g.mu.Lock()
		running, ok := g.busy[key]
		if !ok {
			if g.busy == nil {
				g.busy = make(map[string]chan struct{})
			}
			done := make(chan struct{})
			g.busy[key] = done
			g.mu.Unlock()
			return func() {
				g.mu.Lock()
				delete(g.busy, key)
				g.mu.Unlock()
				close(done)
			}, nil
		}
		g.mu.Unlock()
		select {
		case <-running:
		case <-timer.C:
			return nil, ErrTurnTaken
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
