package replication

import (
	"context"
	"errors"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/record"
)

// requestPullLocked starts a pull of a portal's log; the caller holds mu.
func (s *Syncer) requestPullLocked(portal record.PortalID, f *followed) {
	select {
	case f.wake <- struct{}{}:
	default:
	}
	if !f.pulling && s.run != nil && s.run.Err() == nil {
		f.pulling = true
		s.startLocked(func(ctx context.Context) { s.keepUp(ctx, portal, f) })
	}
}

// keepUp pulls a portal's log until it is complete.
func (s *Syncer) keepUp(ctx context.Context, portal record.PortalID, f *followed) {
	for {
		s.mu.Lock()
		if f.overQuota || !f.recheck && f.got == f.head.Version &&
			(len(f.missing) == 0 || clock.Now().Before(f.repairAt)) {
			f.pulling = false
			s.mu.Unlock()
			return
		}
		wait := f.last.Add(pullGap).Sub(clock.Now())
		s.mu.Unlock()
		if wait > 0 && !clock.Sleep(ctx, wait) {
			break
		}
		select {
		case <-f.wake:
		default:
		}
		s.mu.Lock()
		f.last = clock.Now()
		s.mu.Unlock()
		err := s.pullNow(ctx, portal, f)
		if err == nil || errors.Is(err, errCalledOff) {
			continue
		}
		if ctx.Err() != nil || errors.Is(err, errForked) || errors.Is(err, errUnwanted) {
			break
		}
		s.mu.Lock()
		f.fails++
		fails := f.fails
		s.mu.Unlock()
		s.reportLog(ctx, portal)
		s.Log.Debug("log not whole", "portal", portal, "error", err)
		t := time.NewTimer(s.backoffFor(fails))
		select {
		case <-t.C:
		case <-f.wake:
		case <-ctx.Done():
		}
		t.Stop()
		if ctx.Err() != nil {
			break
		}
	}
	s.mu.Lock()
	f.pulling = false
	s.mu.Unlock()
	s.dropDenied(ctx, portal) // records may have arrived while the portal was shut out
}

// pullNow runs pullLog and ends at once when the pull is called off.
func (s *Syncer) pullNow(ctx context.Context, portal record.PortalID, f *followed) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	f.cancel, f.recheck = cancel, false
	s.mu.Unlock()
	err := s.pullLog(inner, portal, f)
	s.mu.Lock()
	f.cancel = nil
	s.mu.Unlock()
	if err != nil && inner.Err() != nil && ctx.Err() == nil {
		return errCalledOff
	}
	return err
}
