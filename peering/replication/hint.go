package replication

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/record"
)

const (
	// hintGap keeps hints of one portal's head apart: what changes meanwhile
	// goes with the next.
	hintGap = 2 * time.Second
	// maxHinted is how many portals are told of a new head of our own. Below it
	// all are; then those who were not told hear of it from those who were.
	maxHinted = 50
	// handedOn is how many portals are told of a new head of somebody else.
	// That portal has told up to maxHinted itself, so it is only for those it
	// did not reach: if all told all, n portals would hint n² times.
	handedOn = 4
	// handedOnFew is the same where that portal can tell all, but for the first
	// head of a portal: those who are new do not know each other yet.
	handedOnFew = 1
	// toldBehind is how many portals that are behind are told so of one head
	// within roundEvery. The others hear it from those, or ask.
	toldBehind = 4
	// maxOutbox bounds the heads that wait to be told to one portal. What does
	// not fit is found when heads are compared.
	maxOutbox = 4096
	// sendGap keeps requests with hints to one portal apart; it takes 5 a
	// second.
	sendGap = 250 * time.Millisecond
)

// hints is which heads are to be told to whom.
type hints struct {
	mu   sync.Mutex // guards the rest
	due  map[record.PortalID]time.Time
	last map[record.PortalID]time.Time
	out  map[record.PortalID]*outbox
	wake chan struct{}
}

// outbox is the portals whose heads are to be told to one, true when the card
// goes with it.
type outbox struct {
	heads map[record.PortalID]bool
	busy  bool
}

func (h *hints) init() {
	h.due, h.last = make(map[record.PortalID]time.Time), make(map[record.PortalID]time.Time)
	h.out, h.wake = make(map[record.PortalID]*outbox), make(chan struct{}, 1)
}

// Published tells that this portal has a new head, which the Replica holds.
func (s *Syncer) Published() { s.tell(s.own) }

// tell has the newest head of a portal told to others: at once, or when hintGap
// after the last time is over.
func (s *Syncer) tell(portal record.PortalID) {
	h, now := &s.hints, clock.Now()
	h.mu.Lock()
	if _, ok := h.due[portal]; !ok && len(h.due) < maxPortals {
		at := now
		if next := h.last[portal].Add(hintGap); next.After(at) {
			at = next
		}
		h.due[portal] = at
	}
	h.mu.Unlock()
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// take returns the portals that are due, and how long to wait for the next.
func (h *hints) take(now time.Time) (list []record.PortalID, wait time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	wait = time.Hour
	for id, at := range h.due {
		if d := at.Sub(now); d > 0 {
			wait = min(wait, d)
			continue
		}
		list = append(list, id)
		delete(h.due, id)
		h.last[id] = now
	}
	if len(h.last) > maxPortals {
		for id, at := range h.last {
			if now.Sub(at) > hintGap {
				delete(h.last, id)
			}
		}
	}
	slices.Sort(list)
	return list, wait
}

func (s *Syncer) runHints(ctx context.Context) {
	for {
		list, wait := s.hints.take(clock.Now())
		if len(list) > 0 {
			s.spread(ctx, list)
			continue
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-s.hints.wake:
		case <-ctx.Done():
			t.Stop()
			return
		}
		t.Stop()
	}
}

// spread puts heads into the outboxes of those who are to be told.
func (s *Syncer) spread(ctx context.Context, list []record.PortalID) {
	var up []record.PortalID
	for _, p := range s.Registry.Portals(ctx) {
		if p.State == federation.Active && p.ID != "" && p.ID != s.own {
			up = append(up, p.ID)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, portal := range list {
		n := maxHinted
		var know []record.PortalID
		if portal != s.own {
			n = handedOn
			if f := s.portals[portal]; f != nil {
				know = f.sources
				if f.handed && len(up) <= maxHinted {
					n = handedOnFew
				}
				f.handed = true
			}
		}
		for _, to := range s.sampleLocked(up, n+len(know)+1) {
			if n == 0 {
				break
			}
			if to == portal || slices.Contains(know, to) {
				continue
			}
			n--
			s.postLocked(to, portal, false)
		}
	}
}

// hintBehind tells a portal of heads that it said it is behind on, with their
// cards: it may not know those portals at all.
func (s *Syncer) hintBehind(ctx context.Context, to record.PortalID, behind []federation.Mark) {
	if len(behind) == 0 {
		return
	}
	rows, err := s.Replica.Heads(ctx)
	if err != nil {
		return
	}
	byMark := make(map[federation.Mark]record.PortalID, len(rows))
	for _, row := range rows {
		byMark[federation.MarkOf(row.Portal)] = row.Portal
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range behind {
		if portal := byMark[m]; portal != "" && portal != to && s.tellsBehind(portal) {
			s.postLocked(to, portal, true)
		}
	}
}

// tellsBehind reports whether one more portal is told of a head that it is behind
// on; the caller holds mu.
func (s *Syncer) tellsBehind(portal record.PortalID) bool {
	f := s.portals[portal]
	if f == nil {
		return true // our own
	}
	if now := clock.Now(); now.Sub(f.behindFrom) >= roundEvery {
		f.behind, f.behindFrom = 0, now
	}
	f.behind++
	return f.behind <= toldBehind
}

// postLocked puts a head into an outbox and has it sent; the caller holds mu.
func (s *Syncer) postLocked(to, portal record.PortalID, card bool) {
	h := &s.hints
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.out[to]
	if o == nil {
		if len(h.out) >= maxPortals {
			return
		}
		o = &outbox{heads: make(map[record.PortalID]bool)}
		h.out[to] = o
	}
	if had, ok := o.heads[portal]; ok || len(o.heads) < maxOutbox {
		o.heads[portal] = had || card
	}
	if !o.busy {
		o.busy = true
		s.startLocked(func(ctx context.Context) { s.drain(ctx, to) })
	}
}

// next takes what goes into the next request to a portal; when there is nothing
// its outbox is done with.
func (h *hints) next(to record.PortalID) map[record.PortalID]bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.out[to]
	batch := make(map[record.PortalID]bool)
	for id, card := range o.heads {
		if len(batch) == federation.MaxHints {
			break
		}
		batch[id] = card
		delete(o.heads, id)
	}
	if len(batch) == 0 {
		delete(h.out, to)
	}
	return batch
}

// drain sends what is in a portal's outbox. When it does not answer the rest is
// let go: heads are compared when it is back.
func (s *Syncer) drain(ctx context.Context, to record.PortalID) {
	for {
		batch := s.hints.next(to)
		if len(batch) == 0 {
			return
		}
		if err := s.work.do(ctx, func() error { return s.send(ctx, to, batch) }); err != nil {
			if ctx.Err() == nil {
				s.Log.Debug("hints not sent", "portal", to, "error", err)
			}
			s.hints.mu.Lock()
			delete(s.hints.out, to)
			s.hints.mu.Unlock()
			return
		}
		if !clock.Sleep(ctx, sendGap) {
			return
		}
	}
}

// send tells a portal of heads. Those whose cards it lacks it is told of again
// with them.
func (s *Syncer) send(ctx context.Context, to record.PortalID, batch map[record.PortalID]bool) error {
	var ids []record.PortalID
	var hint federation.Hint
	size := 0
	for id, withCard := range batch {
		t, ok := s.told(ctx, id, withCard)
		if size += len(t.Card) + len(t.Head); ok && size < maxShort-4096 {
			ids = append(ids, id)
			hint.Heads = append(hint.Heads, t)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	a, err := s.ask(ctx, to, http.MethodPost, "/peering/v1/heads/hint", hint, shortTimeout, maxShort)
	if err != nil {
		return err
	}
	var said struct {
		Refused []federation.Unfit `json:"refused"`
	}
	if err := readAnswer(a, &said); err != nil {
		return err
	}
	if len(said.Refused) > len(ids) {
		return fmt.Errorf("it refused more than it was told")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range said.Refused {
		if r.N < 0 || r.N >= len(ids) || batch[ids[r.N]] {
			continue
		}
		if why := record.Reason(r.Reason); why == record.NoPortal || why == record.NoKey {
			s.postLocked(to, ids[r.N], true)
		}
	}
	return nil
}

// told returns what is told of a portal's head; not ok when it may not be, or
// what is held does not add up to it, so that we could not say more.
func (s *Syncer) told(ctx context.Context, portal record.PortalID, withCard bool) (t federation.Told, ok bool) {
	if portal != s.own {
		if !s.Registry.Decide(ctx, portal, "").Show {
			return t, false
		}
		standing, err := s.Replica.Standing(ctx, portal)
		at, err2 := s.Replica.Position(ctx, portal)
		if err != nil || err2 != nil || standing.Quarantined || at != standing.Head && !s.isBrief(portal) {
			return t, false
		}
		t.Bare = at != standing.Head
	}
	head, err := s.Replica.Head(ctx, portal)
	if err != nil || head == nil {
		return t, false
	}
	t.Head = head
	if withCard {
		if t.Card, err = s.Replica.Card(ctx, portal); err != nil || t.Card == nil {
			return t, false
		}
	}
	return t, true
}
