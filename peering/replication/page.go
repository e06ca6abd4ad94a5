package replication

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/record"
)

const (
	// batchSize is how many entries are verified and stored in one transaction.
	batchSize = 1024
	// maxChanged bounds the entries of a pull that wait in memory until the directory gets them; with more,
	// the directory gets all of them from the Replica.
	maxChanged = 2048
	// showBatch is how many records one call of Directory.Put passes.
	showBatch = 1024
	// maxSpans bounds the stored spans of one log; the oldest is dropped.
	maxSpans = 64
	// Omitted is the reason of a fault in the registry: a portal passed a log on without a record that the
	// log's head proves to exist.
	Omitted = "omitted"
)

// span is the piece of a log that one answer of a source contained: all entries with a seq above after and
// up to last, if the source is honest.
type span struct {
	source      record.PortalID
	epoch       int64
	after, last int64
}

// signedHead is a head and the hash of its record.
type signedHead struct {
	*record.Head
	sum record.Hash
}

// pull is one attempt to pull a portal's log from one source. Only the goroutine of its puller uses it.
type pull struct {
	*puller
	source    record.PortalID
	limits    federation.Decision
	from      *record.Version // position to start from; nil for the stored one
	gate      *record.Gate
	start, at record.Version // position at the start, and after the last entry
	dropsThen int            // value of portal.drops at the start
	cover     signedHead     // the head in the last answer
	// log is the tree of the entries of this pull, nil when the pull does not begin with the first entry.
	log *record.Tree
	// missing holds the leaves (key and hash) of the head that have no record here.
	missing  map[record.Hash]record.Hash
	changed  []*record.Record
	overflow bool    // changed is incomplete: read the Replica instead
	fresh    []int64 // seqs of the agents that were not held before
	agents   int     // agents held at the start plus entries taken since
	bytes    int64   // bytes of the same records
}

// runPull pulls the log from one source. After an error it discards the cached tree of the portal, because
// the entries stored so far are not in that tree.
func (p *pull) runPull(ctx context.Context) outcome {
	o, err := p.takePages(ctx)
	if err != nil { // the entries kept so far are not in the tree
		p.s.Trees.Forget(p.id)
		return failedBy(fmt.Errorf("from %s: %w", p.source, err))
	}
	return o
}

// takePages pulls the log page by page. Each page is verified and stored before the next is requested, so a
// pull that is interrupted continues at the last one.
func (p *pull) takePages(ctx context.Context) (outcome, error) {
	if err := p.beginPull(ctx); err != nil {
		return outcome{}, err
	}
	for more := true; more; {
		var err error
		if more, err = p.takePage(ctx); err != nil {
			return outcome{}, err
		}
	}
	ok, err := p.checkTree(ctx)
	if err != nil {
		return outcome{}, err
	}
	if !ok {
		p.noteMismatch()
		return outcome{}, errMismatch
	}
	return p.completeLog(ctx)
}

// beginPull reads the position to start from and the size of the records held. It returns errTooMuch when
// those already exceed the quota.
func (p *pull) beginPull(ctx context.Context) (err error) {
	p.s.mu.Lock()
	p.dropsThen, p.overflow = p.drops, p.beside
	p.missing = maps.Clone(p.part.missing)
	p.s.mu.Unlock()
	if p.gate, err = record.NewGate(p.s.Self.Network(), logMemory{p.s.Replica, p.id}); err != nil {
		return err
	}
	if p.from != nil {
		if err := p.s.Replica.SetPosition(ctx, p.id, *p.from); err != nil {
			return err
		}
	}
	if p.start, err = p.s.Replica.Position(ctx, p.id); err != nil {
		return err
	}
	if p.at = p.start; p.start.Seq == 0 {
		p.log = new(record.Tree)
	}
	return p.countHeld(ctx)
}

// countHeld reads from the Replica how many records and bytes are held. It returns errTooMuch when they
// exceed the quota.
func (p *pull) countHeld(ctx context.Context) (err error) {
	if p.agents, p.bytes, err = p.s.Replica.Holding(ctx, p.id); err != nil {
		return err
	}
	if p.isOverQuota() {
		return errTooMuch
	}
	return nil
}

func (p *pull) isOverQuota() bool {
	return p.agents > p.limits.MaxAgents || p.bytes > p.limits.MaxBytes
}

// takePage requests the next page of the log, verifies and stores it, and moves the stored position. more
// is true if the source has further pages.
func (p *pull) takePage(ctx context.Context) (more bool, err error) {
	leave, err := p.s.work.enterSlot(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	path := fmt.Sprintf("/peering/v1/portals/%s/log?epoch=%d&after=%d&limit=%d", p.id, p.at.Epoch, p.at.Seq,
		federation.MaxEntries)
	a, err := p.s.askPortal(ctx, p.source, http.MethodGet, path, nil, longTimeout, maxLong)
	if err != nil {
		return false, err
	}
	first, entries, err := readLines(a, federation.MaxEntries)
	if err != nil {
		p.s.Registry.Fault(p.source, "malformed")
		return false, err
	}
	if p.cover, err = p.s.takeFirst(ctx, p.id, p.source, first); err != nil {
		return false, err
	}
	if p.cover.Count > int64(p.limits.MaxAgents) {
		return false, errTooMuch
	}
	if p.at.Epoch != p.cover.Epoch {
		p.at, p.log = record.Version{Epoch: p.cover.Epoch}, new(record.Tree)
	}
	before := p.at.Seq
	reader := record.ReadLog(p.cover.Head, p.at.Seq)
	for chunk := range slices.Chunk(entries, batchSize) {
		if err := p.keepEntries(ctx, reader, chunk); err != nil {
			return false, err
		}
	}
	more = a.Header.Get("Agentsite-More") == "true"
	if more && p.at.Seq <= before {
		p.s.Registry.Fault(p.source, "malformed")
		return false, errors.New("the log goes on without an end")
	}
	p.noteSpan(before, more)
	if more || p.at != p.start {
		return more, p.s.Replica.SetPosition(ctx, p.id, p.at)
	}
	return more, nil
}

// noteSpan records the span of the log that the last answer covered, so that blameOmissions can find out
// later whether it was complete.
func (p *pull) noteSpan(after int64, more bool) {
	sp := span{p.source, p.cover.Epoch, after, p.at.Seq}
	if !more {
		sp.last = p.cover.Seq
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.pull.spans = append(p.pull.spans[max(0, len(p.pull.spans)-maxSpans+1):], sp)
}

// keepEntries verifies entries of the log, stores the valid ones in one transaction, and moves p.at behind
// all of them. An invalid entry is skipped and counted as a fault of the source.
func (p *pull) keepEntries(ctx context.Context, reader *record.LogReader, wires [][]byte) error {
	kept := 0
	results, err := p.admitEntries(ctx, wires)
	if err != nil {
		return err
	}
	for i, res := range results {
		if res.Err == nil {
			if res.Fresh {
				kept++
				p.noteEntry(res.Record)
			}
			if err := reader.Next(res.Record); err != nil {
				p.s.Registry.Fault(p.source, string(record.NotConsistent))
				p.noteKept(kept)
				return err
			}
			p.applyEntry(res.Record)
			p.at.Seq = max(p.at.Seq, reader.After())
			continue
		}
		if err := p.s.blameSource(ctx, p.id, p.source, res.Err); err != nil {
			p.noteKept(kept)
			return err
		}
		// The seq of the invalid entry is unverified. If it is false, records will be missing and checkTree
		// finds that.
		if r, err := record.Open(p.s.Self.Network(), wires[i]); err == nil && r.Seq < p.cover.Seq {
			p.at.Seq = max(p.at.Seq, r.Seq)
		}
	}
	p.noteKept(kept)
	if p.isOverQuota() {
		return p.countHeld(ctx) // exact count: some entries replaced others
	}
	return nil
}

// agentEnd is the suffix of every valid agent record: a cheap test of its type before decoding.
var agentEnd = []byte(`","t":"` + string(record.TypeAgent) + `"}`)

// admitEntries admits agent records through the gate, which stores the valid ones in one transaction. The
// result has one element for each wire, in the same order; err is an internal failure.
func (p *pull) admitEntries(ctx context.Context, wires [][]byte) ([]record.Result, error) {
	results := make([]record.Result, len(wires))
	list, places := make([][]byte, 0, len(wires)), make([]int, 0, len(wires))
	for i, wire := range wires {
		if !bytes.HasSuffix(wire, agentEnd) {
			results[i].Err = &record.Refused{Reason: record.NotConsistent, Text: "a log holds agents of one portal"}
			continue
		}
		list, places = append(list, wire), append(places, i)
	}
	admitted, err := p.gate.AdmitAll(ctx, list, clock.Now())
	if err != nil {
		return nil, err
	}
	for i, res := range admitted {
		results[places[i]] = res
	}
	return results, nil
}

// noteEntry counts an entry that was not held before and keeps it for the directory.
func (p *pull) noteEntry(r *record.Record) {
	p.agents++
	p.bytes += int64(len(r.Wire))
	if !r.Tombstone() {
		p.fresh = append(p.fresh, r.Seq)
	}
	if p.overflow = p.overflow || len(p.changed) >= maxChanged; p.overflow {
		p.changed = nil
		return
	}
	p.changed = append(p.changed, r)
}

// applyEntry adds a verified entry to the tree of this pull; its record is no longer missing.
func (p *pull) applyEntry(r *record.Record) {
	delete(p.missing, keyOf(r))
	if p.log != nil {
		p.log.Apply(r)
	}
}

// noteKept records that this pull stored n records that no complete head covers yet. A later pull does not
// receive them again, so it has to read them from the Replica for the directory.
func (p *pull) noteKept(n int) {
	if n == 0 {
		return
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.beside = true
}

func keyOf(r *record.Record) record.Hash {
	if a, ok := r.Body.(*record.Agent); ok {
		return record.AgentKey(a.AgentID())
	}
	return record.Hash{}
}

// checkTree reports whether the records held have the root hash of the head, except for the missing ones.
// If they do not, but the entries of a pull from the beginning do, all other records held are deleted.
func (p *pull) checkTree(ctx context.Context) (bool, error) {
	if p.overflow { // p.changed lacks entries, so the tree has to be built again
		p.s.Trees.Forget(p.id)
	}
	ok, err := p.s.Trees.Use(ctx, p.cover.Head, p.changed, p.missing, nil)
	if err != nil || ok || p.log == nil {
		return ok, err
	}
	for key, hash := range p.missing {
		p.log.Set(key, hash)
	}
	if !p.cover.Describes(p.log) {
		return false, nil
	}
	if _, err := p.dropOthers(ctx, p.log); err != nil {
		return false, err
	}
	return p.s.Trees.Use(ctx, p.cover.Head, nil, p.missing, nil)
}

// noteMismatch records that the log of the source does not have the root hash of its head.
func (p *pull) noteMismatch() {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.part.doubtful, p.part.doubted = p.source, p.cover.Version()
	if p.log != nil {
		p.part.askedWhole.noteAsked(p.source, clock.Now())
	}
}

// completeLog marks the log as complete up to the head of the pull, except for the missing records, and
// passes the new records to the directory. It returns errDropped when records were deleted meanwhile.
func (p *pull) completeLog(ctx context.Context) (outcome, error) {
	o, head := outcome{event: logWhole}, p.cover.Version()
	at := head
	if len(p.missing) > 0 {
		o.event, at = logPartial, p.at // this portal cannot serve the whole log
	}
	turn, ok, err := p.s.Replica.Complete(ctx, p.id, p.at, at, federation.Whole{Version: head, Hash: p.cover.sum})
	if err != nil {
		return o, err
	}
	if !ok {
		return o, errDropped
	}
	if err := p.showRecords(ctx, turn); err != nil {
		return o, err
	}
	p.s.mu.Lock()
	if p.drops != p.dropsThen {
		p.s.mu.Unlock()
		p.s.Directory.Clear(p.id) // the directory may hold records that were deleted
		return o, errors.Join(errDropped, p.s.Replica.SetPosition(ctx, p.id, record.Version{}))
	}
	liars := p.blameOmissions()
	if p.part.doubtful != "" && p.part.doubtful != p.source && o.event == logWhole {
		p.s.peers.distrustSource(p.part.doubtful)
	}
	if p.log != nil && o.event == logPartial {
		p.part.askedWhole.noteAsked(p.source, clock.Now())
	}
	p.noteWhole(head, turn+1, p.missing)
	p.s.mu.Unlock()
	for _, liar := range liars {
		p.s.Registry.Fault(liar, Omitted)
		p.s.peers.distrustSource(liar)
		p.s.Log.Warn("a portal passed a log on and left something out", "portal", liar, "log", p.id)
	}
	p.s.Directory.Changed(p.id)
	return o, nil
}

// blameOmissions returns the sources that left out an entry: this pull found an entry that was not held
// before and lies inside an earlier span of another source. Seq only grows, so that entry was in the log
// when the span was sent. The caller holds Syncer.mu.
func (p *pull) blameOmissions() (liars []record.PortalID) {
	for _, sp := range p.pull.spans {
		if sp.source == p.source || sp.epoch != p.cover.Epoch || slices.Contains(liars, sp.source) {
			continue
		}
		if slices.ContainsFunc(p.fresh, func(seq int64) bool { return seq > sp.after && seq <= sp.last }) {
			liars = append(liars, sp.source)
		}
	}
	return liars
}

// showRecords passes the records that the head covers now to the directory: p.changed if the directory has
// seen everything before turn, otherwise all since the turn it has not seen. turn is the turn of the
// Replica that has just ended.
func (p *pull) showRecords(ctx context.Context, turn int64) error {
	p.s.mu.Lock()
	notified := p.notifiedTurn
	p.s.mu.Unlock()
	if notified != turn || p.overflow {
		return p.showSince(ctx, notified)
	}
	if len(p.changed) > 0 {
		p.s.Directory.Put(p.id, p.changed)
	}
	return nil
}

// showSince passes the covered records that the Replica got in turn since or later to the directory, in
// batches of showBatch. For 0 the directory reads everything again.
func (p *pull) showSince(ctx context.Context, since int64) error {
	if since == 0 {
		p.s.Directory.Clear(p.id)
		return nil
	}
	var list []*record.Record
	err := p.s.Replica.Covered(ctx, p.id, since, func(wire []byte) bool {
		if r, err := record.Open(p.s.Self.Network(), wire); err == nil {
			list = append(list, r)
		}
		if len(list) == showBatch {
			p.s.Directory.Put(p.id, list)
			list = nil
		}
		return ctx.Err() == nil
	})
	if len(list) > 0 {
		p.s.Directory.Put(p.id, list)
	}
	if err == nil {
		err = ctx.Err()
	}
	return err
}

// logMemory is the memory of a gate that admits entries of one portal's log. All other portals are unknown
// to it, so that a log cannot bring in records of another portal.
type logMemory struct {
	federation.Replica
	portal record.PortalID
}

// Standing implements record.Memory; the zero Standing makes the gate refuse records of other portals.
func (m logMemory) Standing(ctx context.Context, id record.PortalID) (record.Standing, error) {
	if id != m.portal {
		return record.Standing{}, nil
	}
	return m.Replica.Standing(ctx, id)
}
