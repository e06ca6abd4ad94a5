package replication

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/record"
)

const (
	// maxSources bounds the stored sources of one head; more are not needed to pull a log.
	maxSources = 8
	// enoughSources is the number of sources of a head that is sufficient: with fewer, other portals are
	// asked for the head to find another source.
	enoughSources = 2
	// maxCompared is the number of portals with which heads are compared at once. When half of a network
	// returns, the first comparisons deliver every missed head before the next portals are asked.
	maxCompared = 4
)

// Take implements federation.Listener: it accepts heads that the portal from sent in an answer or a hint,
// at most MaxHeads of them. refused lists the invalid ones by their index; err is an internal failure.
// Refusals that prove a fault of the sender are counted in the registry.
func (s *Syncer) Take(ctx context.Context, from record.PortalID, told []federation.Told) (refused []federation.Unfit,
	err error) {
	for n, t := range told[:min(len(told), federation.MaxHeads)] {
		err := s.takeOne(ctx, from, t)
		if err == nil {
			continue
		}
		why := record.ReasonOf(err)
		if why == "" {
			return refused, err
		}
		refused = append(refused, federation.Unfit{N: n, Reason: string(why)})
		switch why {
		case record.NoPortal, record.NoKey, record.Expired, record.Quarantined, record.Unknown:
			// No fault of the sender: the two portals may know different records, and their clocks may
			// differ.
		default:
			s.Registry.Fault(from, string(why))
		}
	}
	return refused, nil
}

// takeOne accepts one head from a portal. A *record.Refused error means that the record is invalid or its
// portal unknown; other errors are internal. A head that the policy does not want, or that is older than
// the one held, is ignored without an error.
func (s *Syncer) takeOne(ctx context.Context, from record.PortalID, t federation.Told) error {
	claim, err := record.Open(s.Self.Network(), t.Head)
	if err != nil {
		return err
	}
	portal := claim.Portal
	switch {
	case claim.Type != record.TypeHead:
		return &record.Refused{Reason: record.NotConsistent, Text: "it is no head"}
	case portal == s.own:
		s.ownWatch.seeCard(t.Card)
		s.ownWatch.seeHead(ctx, claim)
		return nil
	}
	d := s.Registry.Decide(ctx, portal, "")
	if !d.Take && d.State != federation.Pending {
		return nil
	}
	standing, err := s.Replica.Standing(ctx, portal)
	if err != nil {
		return err
	}
	if standing.Ring != nil && len(t.Card) > 0 {
		if err := s.newerCard(ctx, portal, t.Card); err != nil {
			return err
		}
	}
	switch {
	case standing.Ring == nil && len(t.Card) == 0:
		return &record.Refused{Reason: record.NoPortal, Text: "its card is not known"}
	case standing.Ring == nil:
		return s.heardOf(ctx, from, portal, t)
	case standing.Quarantined, !d.Take:
		return nil
	case claim.Version().Compare(standing.Head) < 0:
		return nil // older than the head held
	}
	if !t.Bare {
		return s.takeHead(ctx, from, portal, t.Head)
	}
	// Bare means that the sender does not have the log, so the portal itself is recorded as the source.
	err = s.takeHead(ctx, portal, portal, t.Head)
	if err == nil {
		s.noteHeadOnly(portal, from, claim.Version())
	}
	return err
}

// takeHead admits a head of a known portal, with from as a source of its log, and starts a pull if needed.
// Stale heads and newly detected forks are no errors.
func (s *Syncer) takeHead(ctx context.Context, from, portal record.PortalID, wire []byte) error {
	r, fresh, err := s.admitHead(ctx, portal, wire)
	if err != nil {
		switch record.ReasonOf(err) {
		case record.Equivocation:
			s.handleFork(ctx, portal)
			return nil // reporting a fork is no fault of the sender
		case record.Stale:
			return nil
		}
		return err
	}
	head, ok := r.Body.(*record.Head)
	if !ok {
		return &record.Refused{Reason: record.NotConsistent, Text: "it is no head"}
	}
	s.requestPull(ctx, from, head, fresh)
	return nil
}

// admitHead admits a record that claims to be a head of a portal; fresh is true if it was not held before.
// With the first head of a new epoch the Replica deletes the agents of earlier epochs, so the directory is
// cleared too.
func (s *Syncer) admitHead(ctx context.Context, portal record.PortalID, wire []byte) (r *record.Record, fresh bool,
	err error) {
	before, err := s.Replica.Standing(ctx, portal)
	if err != nil {
		return nil, false, err
	}
	r, fresh, err = s.gate.Admit(ctx, wire, clock.Now())
	if err == nil && fresh && r.Epoch > before.Head.Epoch && before.Head.Epoch != 0 {
		s.Directory.Clear(portal)
	}
	return r, fresh, err
}

// requestPull records an admitted head of a portal and its source, and starts a pull if anything is
// missing. It does nothing if maxPortals portals are followed already.
func (s *Syncer) requestPull(ctx context.Context, from record.PortalID, head *record.Head, fresh bool) {
	if from == s.own {
		from = ""
	}
	s.mu.Lock()
	p := s.followPortal(head.Portal)
	if p == nil {
		s.mu.Unlock()
		return
	}
	list := p.noteHead(rowOf(head), from)
	s.mu.Unlock()
	if fresh {
		s.Directory.Changed(head.Portal)
	}
	for _, e := range list {
		s.applyEvent(ctx, p, e)
	}
}

func rowOf(h *record.Head) federation.HeadRow {
	return federation.HeadRow{Portal: h.Portal, Version: h.Version(), Issued: h.Issued, Expires: h.Expires,
		Count: h.Count}
}

// diffSoon schedules a comparison of heads with a portal, at least diffGap after the last one. It does not
// block; errors are logged.
func (s *Syncer) diffSoon(portal record.PortalID) {
	wait, ok := s.peers.planDiff(portal, clock.Now())
	if !ok {
		return
	}
	s.startTask(func(ctx context.Context) {
		if wait > 0 && !clock.Sleep(ctx, wait) {
			return
		}
		err := s.diffHeads(ctx, portal)
		if err != nil && ctx.Err() == nil {
			s.Log.Debug("heads not compared", "portal", portal, "error", err)
		}
	})
}

// buildVector returns the versions up to which this portal holds logs, for a request that compares heads.
// If there are more than MaxVector, it returns one part for each call in turn, with the range of marks that
// the part covers.
func (s *Syncer) buildVector(ctx context.Context) (federation.DiffQuestion, error) {
	rows, err := s.Replica.Heads(ctx)
	if err != nil {
		return federation.DiffQuestion{}, fmt.Errorf("heads that are held: %w", err)
	}
	var v federation.Vector
	s.mu.Lock()
	for _, row := range rows {
		at := row.Version
		if p := s.portals[row.Portal]; p != nil && !p.isWithoutLog() && row.Portal != s.own &&
			(len(p.sources) < enoughSources || p.pull.fails > 0) {
			at = p.got // ask for this head again: the portal that sends it becomes one more source
		}
		v = append(v, federation.Held{Mark: federation.MarkOf(row.Portal), Version: at})
	}
	s.mu.Unlock()
	v.Sort()
	if len(v) <= federation.MaxVector {
		return federation.DiffQuestion{Have: v.Encode()}, nil
	}
	parts := (len(v) + federation.MaxVector - 1) / federation.MaxVector
	s.mu.Lock()
	n := s.part % parts
	s.part++
	s.mu.Unlock()
	from, to := federation.Mark(0), ^federation.Mark(0)
	piece := v[n*federation.MaxVector : min((n+1)*federation.MaxVector, len(v))]
	if n > 0 {
		from = piece[0].Mark
	}
	if n < parts-1 {
		to = v[(n+1)*federation.MaxVector].Mark - 1
	}
	return federation.DiffQuestion{Have: piece.Encode(), From: &from, To: &to}, nil
}

// diffHeads compares heads with a portal: it accepts heads that are newer there and sends a hint of those
// that are newer here.
func (s *Syncer) diffHeads(ctx context.Context, portal record.PortalID) error {
	leave, err := s.compared.enterSlot(ctx)
	if err != nil {
		return err
	}
	defer leave()
	q, err := s.buildVector(ctx)
	if err != nil {
		return err
	}
	q.Bare = s.keepsSummaries()
	a, err := s.askPortal(ctx, portal, http.MethodPost, "/peering/v1/heads/diff", q, shortTimeout,
		federation.MaxAnswer+64<<10)
	if err != nil {
		return err
	}
	var d federation.DiffAnswer
	if err := readAnswer(a, &d); err != nil {
		s.Registry.Fault(portal, "malformed")
		return err
	}
	if len(d.Heads) > federation.MaxHeads || len(d.Behind) > federation.MaxHeads {
		s.Registry.Fault(portal, "size")
		return fmt.Errorf("it answered with more than %d heads", federation.MaxHeads)
	}
	if _, err := s.Take(ctx, portal, d.Heads); err != nil {
		return err
	}
	s.hints.hintBehind(ctx, portal, d.Behind)
	if d.More && len(d.Heads) > 0 {
		s.diffSoon(portal)
	}
	return nil
}

// runRounds compares heads with other portals once in roundEvery, until ctx ends: with a random reachable
// portal and a random one that did not answer last, or with all if they are few.
func (s *Syncer) runRounds(ctx context.Context) {
	first := true
	for {
		s.runUpkeep(ctx)
		s.antiEntropy(ctx, first)
		first = false
		if !clock.Sleep(ctx, s.dice.varyTime(roundEvery)) {
			return
		}
	}
}

func (s *Syncer) antiEntropy(ctx context.Context, first bool) {
	var up, down []record.PortalID
	for _, p := range s.Registry.Portals(ctx) {
		switch {
		case p.ID == s.own, p.ID == "":
		case p.State == federation.Active:
			up = append(up, p.ID)
		case p.Mute():
			down = append(down, p.ID)
		}
	}
	n := 1
	if first {
		n = fewPeers
	}
	if len(up) <= fewPeers {
		n = len(up)
	}
	for _, id := range append(s.dice.sampleList(up, n), s.dice.sampleList(down, max(1, n-1))...) {
		s.diffSoon(id)
	}
}

// listActive returns the other portals that are reachable and allowed.
func (s *Syncer) listActive(ctx context.Context) (list []record.PortalID) {
	for _, p := range s.Registry.Portals(ctx) {
		if p.State == federation.Active && p.ID != "" && p.ID != s.own {
			list = append(list, p.ID)
		}
	}
	return list
}

// staleKept is how long the agents of a portal stay in the Replica after its head has expired.
const staleKept = 7 * 24 * time.Hour

// runUpkeep deletes the records of portals that are denied or have a head that expired more than staleKept
// ago, and resumes pulls of incomplete logs.
func (s *Syncer) runUpkeep(ctx context.Context) {
	rows, err := s.Replica.Heads(ctx)
	if err != nil {
		if ctx.Err() == nil {
			s.Log.Error("heads not read", "error", err)
		}
		return
	}
	now := clock.Now()
	for _, row := range rows {
		if row.Portal == s.own {
			continue
		}
		d := s.Registry.Decide(ctx, row.Portal, "")
		gone := mustDrop(d) || now.UnixMilli()-row.Expires > staleKept.Milliseconds()
		if gone {
			s.tryDrop(ctx, row.Portal)
			continue
		}
		if row.Expires <= now.UnixMilli() || !d.Take {
			continue
		}
		s.upkeepPortal(ctx, row)
	}
}

// upkeepPortal records the newest head that the Replica holds of a portal, because another code path may
// have stored it, and starts a pull if one is due.
func (s *Syncer) upkeepPortal(ctx context.Context, row federation.HeadRow) {
	s.mu.Lock()
	p := s.followPortal(row.Portal)
	if p == nil {
		s.mu.Unlock()
		return
	}
	list := p.noteHead(row, "")
	if p.isDue(clock.Now()) {
		list = append(list, retryDue)
	}
	s.mu.Unlock()
	for _, e := range list {
		s.applyEvent(ctx, p, e)
	}
}

// Drop deletes the records held of a portal that the operator denied and ends a running pull. The versions
// and keys that a record.Gate needs against replay stay.
func (s *Syncer) Drop(ctx context.Context, portal record.PortalID) error {
	s.mu.Lock()
	p := s.portals[portal]
	s.mu.Unlock()
	if p != nil {
		s.applyEvent(ctx, p, shutOut)
	}
	n, _, err := s.Replica.Holding(ctx, portal)
	if err != nil {
		return err
	}
	s.mu.Lock()
	clean := p == nil || p.got == record.Version{}
	s.mu.Unlock()
	if n == 0 && clean {
		return nil
	}
	if err := s.forgetAgents(ctx, portal); err != nil {
		return err
	}
	s.Report(ctx, portal)
	return nil
}

// tryDrop calls Drop and logs a failure; the next runUpkeep tries again.
func (s *Syncer) tryDrop(ctx context.Context, portal record.PortalID) {
	if err := s.Drop(ctx, portal); err != nil && ctx.Err() == nil {
		s.Log.Error("a portal not dropped; it is tried again", "portal", portal, "error", err)
	}
}

// forgetAgents deletes a portal's agents from the Replica and from the directory.
func (s *Syncer) forgetAgents(ctx context.Context, portal record.PortalID) error {
	s.noteLost(ctx, portal)
	if err := s.Replica.Drop(ctx, portal); err != nil {
		return err
	}
	s.Directory.Clear(portal)
	return nil
}

// noteLost records that the records held of a portal are void or will be deleted. It must be called before
// the deletion, so that a pull that runs meanwhile notices it.
func (s *Syncer) noteLost(ctx context.Context, portal record.PortalID) {
	s.mu.Lock()
	p := s.portals[portal]
	if p == nil {
		s.mu.Unlock()
		return
	}
	p.noteLost()
	do := s.applyLocked(p, recordsLost)
	s.mu.Unlock()
	s.performActions(ctx, p, do)
}

func agentIDOf(network string, wire []byte) string {
	r, err := record.Open(network, wire)
	if err != nil {
		return ""
	}
	a, ok := r.Body.(*record.Agent)
	if !ok {
		return ""
	}
	return a.AgentID()
}
