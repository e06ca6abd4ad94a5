package replication

import (
	"context"
	"errors"
	"time"

	"agentsite/internal/clock"
)

// puller pulls the log of one portal. It exists while that portal is in the state pulling.
type puller struct {
	*portal
	s *Syncer
}

// keepUp pulls the portal's log until it is complete, or until an outcome says that another pull would not
// help. It runs in a goroutine of its own, one for each portal.
func (p *puller) keepUp(ctx context.Context) {
	for again := true; again; {
		if !p.waitGap(ctx) {
			p.s.applyEvent(ctx, p.portal, pullStopped)
			return
		}
		again = p.finishPull(ctx, p.pullNow(ctx))
	}
	p.s.dropDenied(ctx, p.id) // a record may have been stored after the portal was denied
}

// waitGap waits until at least pullGap has passed since the start of the last pull. It returns false when
// ctx ends.
func (p *puller) waitGap(ctx context.Context) bool {
	p.s.mu.Lock()
	wait := p.pull.last.Add(pullGap).Sub(clock.Now())
	p.s.mu.Unlock()
	if wait > 0 && !clock.Sleep(ctx, wait) {
		return false
	}
	select {
	case <-p.pull.wake: // drop an older wake-up: the pull that starts now covers its reason
	default:
	}
	return ctx.Err() == nil
}

// pullNow runs pullLog once. A cancelPull action cancels it; the outcome is then pullAgain, or pullStopped
// when ctx ended or the portal is not wanted any more.
func (p *puller) pullNow(ctx context.Context) outcome {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	p.s.mu.Lock()
	p.pull.cancel, p.pull.again, p.pull.last = cancel, false, clock.Now()
	p.s.mu.Unlock()
	o := p.pullLog(inner)
	p.s.mu.Lock()
	p.pull.cancel = nil
	p.s.mu.Unlock()
	switch {
	case o.event != pullFailed:
	case ctx.Err() != nil, errors.Is(o.err, errForked), errors.Is(o.err, errUnwanted):
		o.event = pullStopped
	case inner.Err() != nil:
		o.event = pullAgain
	}
	return o
}

// finishPull applies the outcome of a pull to the state of the portal. After a failure it waits until the
// next attempt is due. again is true if another pull has to follow.
func (p *puller) finishPull(ctx context.Context, o outcome) (again bool) {
	p.s.mu.Lock()
	switch o.event {
	case logWhole, logPartial:
		if p.got != p.head.Version || p.pull.again {
			o.event = pullAgain
		}
	case quotaExceeded:
		if p.head.Version != o.at || p.pull.again {
			o.event = pullAgain
		}
	case pullFailed:
		p.pull.fails++
	}
	do := p.s.applyLocked(p.portal, o.event)
	again = p.state == pulling
	fails := p.pull.fails
	p.s.mu.Unlock()
	p.s.performActions(ctx, p.portal, do)
	if o.event != pullFailed || !again {
		return again
	}
	p.s.Log.Debug("log not whole", "portal", p.id, "error", o.err)
	t := time.NewTimer(p.s.dice.backoffAfter(fails))
	defer t.Stop()
	select {
	case <-t.C:
	case <-p.pull.wake:
	case <-ctx.Done():
	}
	return true
}
