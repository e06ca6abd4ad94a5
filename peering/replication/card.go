package replication

import (
	"context"
	"slices"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/record"
)

const (
	// meetEvery is how often it is looked whom others have met: who is new or
	// back is asked for heads.
	meetEvery = 2 * time.Second
	// meetMost is how many of those are asked in roundEvery. Each brings its own
	// head with its hello; others' heads a few know as well as all.
	meetMost = 8
	// maxHeard bounds the portals that were told of and are not met yet of
	// which it is remembered who told, maxHeardFrom those that one told of. The
	// registry bounds whom it looks up.
	maxHeard     = 1024
	maxHeardFrom = 100
	// heardLife is for how long a portal is waited for.
	heardLife = 10 * time.Minute
)

// heard is who told of a portal that is not known, and of which head.
type heard struct {
	from record.PortalID
	head []byte
	at   time.Time
}

// hearLocked remembers who told of a portal. There is always room for another:
// who told of most makes it, and of theirs goes what came first. The caller
// holds mu.
func (s *Syncer) hearLocked(portal, from record.PortalID, head []byte) {
	now := clock.Now()
	delete(s.heard, portal)
	of := make(map[record.PortalID]int)
	for id, h := range s.heard {
		if now.Sub(h.at).Abs() > heardLife {
			delete(s.heard, id)
			continue
		}
		of[h.from]++
	}
	if enough := of[from] >= maxHeardFrom; enough || len(s.heard) >= maxHeard {
		most, first := from, record.PortalID("")
		for id, n := range of {
			if !enough && n > of[most] {
				most = id
			}
		}
		for id, h := range s.heard {
			if h.from == most && (first == "" || h.at.Before(s.heard[first].at)) {
				first = id
			}
		}
		delete(s.heard, first)
	}
	s.heard[portal] = heard{from, slices.Clone(head), now}
}

// heardOf deals with a portal that nothing is known of. Its card signs for
// itself, but anybody can make any number of them: before anything of it is
// kept, its origin has to answer with that very card. That is the registry's to
// find out, at its own pace.
func (s *Syncer) heardOf(ctx context.Context, from, portal record.PortalID, t federation.Told) error {
	claim, err := record.Open(s.Self.Network(), t.Card)
	if err != nil {
		return err
	}
	card, ok := claim.Body.(*record.Card)
	if !ok || card.Portal != portal {
		return &record.Refused{Reason: record.NotConsistent, Text: "the card is another's"}
	}
	if d := s.Registry.Decide(ctx, portal, card.Origin); !d.In && d.State != federation.Pending {
		return nil
	}
	s.Registry.Heard(card.Origin, from)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hearLocked(portal, from, t.Head)
	return nil
}

// runMeet compares heads with portals that are met for the first time.
func (s *Syncer) runMeet(ctx context.Context) {
	for {
		var news <-chan struct{}
		if s.News != nil {
			news = s.News()
		}
		for _, p := range s.Registry.Portals(ctx) {
			if p.ID != "" && p.ID != s.own && p.State == federation.Active {
				s.meet(ctx, p.ID)
			}
		}
		t := time.NewTimer(meetEvery)
		select {
		case <-t.C:
		case <-news:
			if !clock.Sleep(ctx, meetEvery/8) { // much may happen at once
				return
			}
		case <-ctx.Done():
		}
		t.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// meet has heads compared with a portal that is there, unless they were.
func (s *Syncer) meet(ctx context.Context, portal record.PortalID) {
	s.mu.Lock()
	p := s.peer(portal)
	known := p.met
	p.met = true
	h, told := s.heard[portal]
	delete(s.heard, portal)
	if !known && s.mayMeetLocked() {
		s.diffSoonLocked(portal, p)
	}
	s.mu.Unlock()
	if told {
		// Who told of it may have its log.
		if _, err := s.Take(ctx, h.from, []federation.Told{{Head: h.head}}); err != nil {
			s.Log.Debug("head not taken", "portal", portal, "error", err)
		}
	}
}

// mayMeetLocked counts a portal that is asked because it is met; the caller
// holds mu.
func (s *Syncer) mayMeetLocked() bool {
	if now := clock.Now(); now.Sub(s.metSince) >= roundEvery {
		s.metSince, s.metCount = now, 0
	}
	s.metCount++
	return s.metCount <= meetMost
}

// newerCard takes in the card of a portal that is known, if it is newer than the
// one that is held: it moved, or has other keys.
func (s *Syncer) newerCard(ctx context.Context, portal record.PortalID, wire []byte) error {
	claim, err := s.claimOf(portal, wire)
	if err != nil {
		return err
	}
	seen, err := s.Replica.Seen(ctx, record.Slot{Type: record.TypeCard, Portal: portal})
	if err != nil || claim.Version().Compare(seen.Version) <= 0 {
		return err
	}
	return s.takeCard(ctx, portal, wire)
}

// claimOf reads what came where the card of a portal should be, and nothing else
// is taken in because it came there.
func (s *Syncer) claimOf(portal record.PortalID, wire []byte) (*record.Record, error) {
	claim, err := record.Open(s.Self.Network(), wire)
	if err != nil {
		return nil, err
	}
	if claim.Type != record.TypeCard || claim.Portal != portal {
		return nil, &record.Refused{Reason: record.NotConsistent, Text: "the card is another's"}
	}
	return claim, nil
}

// takeCard takes in a newer card of a portal that is known, whoever has it.
func (s *Syncer) takeCard(ctx context.Context, portal record.PortalID, wire []byte) error {
	if _, err := s.claimOf(portal, wire); err != nil {
		return err
	}
	before, err := s.Replica.Standing(ctx, portal)
	if err != nil {
		return err
	}
	r, fresh, err := s.gate.Admit(ctx, wire, clock.Now())
	if err != nil {
		if why := record.ReasonOf(err); why == record.Equivocation {
			s.forked(ctx, portal)
		} else if why == record.Stale {
			return nil // we hold a newer one
		}
		return err
	}
	card, ok := r.Body.(*record.Card)
	if !ok || !fresh {
		return nil
	}
	s.Registry.Learned(card, false)
	if before.Ring != nil && dropsKey(before.Ring, card) {
		// What the key signed is void; what there is now comes anew.
		s.mu.Lock()
		if f := s.portals[portal]; f != nil {
			f.nothingLeft()
		}
		s.mu.Unlock()
		if err := s.Replica.SetPosition(ctx, portal, record.Version{}); err != nil {
			return err
		}
		s.Directory.Clear(portal)
		return nil
	}
	s.Directory.Changed(portal)
	return nil
}

// dropsKey reports whether a key that spoke for a portal does not any more.
func dropsKey(before *record.Ring, card *record.Card) bool {
	now := card.Ring()
	for _, id := range before.IDs() {
		if !now.Has(id) {
			return true
		}
	}
	return false
}
