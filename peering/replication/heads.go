package replication

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/record"
)

const (
	// maxSources bounds how many portals are remembered that told of one head.
	maxSources = 8
	// enoughSources is from how many on nobody is asked for a head again to have
	// another source of its log.
	enoughSources = 2
	// maxCompared is with how many portals heads are compared at once. When half
	// of a network is back, the first have told of all that was missed before
	// the next are asked.
	maxCompared = 4
)

// Take implements federation.Listener: it takes in heads that a portal told of,
// in an answer or a hint.
func (s *Syncer) Take(ctx context.Context, from record.PortalID, told []federation.Told) (refused []federation.Unfit, err error) {
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
			// It need not know what we know, or what the time is here.
		default:
			s.Registry.Fault(from, string(why))
		}
	}
	return refused, nil
}

// takeOne takes in one head. Its errors say why it is refused; what is not
// wanted, or old news, is no error.
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
		s.ownCard(t.Card)
		s.ourOwn(ctx, claim)
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
		return nil // old news
	}
	if !t.Bare {
		return s.takeHead(ctx, from, portal, t.Head)
	}
	err = s.takeHead(ctx, portal, portal, t.Head) // who told of it has not its log
	if err == nil {
		s.noteBare(portal, from, claim.Version())
	}
	return err
}

// takeHead takes in a head of a portal that is known.
func (s *Syncer) takeHead(ctx context.Context, from, portal record.PortalID, wire []byte) error {
	r, fresh, err := s.admitHead(ctx, portal, wire)
	if err != nil {
		switch record.ReasonOf(err) {
		case record.Equivocation:
			s.forked(ctx, portal)
			return nil // who told of it did well
		case record.Stale:
			return nil
		}
		return err
	}
	head, ok := r.Body.(*record.Head)
	if !ok {
		return &record.Refused{Reason: record.NotConsistent, Text: "it is no head"}
	}
	s.want(ctx, from, head, fresh)
	return nil
}

// admitHead admits what claims to be a head of a portal. With the first head of
// a new epoch the Replica forgets the agents of those before, and so does the
// directory.
func (s *Syncer) admitHead(ctx context.Context, portal record.PortalID, wire []byte) (r *record.Record, fresh bool, err error) {
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

// want notes the newest head of a portal and who has it, and has its log
// pulled if anything is missing.
func (s *Syncer) want(ctx context.Context, from record.PortalID, head *record.Head, fresh bool) {
	s.mu.Lock()
	f := s.follow(head.Portal)
	if f == nil {
		s.mu.Unlock()
		return
	}
	row := rowOf(head)
	switch c := row.Compare(f.head.Version); {
	case c < 0:
		s.mu.Unlock()
		return
	case c > 0:
		f.head, f.sources, f.bare, f.fails = row, nil, nil, 0
		f.truncated = f.truncated && clock.Now().Before(f.truncatedUntil)
		if f.since.IsZero() {
			f.since = clock.Now()
		}
	}
	if !slices.Contains(f.sources, from) && len(f.sources) < maxSources && from != s.own {
		f.sources = append(f.sources, from)
		if f.got != f.head.Version && !f.truncated {
			s.wantLocked(head.Portal, f)
		}
	}
	s.mu.Unlock()
	if fresh {
		s.Directory.Changed(head.Portal)
		s.report(ctx, head.Portal)
		s.newHead(head.Portal)
	}
}

func rowOf(h *record.Head) federation.HeadRow {
	return federation.HeadRow{Portal: h.Portal, Version: h.Version(), Issued: h.Issued, Expires: h.Expires, Count: h.Count}
}

// ourOwn looks at a head of this portal that others hold.
func (s *Syncer) ourOwn(ctx context.Context, claim *record.Record) {
	if s.Ahead != nil && s.unknownOwn(ctx, claim) {
		s.Ahead(claim.Version())
	}
}

// diffSoonLocked has heads compared with a portal soon, as soon as it allows
// it; the caller holds mu.
func (s *Syncer) diffSoonLocked(portal record.PortalID, p *peerState) {
	now := clock.Now()
	at := p.diffed.Add(diffGap)
	if at.Before(now) {
		at = now
	}
	if at.Sub(now) > diffGap {
		return // one is on its way
	}
	p.diffed = at
	wait := at.Sub(now)
	s.startLocked(func(ctx context.Context) {
		if wait > 0 && !clock.Sleep(ctx, wait) {
			return
		}
		err := s.compared.do(ctx, func() error { return s.diff(ctx, portal) })
		if err != nil && ctx.Err() == nil {
			s.Log.Debug("heads not compared", "portal", portal, "error", err)
		}
	})
}

// vector returns which heads are held whole, of all or of a part of the
// portals, and the marks that it is about when it is a part.
func (s *Syncer) vector(ctx context.Context) (federation.DiffQuestion, error) {
	rows, err := s.Replica.Heads(ctx)
	if err != nil {
		return federation.DiffQuestion{}, fmt.Errorf("heads that are held: %w", err)
	}
	var v federation.Vector
	s.mu.Lock()
	for _, row := range rows {
		at := row.Version
		if f := s.portals[row.Portal]; f != nil && !f.truncated && row.Portal != s.own && (len(f.sources) < enoughSources || f.fails > 0) {
			at = f.got // who has the newest is a source of it
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

// diff compares heads with a portal: it takes what is newer there and tells it
// what is newer here.
func (s *Syncer) diff(ctx context.Context, portal record.PortalID) error {
	q, err := s.vector(ctx)
	if err != nil {
		return err
	}
	q.Bare = s.summing()
	a, err := s.ask(ctx, portal, http.MethodPost, "/peering/v1/heads/diff", q, shortTimeout, federation.MaxAnswer+64<<10)
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
	s.hintBehind(ctx, portal, d.Behind)
	if d.More && len(d.Heads) > 0 {
		s.mu.Lock()
		s.diffSoonLocked(portal, s.peer(portal))
		s.mu.Unlock()
	}
	return nil
}

// runRounds compares heads with others every minute: with one that is there and
// one that may be back, with all when they are few.
func (s *Syncer) runRounds(ctx context.Context) {
	first := true
	for {
		s.upkeep(ctx)
		s.round(ctx, first)
		first = false
		if !clock.Sleep(ctx, s.jitter(roundEvery)) {
			return
		}
	}
}

func (s *Syncer) round(ctx context.Context, first bool) {
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
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, list := range [][]record.PortalID{s.sampleLocked(up, n), s.sampleLocked(down, max(1, n-1))} {
		for _, id := range list {
			s.diffSoonLocked(id, s.peer(id))
		}
	}
}

// sampleLocked returns n of list by chance, all when there are no more; the
// caller holds mu.
func (s *Syncer) sampleLocked(list []record.PortalID, n int) []record.PortalID {
	s.rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:min(n, len(list))]
}

// staleKept is for how long agents of a portal are kept whose head has ended.
const staleKept = 7 * 24 * time.Hour

// upkeep drops what is kept of portals that are denied or long gone, and goes
// on with logs that are not whole.
func (s *Syncer) upkeep(ctx context.Context) {
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
		gone := dropped(d) || now.UnixMilli()-row.Expires > staleKept.Milliseconds()
		if gone {
			s.drop(ctx, row.Portal)
			continue
		}
		if row.Expires <= now.UnixMilli() || !d.Take {
			continue
		}
		s.mu.Lock()
		f := s.follow(row.Portal)
		if f != nil && f.head.Version.Compare(row.Version) < 0 {
			f.head, f.sources = row, nil // it came on another way
		}
		if f != nil && f.got != f.head.Version && !f.truncated || f != nil && len(f.lacking) > 0 && now.After(f.repairAt) {
			s.wantLocked(row.Portal, f)
		}
		s.mu.Unlock()
	}
}

// Drop forgets at once what is held of a portal that may not be shown any more:
// an operator denied it. What a gate must remember stays, and a pull that is
// under way ends.
func (s *Syncer) Drop(ctx context.Context, portal record.PortalID) error {
	s.callOff(portal)
	n, _, err := s.Replica.Holding(ctx, portal)
	if err != nil {
		return err
	}
	s.mu.Lock()
	f := s.portals[portal]
	clean := f == nil || f.got == record.Version{}
	s.mu.Unlock()
	if n == 0 && clean {
		return nil
	}
	if err := s.forget(ctx, portal); err != nil {
		return err
	}
	s.report(ctx, portal)
	return nil
}

// drop is Drop that is tried again later when it fails.
func (s *Syncer) drop(ctx context.Context, portal record.PortalID) {
	if err := s.Drop(ctx, portal); err != nil && ctx.Err() == nil {
		s.Log.Error("a portal not dropped; it is tried again", "portal", portal, "error", err)
	}
}

// forget drops a portal's agents, here and in the directory.
func (s *Syncer) forget(ctx context.Context, portal record.PortalID) error {
	s.mu.Lock()
	if f := s.portals[portal]; f != nil {
		f.nothingLeft()
	}
	s.mu.Unlock()
	if err := s.Replica.Drop(ctx, portal); err != nil {
		return err
	}
	s.Directory.Clear(portal)
	return nil
}

// nothingLeft notes, before it happens, that what is held is let go; the caller
// holds Syncer.mu.
func (f *followed) nothingLeft() {
	f.drops++
	f.got, f.lacking = record.Version{}, nil
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
