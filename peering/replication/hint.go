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
	// hintGap is the minimum time between two hints of one portal's head. Changes within it go with the
	// next hint.
	hintGap = 2 * time.Second
	// maxHinted is how many portals receive a hint of a new head of this portal: all in a smaller network.
	// In a larger one the others receive it from those portals.
	maxHinted = 50
	// handedOn is how many portals receive a hint of a new head of another portal. That portal has sent up
	// to maxHinted hints itself, so only the rest has to be reached: if every portal sent hints to all, n
	// portals would send n² of them.
	handedOn = 4
	// handedOnFew replaces handedOn when the head's portal can reach all others by itself, except for its
	// first head: other new portals do not know it yet.
	handedOnFew = 1
	// hintedBehind is how many portals that named an older head receive a hint of the new one within
	// roundEvery. Further ones receive it from those portals, or compare heads themselves.
	hintedBehind = 4
	// maxOutbox bounds the heads that wait to be sent to one portal. Heads that do not fit are found when
	// heads are compared.
	maxOutbox = 4096
	// sendGap is the minimum time between two requests with hints to one portal, which accepts 5 a second.
	sendGap = 250 * time.Millisecond
)

// advertiser is the part of a Syncer that sends hints of heads. It is safe for concurrent use.
type advertiser struct {
	s    *Syncer
	wake chan struct{}

	mu   sync.Mutex // guards the fields below
	due  map[record.PortalID]time.Time
	last map[record.PortalID]time.Time
	out  map[record.PortalID]*outbox
}

// outbox holds the heads that wait to be sent to one receiver, by portal; the value is true when the card
// has to be sent with the head. busy is true while a goroutine sends.
type outbox struct {
	heads map[record.PortalID]bool
	busy  bool
}

func newAdvertiser(s *Syncer) *advertiser {
	return &advertiser{s: s, wake: make(chan struct{}, 1), due: make(map[record.PortalID]time.Time),
		last: make(map[record.PortalID]time.Time), out: make(map[record.PortalID]*outbox)}
}

// Published must be called after a new head of this portal was stored in the Replica. It sends hints of
// that head.
func (s *Syncer) Published() { s.hints.advertiseHead(s.own) }

// advertiseHead schedules hints of the newest head of a portal: at once, or hintGap after the previous
// ones. It does not block.
func (h *advertiser) advertiseHead(portal record.PortalID) {
	now := clock.Now()
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

// takeDue removes and returns the portals with due hints, and the wait until the next, at most an hour.
func (h *advertiser) takeDue(now time.Time) (list []record.PortalID, wait time.Duration) {
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

// runHints sends the hints that are due until ctx ends.
func (h *advertiser) runHints(ctx context.Context) {
	for {
		list, wait := h.takeDue(clock.Now())
		if len(list) > 0 {
			h.spreadHints(ctx, list)
			continue
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-h.wake:
		case <-ctx.Done():
			t.Stop()
			return
		}
		t.Stop()
	}
}

// spreadHints puts the heads of the listed portals into the outboxes of randomly chosen reachable portals.
func (h *advertiser) spreadHints(ctx context.Context, list []record.PortalID) {
	up := h.s.listActive(ctx)
	for _, portal := range list {
		n, know := h.s.noteHanded(portal, len(up))
		for _, to := range h.s.dice.sampleList(up, n+len(know)+1) {
			if n == 0 {
				break
			}
			if to == portal || slices.Contains(know, to) {
				continue
			}
			n--
			h.postHead(to, portal, false)
		}
	}
}

// noteHanded records that hints of a portal's head are sent now. It returns how many portals should receive
// one, and the portals that already have that head. active is the number of reachable portals.
func (s *Syncer) noteHanded(portal record.PortalID, active int) (n int, know []record.PortalID) {
	if portal == s.own {
		return maxHinted, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.portals[portal]
	if p == nil {
		return handedOn, nil
	}
	n = handedOn
	if p.handed && active <= maxHinted {
		n = handedOnFew
	}
	p.handed = true
	return n, slices.Clone(p.sources)
}

// hintBehind sends a portal those heads that are newer here, named by their marks in its answer. The cards
// go with them, because the receiver may not know those portals at all.
func (h *advertiser) hintBehind(ctx context.Context, to record.PortalID, behind []federation.Mark) {
	if len(behind) == 0 {
		return
	}
	rows, err := h.s.Replica.Heads(ctx)
	if err != nil {
		return
	}
	byMark := make(map[federation.Mark]record.PortalID, len(rows))
	for _, row := range rows {
		byMark[federation.MarkOf(row.Portal)] = row.Portal
	}
	for _, m := range behind {
		if portal := byMark[m]; portal != "" && portal != to && h.s.mayHintBehind(portal) {
			h.postHead(to, portal, true)
		}
	}
}

// mayHintBehind counts one more hint of a portal's head to an outdated portal, and reports whether the
// limit hintedBehind allows it.
func (s *Syncer) mayHintBehind(portal record.PortalID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.portals[portal]
	if p == nil {
		return true // this portal's own head has no limit
	}
	if now := clock.Now(); now.Sub(p.behindFrom) >= roundEvery {
		p.behind, p.behindFrom = 0, now
	}
	p.behind++
	return p.behind <= hintedBehind
}

// postHead puts the head of portal into the outbox for to, and starts a goroutine that sends it unless one
// runs. card is true to send the card too.
func (h *advertiser) postHead(to, portal record.PortalID, card bool) {
	if h.addToOutbox(to, portal, card) {
		h.s.startTask(func(ctx context.Context) { h.drainOutbox(ctx, to) })
	}
}

// addToOutbox puts a head into an outbox, and reports whether the caller has to start sending. A head that
// does not fit is discarded.
func (h *advertiser) addToOutbox(to, portal record.PortalID, card bool) (start bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.out[to]
	if o == nil {
		if len(h.out) >= maxPortals {
			return false
		}
		o = &outbox{heads: make(map[record.PortalID]bool)}
		h.out[to] = o
	}
	if had, ok := o.heads[portal]; ok || len(o.heads) < maxOutbox {
		o.heads[portal] = had || card
	}
	start, o.busy = !o.busy, true
	return start
}

// nextBatch removes and returns at most MaxHints heads from a portal's outbox. When none is left it deletes
// the outbox and returns an empty map.
func (h *advertiser) nextBatch(to record.PortalID) map[record.PortalID]bool {
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

// drainOutbox sends the content of a portal's outbox in batches. After an error the rest is discarded,
// because heads are compared when the portal is reachable again.
func (h *advertiser) drainOutbox(ctx context.Context, to record.PortalID) {
	for {
		batch := h.nextBatch(to)
		if len(batch) == 0 {
			return
		}
		if err := h.sendHints(ctx, to, batch); err != nil {
			if ctx.Err() == nil {
				h.s.Log.Debug("hints not sent", "portal", to, "error", err)
			}
			h.mu.Lock()
			delete(h.out, to)
			h.mu.Unlock()
			return
		}
		if !clock.Sleep(ctx, sendGap) {
			return
		}
	}
}

// sendHints sends one batch of heads to a portal. Heads that the portal refuses because it lacks the card
// go back into the outbox, with the card.
func (h *advertiser) sendHints(ctx context.Context, to record.PortalID, batch map[record.PortalID]bool) error {
	leave, err := h.s.work.enterSlot(ctx)
	if err != nil {
		return err
	}
	defer leave()
	var ids []record.PortalID
	var hint federation.Hint
	size := 0
	for id, withCard := range batch {
		t, ok := h.buildHint(ctx, id, withCard)
		if size += len(t.Card) + len(t.Head); ok && size < maxShort-4096 {
			ids = append(ids, id)
			hint.Heads = append(hint.Heads, t)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	a, err := h.s.askPortal(ctx, to, http.MethodPost, "/peering/v1/heads/hint", hint, shortTimeout, maxShort)
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
	for _, r := range said.Refused {
		if r.N < 0 || r.N >= len(ids) || batch[ids[r.N]] {
			continue
		}
		if why := record.Reason(r.Reason); why == record.NoPortal || why == record.NoKey {
			h.postHead(to, ids[r.N], true)
		}
	}
	return nil
}

// buildHint builds the hint of a portal's head. ok is false when the policy does not allow to pass the head
// on, or when the log here is not complete up to it, because this portal could not serve it.
func (h *advertiser) buildHint(ctx context.Context, portal record.PortalID, withCard bool) (t federation.Told,
	ok bool) {
	if portal != h.s.own {
		if !h.s.Registry.Decide(ctx, portal, "").Show {
			return t, false
		}
		standing, err := h.s.Replica.Standing(ctx, portal)
		at, err2 := h.s.Replica.Position(ctx, portal)
		if err != nil || err2 != nil || standing.Quarantined || at != standing.Head && !h.s.isBrief(portal) {
			return t, false
		}
		t.Bare = at != standing.Head
	}
	head, err := h.s.Replica.Head(ctx, portal)
	if err != nil || head == nil {
		return t, false
	}
	t.Head = head
	if withCard {
		if t.Card, err = h.s.Replica.Card(ctx, portal); err != nil || t.Card == nil {
			return t, false
		}
	}
	return t, true
}
