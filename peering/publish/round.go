package publish

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/hub"
	"agentsite/internal/record"
	"agentsite/peering/translate"
)

const (
	// publishBatch is how many agents are signed and stored in one transaction, so that other writes do not
	// wait long.
	publishBatch = 512
	// maxDrain bounds how long continuing changes may delay a head.
	maxDrain = 10 * time.Second
	// renewEvery is the interval of searches for records past half their life. One search renews at most
	// 1/renewShare of all records (but at least leastRenew), so that records published together are not
	// renewed together for ever.
	renewEvery = lease
	renewShare = 96
	leastRenew = 64
)

// runRound updates the log from the directory and signs a head if needed. After an error it may be called
// again.
func (p *Publisher) runRound(ctx context.Context) error {
	now, began := clock.Now(), time.Now()
	if !p.loaded {
		if err := p.loadState(ctx, now); err != nil {
			return err
		}
	}
	// Before the first head is signed, other portals are asked whether they hold a newer one. Otherwise the
	// new head would be the newest, and they would keep records of agents that are newer than those here.
	if !p.asked && p.head != nil && p.cfg.Network != nil {
		if v := p.cfg.Network.NewestHead(ctx); v != (record.Version{}) {
			p.Overtaken(v)
		}
	}
	p.asked = true
	wanted := p.wanted
	p.wanted = time.Time{}
	err := p.updateLog(ctx, now, began)
	if err != nil && p.wanted.IsZero() {
		p.wanted = wanted
	}
	return err
}

func (p *Publisher) updateLog(ctx context.Context, now, began time.Time) error {
	if err := p.beginEpoch(now); err != nil {
		return err
	}
	if err := p.readCard(); err != nil {
		return err
	}
	// The outbox is processed before compareAgents, which would find the same agents again.
	for time.Since(began) < maxDrain {
		numbers, ids, err := p.cfg.Source.Unpublished(ctx, publishBatch)
		if err != nil {
			return fmt.Errorf("read what is to be published: %w", err)
		}
		if len(ids) == 0 {
			break
		}
		if err := p.publishAgents(ctx, ids, false); err != nil {
			return err
		}
		if err := p.cfg.Source.Published(ctx, numbers); err != nil {
			return fmt.Errorf("note what is published: %w", err)
		}
	}
	if p.unsure {
		if err := p.compareAgents(ctx, now); err != nil {
			return err
		}
	}
	for len(p.todo) > 0 {
		n := min(len(p.todo), publishBatch)
		if err := p.publishAgents(ctx, p.todo[:n], false); err != nil {
			return err
		}
		p.todo = p.todo[n:]
	}
	if err := p.renewRecords(ctx, now); err != nil {
		return err
	}
	return p.lead(ctx)
}

// readCard reads the keys in this portal's card if it changed. Records signed by a key that is no longer in
// the card are signed again, because the Replica has deleted them.
func (p *Publisher) readCard() error {
	wire := p.cfg.Signer.Card()
	if bytes.Equal(wire, p.card) {
		return nil
	}
	r, err := record.Open(p.cfg.Signer.Network(), wire)
	if err != nil {
		return fmt.Errorf("read the own card: %w", err)
	}
	card, ok := r.Body.(*record.Card)
	if !ok {
		return fmt.Errorf("a %s is where the card is", r.Type)
	}
	p.ring, p.card = card.Ring(), bytes.Clone(wire)
	p.mu.Lock()
	defer p.mu.Unlock()
	for local, e := range p.entries {
		if !p.ring.Has(e.key) && e.content != (record.Hash{}) {
			e.content = record.Hash{}
			p.todo = append(p.todo, agentID(local))
		}
	}
	return nil
}

// renewRecords signs records again that have lived for more than half their life, a part of them at a time,
// and all that have lived for three quarters. It does nothing before p.renewAt.
func (p *Publisher) renewRecords(ctx context.Context, now time.Time) error {
	if time.Now().Before(p.renewAt) {
		return nil
	}
	due, next := p.listDying(clock.Milli(now))
	for batch := range slices.Chunk(due, publishBatch) {
		if err := p.publishAgents(ctx, batch, true); err != nil {
			return err
		}
	}
	p.renewAt = time.Now().Add(next)
	return nil
}

// listDying returns the directory ids of agents with records that have to be renewed now, the first to
// expire first, and the time until the next search. now is in Unix ms. Expired tombstones are forgotten.
func (p *Publisher) listDying(now int64) (due []string, next time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	soon, urgent := now+renewEvery.Milliseconds(), 0
	var list []string
	for local, e := range p.entries {
		quarter := (e.expires - e.issued) / 4
		if e.deleted && e.until <= now { // the tombstone is no longer needed
			p.logStart = max(p.logStart, e.version.Seq+1)
			delete(p.entries, local)
			continue
		}
		if e.deleted && e.expires >= e.until {
			continue
		}
		if at := e.issued + 3*quarter; at <= now {
			urgent++
		} else {
			soon = min(soon, at)
		}
		if now >= e.issued+2*quarter {
			list = append(list, local)
		}
	}
	slices.SortFunc(list, func(a, b string) int {
		return cmp.Or(cmp.Compare(p.entries[a].expires, p.entries[b].expires), strings.Compare(a, b))
	})
	list = list[:min(len(list), max(urgent, leastRenew, len(p.entries)/renewShare))]
	for _, local := range list {
		due = append(due, agentID(local))
	}
	return due, time.Duration(soon-now) * time.Millisecond
}

// agentID returns the id in the directory for an id in records, the inverse of translate.LocalID.
func agentID(local string) string { return strings.ToUpper(local) }

// pen holds the key and the time for one batch of signatures. Times are in Unix ms.
type pen struct {
	key   ed25519.PrivateKey
	now   int64
	until int64 // expiry of the key, in Unix ms
}

func (p *Publisher) newPen() (pen, error) {
	now := clock.Now()
	_, key, until, err := p.cfg.Signer.Key(now)
	if err != nil {
		return pen{}, fmt.Errorf("key to sign with: %w", err)
	}
	return pen{key, clock.Milli(now), clock.Milli(until)}, nil
}

// nextHeader returns the header of the next record, with a version that was never used. It derives seq from
// the clock for each record, because the machine may be reset to an older state while it runs. expires is
// in Unix ms and limited by the key.
func (p *Publisher) nextHeader(w pen, expires int64) record.Header {
	p.seq = max(p.seq+1, (w.now-p.epoch)*seqPerMilli)
	return record.Header{Portal: p.cfg.Signer.ID(), Epoch: p.epoch, Seq: p.seq, Issued: w.now,
		Expires: min(expires, w.until)}
}

// step is a signed record to be stored; record is nil if none is needed.
type step struct {
	local, name string
	content     record.Hash
	until       int64
	record      *record.Record
}

// publishAgents signs and stores the current state of the agents with these directory ids if it differs
// from the published one, or in any case with renew. Agents that do not exist or are hidden get a
// tombstone. An agent with a record that would be invalid is left out, see noteRefusal. After an error the
// stored state is unknown.
func (p *Publisher) publishAgents(ctx context.Context, ids []string, renew bool) error {
	agents, err := p.cfg.Source.AgentsByIDs(ctx, ids)
	if err != nil {
		return fmt.Errorf("read agents to publish: %w", err)
	}
	byID := make(map[string]*hub.Agent, len(agents))
	for i := range agents {
		byID[agents[i].ID] = &agents[i]
	}
	w, err := p.newPen()
	if err != nil {
		return err
	}
	var steps []step
	for _, id := range ids {
		s, err := p.signRecord(ctx, w, id, byID[id], renew)
		if err != nil {
			return err
		}
		if s.record != nil {
			steps = append(steps, s)
		}
	}
	return p.keepSteps(ctx, steps)
}

// signRecord signs the record or tombstone of one agent or package; a is nil if there is no such agent. The step has no
// record if none is needed.
func (p *Publisher) signRecord(ctx context.Context, w pen, id string, a *hub.Agent, renew bool) (step, error) {
	s := step{local: translate.LocalID(id)}
	e := p.entries[s.local]
	if r := p.bodyOf(ctx, id, a, clock.FromMilli(w.now)); r != nil {
		s.name = r.Name
		if s.content = contentOf(r); e != nil && !e.deleted && e.content == s.content && !renew {
			p.noteRefusal(s.local, "")
			return s, nil
		}
		r.Header = p.nextHeader(w, w.now+agentLife.Milliseconds())
		rec, err := record.Sign(p.cfg.Signer.Network(), r, w.key)
		if err == nil {
			p.noteRefusal(s.local, "")
			s.record = rec
			return s, nil
		}
		// An invalid record is a bug; it must neither block the other agents nor be published.
		if record.ReasonOf(err) == "" {
			return s, err
		}
		p.cfg.Log.Error("an agent is not published: its record would be refused", "agent", id, "name", s.name, "error",
			err)
		p.noteRefusal(s.local, "This portal could not write down what it is: "+err.Error()+". Tell its operator.")
	} else {
		p.noteRefusal(s.local, "")
	}
	if e == nil || e.deleted && !renew && e.content != (record.Hash{}) {
		return s, nil
	}
	if s.until = e.until; !e.deleted {
		s.until = max(e.expires, w.now) + tombstoneGrace.Milliseconds()
	}
	if s.until <= w.now {
		return s, nil
	}
	s.content = tombstone
	gone := &record.Agent{ID: s.local, Deleted: true,
		Header: p.nextHeader(w, min(s.until, w.now+tombstoneLife.Milliseconds()))}
	var err error
	s.record, err = record.Sign(p.cfg.Signer.Network(), gone, w.key)
	return s, err
}

// tombstone is the value of entry.content for a valid tombstone.
var tombstone = record.Hash{1}

// noteRefusal records why an agent's record cannot be signed, for display to its owner; "" if it can.
func (p *Publisher) noteRefusal(local, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if why == "" {
		delete(p.refused, local)
		return
	}
	p.refused[local] = why
}

// keepSteps stores the records through the gate and updates the entries. The gate checks them like those of
// other portals, except for the signatures. Refused records are left out; if all are refused it returns an
// error, because the cause is then in the batch.
func (p *Publisher) keepSteps(ctx context.Context, steps []step) error {
	if len(steps) == 0 {
		return nil
	}
	list := make([]*record.Record, len(steps))
	for i, s := range steps {
		list[i] = s.record
	}
	results, err := p.cfg.Gate.AdmitSigned(ctx, list, clock.Now())
	if err != nil {
		p.loaded = false
		return err
	}
	var failed error
	refused := 0
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, res := range results {
		s := steps[i]
		switch why := record.ReasonOf(res.Err); {
		case res.Err == nil:
			p.entries[s.local] = &entry{content: s.content, hash: s.record.Hash, version: s.record.Version(),
				issued: s.record.Issued, expires: s.record.Expires,
				key: s.record.Key, deleted: s.record.Tombstone(), until: s.until}
			if end := time.Now().Add(time.Duration(s.record.Expires-s.record.Issued) * time.Millisecond / 2); end.Before(p.renewAt) {
				p.renewAt = end
			}
			p.tree.Apply(s.record)
			p.dirty = true
		case why == "":
			failed, p.loaded = res.Err, false // unknown whether it was stored: read the state again
		case why == record.Stale, why == record.Equivocation:
			// The version was used before: begin a new epoch.
			failed, p.floor = res.Err, p.epoch+1
		default:
			refused++
			p.cfg.Log.Error("an agent is not published: its record was refused", "agent", s.local, "name", s.name,
				"error", res.Err)
			if refused == len(steps) {
				failed = res.Err
			}
		}
	}
	if failed != nil {
		return fmt.Errorf("store what is published: %w", failed)
	}
	return nil
}
