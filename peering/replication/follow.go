package replication

import (
	"context"
	"errors"
	"time"

	"agentsite/internal/clock"
)

// keepUp pulls a portal's log until it is complete or a pull is of no use. It runs while the state is
// pulling.
func (s *Syncer) keepUp(ctx context.Context, p *portal) {
	for again := true; again; {
		if !s.waitGap(ctx, p) {
			s.apply(ctx, p, pullStopped)
			return
		}
		again = s.finishPull(ctx, p, s.pullNow(ctx, p))
	}
	s.dropDenied(ctx, p.id) // records may have arrived while the portal was shut out
}

// waitGap waits until pullGap since the last pull is over. It returns false when ctx ends.
func (s *Syncer) waitGap(ctx context.Context, p *portal) bool {
	s.mu.Lock()
	wait := p.pull.last.Add(pullGap).Sub(clock.Now())
	s.mu.Unlock()
	if wait > 0 && !clock.Sleep(ctx, wait) {
		return false
	}
	select {
	case <-p.pull.wake: // this pull sees what it stands for
	default:
	}
	return ctx.Err() == nil
}

// pullNow runs pullLog. It ends at once when the pull is called off.
func (s *Syncer) pullNow(ctx context.Context, p *portal) outcome {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	p.pull.cancel, p.pull.again, p.pull.last = cancel, false, clock.Now()
	s.mu.Unlock()
	o := s.pullLog(inner, p)
	s.mu.Lock()
	p.pull.cancel = nil
	s.mu.Unlock()
	switch {
	case o.event != pullFailed:
	case ctx.Err() != nil, errors.Is(o.err, errForked), errors.Is(o.err, errUnwanted):
		o.event = pullStopped
	case inner.Err() != nil:
		o.event = pullAgain
	}
	return o
}

// finishPull applies the outcome of a pull, waits after a failure, and reports whether another pull has to
// follow.
func (s *Syncer) finishPull(ctx context.Context, p *portal, o outcome) (again bool) {
	s.mu.Lock()
	switch o.event {
	case logWhole, logPartial, quotaExceeded:
		if p.head.Version != o.at || p.pull.again {
			o.event = pullAgain
		}
	case pullFailed:
		p.pull.fails++
	}
	do := s.applyLocked(p, o.event)
	again = p.state == pulling
	fails := p.pull.fails
	s.mu.Unlock()
	s.perform(ctx, p, do)
	if o.event != pullFailed || !again {
		return again
	}
	s.Log.Debug("log not whole", "portal", p.id, "error", o.err)
	t := time.NewTimer(s.backoffFor(fails))
	defer t.Stop()
	select {
	case <-t.C:
	case <-p.pull.wake:
	case <-ctx.Done():
	}
	return true
}
