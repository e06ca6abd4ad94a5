package publish

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/record"
	"agentsite/peering/translate"
)

// Lifetimes and limits of signed records. Other portals refuse longer lifetimes.
const (
	agentLife     = 30 * 24 * time.Hour
	tombstoneLife = 37 * 24 * time.Hour
	headLife      = 48 * time.Hour
	// tombstoneGrace is how long a tombstone stays valid after the deleted record would have expired, so
	// that portals which were offline learn of the deletion.
	tombstoneGrace = 7 * 24 * time.Hour
	// seqPerMilli is how many seq numbers there are for each millisecond since the start of the epoch. Seq
	// is at least the time in this unit, so that a database restored from a backup does not reuse a
	// published version. No portal signs that fast.
	seqPerMilli = 16

	logPage  = 4096
	logBytes = 8 << 20
)

// loadState reads this portal's own log from the Replica into p: the published agents, the newest head and
// summary, and the current seq.
func (p *Publisher) loadState(ctx context.Context, now time.Time) error {
	own := p.cfg.Signer.ID()
	standing, err := p.cfg.Replica.Standing(ctx, own)
	if err != nil {
		return fmt.Errorf("read the own standing: %w", err)
	}
	wire, err := p.cfg.Replica.Head(ctx, own)
	if err != nil {
		return fmt.Errorf("read the own head: %w", err)
	}
	l := loaded{entries: make(map[string]*entry), logStart: 1}
	if wire != nil {
		err = p.loadLog(ctx, &l, wire, now)
	} else {
		err = p.loadAnew(ctx, &l)
	}
	if err != nil {
		return fmt.Errorf("read the own log: %w", err)
	}
	if p.summary, err = p.loadSummary(ctx, l.epoch); err != nil {
		return fmt.Errorf("read the own summary: %w", err)
	}
	p.dirty = l.head == nil || l.seq > l.head.Seq
	l.seq = max(l.seq, p.summary.seq)
	if l.epoch != 0 {
		l.seq = max(l.seq, (clock.Milli(now)-l.epoch)*seqPerMilli)
	}
	p.floor = max(p.floor, standing.Head.Epoch)
	p.seq, p.logStart, p.todo, p.unsure, p.loaded = l.seq, l.logStart, nil, true, true
	p.renewAt, p.headAt = time.Time{}, time.Time{}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.epoch, p.entries, p.tree, p.head, p.refused = l.epoch, l.entries, l.tree, l.head, make(map[string]string)
	if l.head != nil {
		p.headAt = time.Now().Add(-now.Sub(clock.FromMilli(l.head.Issued)))
	}
	return nil
}

// loaded is the result of loadLog or loadAnew.
type loaded struct {
	epoch, seq int64
	logStart   int64
	entries    map[string]*entry
	tree       record.Tree
	head       *record.Record
}

// loadLog reads the log of the epoch of a head, including records that were stored after the head before a
// crash.
func (p *Publisher) loadLog(ctx context.Context, l *loaded, wire []byte, now time.Time) error {
	own := p.cfg.Signer.ID()
	r, err := record.Open(p.cfg.Signer.Network(), wire)
	if err != nil {
		return err
	}
	head, ok := r.Body.(*record.Head)
	if !ok {
		return fmt.Errorf("a %s is where the head is", r.Type)
	}
	l.head, l.epoch, l.seq, l.logStart = r, r.Epoch, r.Seq, head.LogStart
	for after := int64(0); ; {
		page, err := p.cfg.Replica.Log(ctx, own, after, logPage, logBytes)
		if err != nil {
			return err
		}
		for _, wire := range page {
			r, err := record.Open(p.cfg.Signer.Network(), wire)
			if err != nil {
				return err
			}
			a, ok := r.Body.(*record.Agent)
			if !ok || r.Seq <= after {
				return fmt.Errorf("entry %d is not in its place", r.Seq)
			}
			after = r.Seq
			l.tree.Apply(r)
			l.entries[strings.Clone(a.ID)] = entryOf(r, a) // the copy releases the record, of which a.ID is a part
		}
		if len(page) == 0 {
			l.seq = max(l.seq, after)
			break
		}
	}
	// Tombstones may have been deleted from the Replica meanwhile, so the log may be incomplete before the
	// head.
	if clock.Milli(now)-l.head.Issued > lease.Milliseconds() {
		l.logStart = max(l.logStart, l.head.Seq)
	}
	return nil
}

// loadAnew reads the records of older epochs when there is no head. The zero content makes publishAgents
// sign each of them again in a new epoch, or delete it.
func (p *Publisher) loadAnew(ctx context.Context, l *loaded) error {
	var failed error
	err := p.cfg.Replica.Agents(ctx, p.cfg.Signer.ID(), func(wire []byte) bool {
		r, err := record.Open(p.cfg.Signer.Network(), wire)
		if failed = err; err != nil {
			return false
		}
		if a, ok := r.Body.(*record.Agent); ok {
			e := entryOf(r, a)
			e.content = record.Hash{}
			l.entries[strings.Clone(a.ID)] = e
		}
		return ctx.Err() == nil
	})
	if err == nil {
		err = failed
	}
	return err
}

func entryOf(r *record.Record, a *record.Agent) *entry {
	e := &entry{hash: r.Hash, version: r.Version(), issued: r.Issued, expires: r.Expires, key: r.Key,
		deleted: a.Deleted}
	if a.Deleted {
		// It is not known whether the expiry was shortened to that of the key, so until is estimated.
		e.content = tombstone
		e.until = r.Issued + tombstoneLife.Milliseconds()
		if r.Expires < e.until && r.Expires-r.Issued > tombstoneGrace.Milliseconds() {
			e.until = r.Expires
		}
		return e
	}
	e.content = contentOf(a)
	return e
}

// contentOf returns a hash of a record's content without its header, to find out whether an agent changed.
func contentOf(a *record.Agent) record.Hash {
	bare := *a
	bare.Header = record.Header{}
	b, err := json.Marshal(&bare)
	if err != nil { // unreachable: all fields can be encoded
		return record.Hash{}
	}
	return sha256.Sum256(b)
}

// beginEpoch begins a new epoch if there is none, or if other portals hold a newer one (overtaken). It
// returns an error if the clock is before the epoch or a floor, because seq and epoch are derived from the
// time.
func (p *Publisher) beginEpoch(now time.Time) error {
	ms := clock.Milli(now)
	p.mu.Lock()
	if v := p.overtaken; v.Epoch != 0 && v.Epoch >= p.epoch {
		p.floor = max(p.floor, v.Epoch+1)
	}
	p.overtaken = record.Version{}
	p.mu.Unlock()
	if p.epoch != 0 && p.epoch >= p.floor {
		if ms < p.epoch {
			return fault.New(fault.Unavailable, "The clock says %s, before the own log began (%s). Set it right.",
				now.Format(time.RFC3339), clock.FromMilli(p.epoch).Format(time.RFC3339))
		}
		return nil
	}
	if ms <= p.floor {
		return fault.New(fault.Unavailable, "The clock says %s, before something that was signed already (%s). Set it right.", now.Format(time.RFC3339), clock.FromMilli(p.floor).Format(time.RFC3339))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.epoch, p.head, p.tree = ms, nil, record.Tree{}
	p.seq, p.logStart, p.summary, p.unsure = 0, 1, summaryOf{}, true
	for _, e := range p.entries {
		e.content = record.Hash{}
	}
	return nil
}

// compareAgents puts all agents with a published record that differs from the directory into p.todo.
func (p *Publisher) compareAgents(ctx context.Context, now time.Time) error {
	seen := make(map[string]bool, len(p.entries))
	p.todo = nil
	origin := p.cfg.Signer.Origin()
	err := p.cfg.Source.AllAgents(ctx, func(a hub.Agent) bool {
		if p.hidden(a) != "" {
			return ctx.Err() == nil
		}
		r := p.describe(ctx, &a, origin, now)
		if e := p.entries[r.ID]; e == nil || e.deleted || e.content != contentOf(r) {
			p.todo = append(p.todo, a.ID)
		}
		seen[r.ID] = true
		return ctx.Err() == nil
	})
	if p.cfg.Packages != nil {
		for _, r := range p.cfg.Packages.Records() {
			if e := p.entries[r.ID]; e == nil || e.deleted || e.content != contentOf(r) {
				p.todo = append(p.todo, agentID(r.ID))
			}
			seen[r.ID] = true
		}
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("compare the directory with what is published: %w", err)
	}
	for local, e := range p.entries {
		if !e.deleted && !seen[local] {
			p.todo = append(p.todo, agentID(local))
		}
	}
	p.unsure = false
	return nil
}

// describe returns the record of an agent without the header, with the package that it runs.
func (p *Publisher) describe(ctx context.Context, a *hub.Agent, origin string, now time.Time) *record.Agent {
	r, _ := translate.Record(*a, origin, now)
	if p.cfg.Packages != nil && a.Kind == hub.Wasm {
		r.Runs = p.cfg.Packages.RunOf(ctx, a.ID)
	}
	return r
}

// bodyOf returns the record without the header that this portal publishes under an id: of an agent, nil if it does not
// exist, or a package. It is nil if nothing is published.
func (p *Publisher) bodyOf(ctx context.Context, id string, a *hub.Agent, now time.Time) (r *record.Agent) {
	switch {
	case a != nil && p.hidden(*a) == "":
		return p.describe(ctx, a, p.cfg.Signer.Origin(), now)
	case a == nil && p.cfg.Packages != nil:
		return p.cfg.Packages.Record(translate.LocalID(id))
	}
	return r
}

// hidden returns the reason why an agent is not published, as a sentence for its owner; "" if it is.
func (p *Publisher) hidden(a hub.Agent) string {
	switch {
	case a.Status.Held:
		return "The operator of this portal withdrew it."
	case a.Status.State == hub.Withdrawn:
		return "It is withdrawn."
	case a.Status.State == hub.StatusDraft:
		return "It is a draft."
	case a.Visibility != hub.Public:
		return "It is " + string(a.Visibility) + "; only public agents are published."
	case a.Kind == hub.Builtin:
		return "It is part of this portal. Every portal has its own built-in agents."
	case !translate.Exportable(a):
		return "It is not an agent of this portal."
	case p.cfg.Policy != nil && !p.cfg.Policy.Exports(a.Tags(), a.Languages):
		return "The operator of this portal does not publish agents like this one."
	}
	return ""
}
