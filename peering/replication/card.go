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
	// meetEvery is the interval at which the registry is searched for portals that are new or reachable
	// again, to compare heads with them.
	meetEvery = 2 * time.Second
	// meetMost is how many new or returned portals are asked for their heads within roundEvery. Each sends
	// its own head with its handshake; for the heads of third portals a few are enough.
	meetMost = 8
	// maxHeard bounds the remembered portals that hints named and that are not registered yet, maxHeardFrom
	// those that one sender named. The registry limits how often it looks up such portals.
	maxHeard     = 1024
	maxHeardFrom = 100
	// heardLife is how long a hint is kept for a portal that is not registered yet.
	heardLife = 10 * time.Minute
)

// heard is a hint about a portal that is not registered yet: the sender, the head in it, and its arrival.
type heard struct {
	from record.PortalID
	head []byte
	at   time.Time
}

// strangers are the portals that were named in hints and are not registered yet. Syncer.mu guards them.
type strangers struct {
	heard map[record.PortalID]heard
}

// removeStranger removes the hint about a portal and returns it; ok is false if there is none. The caller
// holds Syncer.mu.
func (s *strangers) removeStranger(portal record.PortalID) (h heard, ok bool) {
	h, ok = s.heard[portal]
	delete(s.heard, portal)
	return h, ok
}

// addStranger keeps a hint about a portal that is not registered yet. There is always room for a new one:
// if the limits are reached, the oldest of the sender with the most hints is dropped. The caller holds
// Syncer.mu.
func (s *strangers) addStranger(portal, from record.PortalID, head []byte) {
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
	if s.heard == nil {
		s.heard = make(map[record.PortalID]heard)
	}
	s.heard[portal] = heard{from, slices.Clone(head), now}
}

// heardOf handles a hint about a portal without a known card. The card in the hint is signed by its own
// key, but such cards cost nothing to make. Before any part is stored, the card's origin therefore has to
// answer with the same card; the registry verifies this at its own pace.
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
	s.strangers.addStranger(portal, from, t.Head)
	return nil
}

// runMeet compares heads with each portal once after it was first seen reachable, until ctx ends.
func (s *Syncer) runMeet(ctx context.Context) {
	for {
		news := s.nextChange()
		for _, p := range s.Registry.Portals(ctx) {
			if p.ID != "" && p.ID != s.own && p.State == federation.Active {
				s.meetPortal(ctx, p.ID)
			}
		}
		t := time.NewTimer(meetEvery)
		select {
		case <-t.C:
		case <-news:
			if !clock.Sleep(ctx, meetEvery/8) { // changes come in bursts: read the registry once for all
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

// meetPortal schedules a comparison of heads with a reachable portal, unless there was one since the start.
// A head that a hint named before the portal was registered is accepted now.
func (s *Syncer) meetPortal(ctx context.Context, portal record.PortalID) {
	known := s.peers.noteMet(portal)
	s.mu.Lock()
	h, told := s.strangers.removeStranger(portal)
	ask := !known && s.mayMeetLocked()
	s.mu.Unlock()
	if ask {
		s.diffSoon(portal)
	}
	if told {
		// The sender of that head is recorded as a source of the log.
		if _, err := s.Take(ctx, h.from, []federation.Told{{Head: h.head}}); err != nil {
			s.Log.Debug("head not taken", "portal", portal, "error", err)
		}
	}
}

// mayMeetLocked counts a portal that is asked because it is new, and reports whether the limit allows
// it; the caller holds mu.
func (s *Syncer) mayMeetLocked() bool {
	if now := clock.Now(); now.Sub(s.metSince) >= roundEvery {
		s.metSince, s.metCount = now, 0
	}
	s.metCount++
	return s.metCount <= meetMost
}

// newerCard admits the card of a known portal if it is newer than the one held, because the portal has
// another address or other keys. An older or equal card is no error.
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

// claimOf decodes a card that was sent together with a head; its signature is not verified. A record of
// another type or portal is refused, because this path may admit only cards.
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

// takeCard admits a newer card of a known portal, whichever portal sent it. If the new card drops a signing
// key, all records held of the portal are pulled again.
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
			s.handleFork(ctx, portal)
		} else if why == record.Stale {
			return nil // the card held is newer
		}
		return err
	}
	card, ok := r.Body.(*record.Card)
	if !ok || !fresh {
		return nil
	}
	s.Registry.Learned(card, false)
	if before.Ring != nil && dropsKey(before.Ring, card) {
		// Records that only the dropped key signed are void. The log is pulled again for records with valid
		// signatures.
		s.noteLost(ctx, portal)
		if err := s.Replica.SetPosition(ctx, portal, record.Version{}); err != nil {
			return err
		}
		s.Directory.Clear(portal)
		return nil
	}
	s.Directory.Changed(portal)
	return nil
}

// dropsKey reports whether the new card lacks a key that signed for the portal before.
func dropsKey(before *record.Ring, card *record.Card) bool {
	now := card.Ring()
	for _, id := range before.IDs() {
		if !now.Has(id) {
			return true
		}
	}
	return false
}
