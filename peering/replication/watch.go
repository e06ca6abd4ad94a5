package replication

import (
	"context"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/record"
)

// What holds for portals may change at any moment: an operator decides, somebody
// is proved to lie. It is looked at watchPause after such news, and no more than
// a twentieth of the time.
const (
	watchPause = 100 * time.Millisecond
	watchShare = 20
)

// quota is what may be held of a portal.
type quota struct {
	agents int
	bytes  int64
}

func quotaOf(d federation.Decision) quota { return quota{d.MaxAgents, d.MaxBytes} }

// runWatch has what is decided of portals done at once: pulls end, what is held
// goes, and comes again when that was a mistake. Without news upkeep does it.
func (s *Syncer) runWatch(ctx context.Context) {
	if s.News == nil {
		return
	}
	for {
		news := s.News() // before it is looked at
		began := time.Now()
		s.obey(ctx)
		took := time.Since(began)
		select {
		case <-news:
		case <-ctx.Done():
			return
		}
		if !clock.Sleep(ctx, max(watchPause, watchShare*took)) {
			return
		}
	}
}

// obey looks at what is decided of all portals that are followed.
func (s *Syncer) obey(ctx context.Context) {
	s.mu.Lock()
	list := make(map[record.PortalID]*followed, len(s.portals))
	for id, f := range s.portals {
		list[id] = f
	}
	s.mu.Unlock()
	for id, f := range list {
		switch d := s.Registry.Decide(ctx, id, ""); {
		case ctx.Err() != nil:
			return
		case dropped(d):
			s.drop(ctx, id)
		case !d.Take:
			s.callOff(id)
		default:
			s.allow(id, f, quotaOf(d))
		}
	}
}

// dropped reports whether nothing of a portal is to be held.
func dropped(d federation.Decision) bool { return d.State == federation.Denied && !d.Keep }

// callOff ends the pull of a portal's log that is under way.
func (s *Syncer) callOff(portal record.PortalID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.portals[portal]; f != nil && f.cancel != nil {
		f.cancel()
	}
}

// allow has the log of a portal pulled that is let in, if it lacks anything or
// its quota is another.
func (s *Syncer) allow(portal record.PortalID, f *followed, q quota) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.quota != (quota{}) && f.quota != q {
		f.recheck, f.truncated = true, false
	}
	if f.head.Count > int64(q.agents) && f.got != (record.Version{}) { // it was more before the start
		f.recheck = true
	}
	f.quota = q
	if f.head.Version != (record.Version{}) && !f.pulling && (f.recheck || f.got != f.head.Version && !f.truncated) {
		s.wantLocked(portal, f)
	}
}

// dropDenied drops what is held of a portal if it is shut out.
func (s *Syncer) dropDenied(ctx context.Context, portal record.PortalID) {
	if ctx.Err() == nil && dropped(s.Registry.Decide(ctx, portal, "")) {
		s.drop(ctx, portal)
	}
}
