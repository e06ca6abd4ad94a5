package replication

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/record"
)

const (
	// pullGap is the minimum time between two pulls of one portal, so that hints cannot force more.
	pullGap = time.Second
	// batchSize is how many entries are verified and kept at once.
	batchSize = 1024
	// maxChanged bounds the entries of a pull that wait in memory for the directory; beyond it they are
	// read again from the Replica.
	maxChanged = 2048
	// showBatch is how many records the directory receives at once.
	showBatch = 1024
	// overQuotaFor is how long a portal over its quota in bytes is not pulled again; the size is known
	// only after reading the records.
	overQuotaFor = time.Hour
	// distrusted is how long other sources are preferred to a portal that omitted a record.
	distrusted = time.Hour
)

var (
	// errBehind is returned for a source with an older head than the one held.
	errBehind = errors.New("it has an older head")
	// errForked ends a pull: the portal is quarantined now.
	errForked = errors.New("the portal signed two records of one version")
	// errTooMuch ends a pull: the portal's quota is exhausted.
	errTooMuch = errors.New("the portal has more than its quota")
	// errUnwanted ends a pull: a rule or the policy forbids it.
	errUnwanted = errors.New("its records are not taken")
	// errCalledOff ends a pull because the decision on the portal has changed.
	errCalledOff = errors.New("it was called off")
	// errDropped ends a pull during which the records held were deleted.
	errDropped = errors.New("what was held of the portal was let go meanwhile")
)

// span is a piece of a log that a source sent: the entries with a seq above after and up to last,
// complete if the source is honest.
type span struct {
	source      record.PortalID
	epoch       int64
	after, last int64
}

// pull is one pull of a portal's log from one source.
type pull struct {
	*portal
	source    record.PortalID
	limits    federation.Decision
	start, at record.Version // position at the start, and now
	dropsThen int            // portal.drops at the start
	cover     signedHead     // of the last piece
	changed   []*record.Record
	overflow  bool  // changed would be too long, or is incomplete
	agents    int   // held at the start, and entries taken since
	bytes     int64 // the same
}

// signedHead is a head with its hash.
type signedHead struct {
	*record.Head
	sum record.Hash
}

// pullLog asks the sources one after the other, those that sent the head first, until one of them
// completes the log.
func (s *Syncer) pullLog(ctx context.Context, p *portal) outcome {
	d := s.Registry.Decide(ctx, p.id, "")
	if !d.Take {
		return outcome{event: pullFailed, err: errUnwanted}
	}
	if s.summaryOnly(d) {
		if err := s.keepSummaryOnly(ctx, p); err != nil {
			return outcome{event: pullFailed, err: err}
		}
		return outcome{event: summaryChosen}
	}
	s.mu.Lock()
	head := p.head
	p.quota = quotaOf(d)
	s.mu.Unlock()
	if head.Count > int64(d.MaxAgents) {
		return s.dropOverQuota(ctx, p, head.Version, 0)
	}
	var tried []record.PortalID
	last := errors.New("no source has its log")
	for {
		list := s.listCandidates(p, tried)
		if len(list) == 0 {
			return outcome{event: pullFailed, err: last}
		}
		source, err := s.sources.takeSource(ctx, list)
		if err != nil {
			return outcome{event: pullFailed, err: err}
		}
		o := s.pullFrom(ctx, &pull{portal: p, source: source, limits: d})
		s.sources.leaveSource(source)
		switch {
		case errors.Is(o.err, errTooMuch):
			return s.dropOverQuota(ctx, p, head.Version, overQuotaFor)
		case o.event != pullFailed, errors.Is(o.err, errForked), ctx.Err() != nil:
			return o
		}
		tried = append(tried, source)
		last = fmt.Errorf("from %s: %w", source, o.err)
	}
}

// listCandidates returns the portals that may have a portal's log and were not tried: those that sent its
// head, then the portal itself; unreachable and incomplete sources come last.
func (s *Syncer) listCandidates(p *portal, tried []record.PortalID) []record.PortalID {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := clock.Now()
	list := slices.Clone(p.sources)
	if !slices.Contains(list, p.id) {
		list = append(list, p.id)
	}
	list = slices.DeleteFunc(list, func(id record.PortalID) bool { return slices.Contains(tried, id) })
	rank := func(id record.PortalID) int {
		peer := s.peerOf(id)
		switch {
		case now.Before(peer.distrusted):
			return 2
		case peer.down, now.Before(peer.rest):
			return 1
		}
		return 0
	}
	slices.SortStableFunc(list, func(a, b record.PortalID) int { return rank(a) - rank(b) })
	return list
}

// pullFrom pulls a log from one source, piece by piece, until it is complete.
func (s *Syncer) pullFrom(ctx context.Context, p *pull) outcome {
	o, err := s.pullPieces(ctx, p)
	if err != nil { // the entries kept so far are not in the tree
		s.Trees.Forget(p.id)
		return outcome{event: pullFailed, err: err}
	}
	return o
}

func (s *Syncer) pullPieces(ctx context.Context, p *pull) (o outcome, err error) {
	s.mu.Lock()
	p.dropsThen, p.overflow = p.drops, p.beside
	s.mu.Unlock()
	if p.start, err = s.Replica.Position(ctx, p.id); err != nil {
		return o, err
	}
	if p.agents, p.bytes, err = s.Replica.Holding(ctx, p.id); err != nil {
		return o, err
	}
	if p.overMuch() { // the quota shrank
		return o, errTooMuch
	}
	p.at = p.start
	for more := true; more; {
		err := s.work.runTask(ctx, func() error {
			path := fmt.Sprintf("/peering/v1/portals/%s/log?epoch=%d&after=%d&limit=%d", p.id, p.at.Epoch, p.at.Seq,
				federation.MaxEntries)
			a, err := s.askPortal(ctx, p.source, http.MethodGet, path, nil, longTimeout, maxLong)
			if err != nil {
				return err
			}
			more, err = s.takePiece(ctx, p, a)
			return err
		})
		if err != nil {
			return o, err
		}
	}
	s.mu.Lock()
	lacking := p.part.missing
	for _, r := range p.changed {
		delete(lacking, keyOf(r))
	}
	s.mu.Unlock()
	if p.overflow { // so they are not in p.changed
		s.Trees.Forget(p.id)
	}
	whole, err := s.Trees.Use(ctx, p.cover.Head, p.changed, lacking, nil)
	if err != nil {
		return o, err
	}
	if whole && (len(lacking) == 0 || clock.Now().Before(p.part.repairAt)) {
		return s.completePull(ctx, p, lacking)
	}
	return s.repairLog(ctx, p)
}

func keyOf(r *record.Record) record.Hash {
	if a, ok := r.Body.(*record.Agent); ok {
		return record.AgentKey(a.AgentID())
	}
	return record.Hash{}
}

// takeFirst admits the head that an answer about a portal begins with.
func (s *Syncer) takeFirst(ctx context.Context, portal, source record.PortalID, wire []byte) (signedHead, error) {
	claim, err := record.Open(s.Self.Network(), wire)
	if err != nil || claim.Type != record.TypeHead || claim.Portal != portal {
		s.Registry.Fault(source, string(record.NotConsistent))
		return signedHead{}, errors.New("the answer does not begin with a head of the portal")
	}
	standing, err := s.Replica.Standing(ctx, portal)
	if err != nil {
		return signedHead{}, err
	}
	if claim.Version().Compare(standing.Head) < 0 {
		return signedHead{}, errBehind
	}
	r, fresh, err := s.admitHead(ctx, portal, wire)
	if err != nil {
		switch why := record.ReasonOf(err); why {
		case record.Equivocation:
			s.handleFork(ctx, portal)
			return signedHead{}, errForked
		case record.Stale:
			return signedHead{}, errBehind
		case "", record.Expired, record.Quarantined, record.NoPortal:
		case record.NoKey:
			s.fetchCard(ctx, portal, source) // for the next try
		default:
			s.Registry.Fault(source, string(why))
		}
		return signedHead{}, err
	}
	head := r.Body.(*record.Head)
	s.requestPull(ctx, source, head, fresh)
	return signedHead{head, r.Hash}, nil
}

// fetchCard requests a newer card of a portal from a source that has a head signed by an unknown key.
func (s *Syncer) fetchCard(ctx context.Context, portal, source record.PortalID) {
	a, err := s.askPortal(ctx, source, http.MethodGet, "/peering/v1/portals/"+string(portal)+"/head", nil, shortTimeout,
		maxShort)
	var t federation.Told
	if err == nil {
		err = readAnswer(a, &t)
	}
	if err == nil {
		err = s.takeCard(ctx, portal, t.Card)
	}
	if err != nil {
		s.Log.Debug("no newer card", "portal", portal, "error", err)
	}
}

// takePiece admits a piece of a log, and reports whether more follow.
func (s *Syncer) takePiece(ctx context.Context, p *pull, a *federation.Answer) (more bool, err error) {
	first, entries, err := readLines(a, federation.MaxEntries)
	if err != nil {
		s.Registry.Fault(p.source, "malformed")
		return false, err
	}
	if p.cover, err = s.takeFirst(ctx, p.id, p.source, first); err != nil {
		return false, err
	}
	if p.cover.Count > int64(p.limits.MaxAgents) {
		return false, errTooMuch
	}
	if p.at.Epoch != p.cover.Epoch {
		p.at = record.Version{Epoch: p.cover.Epoch}
	}
	before := p.at.Seq
	reader := record.ReadLog(p.cover.Head, p.at.Seq)
	for chunk := range slices.Chunk(entries, batchSize) {
		if err := s.takeEntries(ctx, p, reader, chunk); err != nil {
			return false, err
		}
	}
	more = a.Header.Get("Agentsite-More") == "true"
	if more && p.at.Seq <= before {
		s.Registry.Fault(p.source, "malformed")
		return false, errors.New("the log goes on without an end")
	}
	s.mu.Lock()
	sp := span{p.source, p.cover.Epoch, before, p.at.Seq}
	if !more {
		sp.last = p.cover.Seq
	}
	p.pull.ranges = append(p.pull.ranges[max(0, len(p.pull.ranges)-63):], sp)
	s.mu.Unlock()
	if more || p.at != p.start {
		return more, s.Replica.SetPosition(ctx, p.id, p.at)
	}
	return more, nil
}

// takeEntries verifies and keeps entries of a log, and moves p.at behind them. A refused entry is
// counted and skipped.
func (s *Syncer) takeEntries(ctx context.Context, p *pull, reader *record.LogReader, wires [][]byte) error {
	kept, results, err := s.keepEntries(ctx, p.id, wires)
	if err != nil {
		return err
	}
	for i, res := range results {
		if res.Err == nil {
			if err := reader.Next(res.Record); err != nil {
				s.Registry.Fault(p.source, string(record.NotConsistent))
				return err
			}
			p.at.Seq = max(p.at.Seq, reader.After())
			continue
		}
		if err := s.blameSource(ctx, p, res.Err); err != nil {
			return err
		}
		// The claimed seq is used to continue; if it is false, a record is missing at the end.
		if r, err := record.Open(s.Self.Network(), wires[i]); err == nil && r.Seq < p.cover.Seq {
			p.at.Seq = max(p.at.Seq, r.Seq)
		}
	}
	s.keptBeside(p, len(kept))
	for _, r := range kept {
		p.bytes += int64(len(r.Wire))
	}
	p.agents += len(kept)
	if p.overMuch() {
		// Some entries replaced others: count again.
		if p.agents, p.bytes, err = s.Replica.Holding(ctx, p.id); err != nil {
			return err
		}
		if p.overMuch() {
			return errTooMuch
		}
	}
	if p.overflow = p.overflow || len(p.changed)+len(kept) > maxChanged; p.overflow {
		p.changed = nil
		return nil
	}
	p.changed = append(p.changed, kept...)
	return nil
}

// overMuch reports whether a portal's quota is exhausted.
func (p *pull) overMuch() bool { return p.agents > p.limits.MaxAgents || p.bytes > p.limits.MaxBytes }

// keptBeside notes that kept records wait for a head: a later pull has not seen them.
func (s *Syncer) keptBeside(p *pull, n int) {
	if n == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p.beside = true
}

// blameSource records a refusal in a log as a fault of its source, and returns an error when the pull cannot
// go on.
func (s *Syncer) blameSource(ctx context.Context, p *pull, err error) error {
	switch why := record.ReasonOf(err); why {
	case record.Equivocation:
		s.handleFork(ctx, p.id)
		return errForked
	case record.Quarantined:
		return errForked
	case "":
		return err
	case record.Stale, record.Expired:
		// We know more than the source, or its record is late.
	default:
		s.Registry.Fault(p.source, string(why))
	}
	return nil
}

// dropOverQuota keeps only the head of a portal with a log larger than its quota, until pause is over. A
// part of the log would be indistinguishable from a log with omissions.
func (s *Syncer) dropOverQuota(ctx context.Context, p *portal, at record.Version, pause time.Duration) outcome {
	s.mu.Lock()
	p.over.until = clock.Now().Add(pause)
	logged := p.over.logged
	p.over.logged = true
	s.mu.Unlock()
	// Its summary stays if no records are held.
	n, _, err := s.Replica.Holding(ctx, p.id)
	if err == nil && n > 0 {
		err = s.forgetAgents(ctx, p.id)
	}
	if err != nil {
		return outcome{event: pullFailed, err: err}
	}
	if !logged {
		s.Log.Warn("a portal has more agents than its quota; none are kept until it has fewer or the quota is raised",
			"portal", p.id)
	}
	return outcome{event: quotaExceeded, at: at}
}

// completePull notes that the records held add up to the head of a pull, except for the missing leaves,
// and notifies the directory.
func (s *Syncer) completePull(ctx context.Context, p *pull, missing map[record.Hash]record.Hash) (o outcome,
	err error) {
	o = outcome{event: logWhole, at: p.cover.Version()}
	at := o.at
	if len(missing) > 0 {
		o.event, at = logPartial, p.at // others may not have the log from us
	}
	turn, ok, err := s.Replica.Complete(ctx, p.id, p.at, at, federation.Whole{Version: o.at, Hash: p.cover.sum})
	if err != nil {
		return o, err
	}
	if !ok {
		return o, errDropped
	}
	s.mu.Lock()
	notified := p.notifiedTurn
	s.mu.Unlock()
	if notified == turn && !p.overflow {
		if len(p.changed) > 0 {
			s.Directory.Put(p.id, p.changed)
		}
	} else if err := s.showAgents(ctx, p.id, notified); err != nil {
		return o, err
	}
	s.mu.Lock()
	if p.drops != p.dropsThen {
		s.mu.Unlock()
		s.Directory.Clear(p.id) // the directory may hold records that were deleted
		return o, errors.Join(errDropped, s.Replica.SetPosition(ctx, p.id, record.Version{}))
	}
	p.noteWhole(o.at, turn+1, missing)
	s.mu.Unlock()
	s.Directory.Changed(p.id)
	return o, nil
}

// showAgents sends the directory the records that a head covers since a turn.
func (s *Syncer) showAgents(ctx context.Context, portal record.PortalID, since int64) error {
	if since == 0 { // the directory reads all
		s.Directory.Clear(portal)
		return nil
	}
	var list []*record.Record
	err := s.Replica.Covered(ctx, portal, since, func(wire []byte) bool {
		if r, err := record.Open(s.Self.Network(), wire); err == nil {
			list = append(list, r)
		}
		if len(list) == showBatch {
			s.Directory.Put(portal, list)
			list = nil
		}
		return ctx.Err() == nil
	})
	if len(list) > 0 {
		s.Directory.Put(portal, list)
	}
	if err == nil {
		err = ctx.Err()
	}
	return err
}
