package federation

import (
	"context"
	"fmt"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/record"
)

// Word is an attestation: the verdict of one portal about another.
type Word struct {
	By, Subject     record.PortalID
	Verdict, Reason string
	Issued, Expires time.Time
	version         record.Version // version of the record; a newer one replaces it
}

const (
	// maxWords is about how many attestations are kept in memory, read in pages of readAtOnce; maxWordsOf is
	// how many are kept about one portal. Attestations by pinned and followed portals are kept beyond that.
	maxWords   = 50_000
	maxWordsOf = 200
	readAtOnce = 500
)

// readWords reads new attestations and fork proofs from the replica or, with all, all of them again.
func (p *Peers) readWords(ctx context.Context, all bool) error {
	p.mu.RLock()
	after := p.wordsTo
	p.mu.RUnlock()
	if all {
		after = 0
	}
	var said []Word
	var accused []record.PortalID
	for len(said) < maxWords {
		list, err := p.cfg.Replica.Others(ctx, []record.Type{record.TypeAttest, record.TypeFork}, after, readAtOnce)
		if err != nil {
			return fmt.Errorf("read attestations: %w", err)
		}
		for _, row := range list {
			after = max(after, row.Number)
			r, err := record.Open(p.cfg.Signer.Network(), row.Wire)
			if err != nil {
				continue // The gate stored only well-formed records, so this one belongs to another network.
			}
			switch b := r.Body.(type) {
			case *record.Fork:
				accused = append(accused, b.Subject)
			case *record.Attest:
				said = append(said, Word{By: r.Portal, Subject: b.Subject, Verdict: b.Verdict, Reason: b.Reason,
					Issued: clock.FromMilli(r.Issued), Expires: clock.FromMilli(r.Expires), version: r.Version()})
			}
		}
		if len(list) < readAtOnce {
			break
		}
	}
	p.mu.Lock()
	if all {
		clear(p.words)
	}
	p.wordsTo = after
	for _, w := range said {
		p.keepWord(w)
	}
	if all || len(said) > 0 {
		p.reviewState(clock.Now())
	}
	p.mu.Unlock()
	for _, id := range accused {
		p.checkConflict(ctx, id)
	}
	return nil
}

// keepWord stores a statement unless there is a newer one by the same author about the same portal.
// Statements beyond the limits are dropped. The caller holds mu.
func (p *Peers) keepWord(w Word) {
	of := p.words[w.Subject]
	old, ok := of[w.By]
	if ok && old.version.Compare(w.version) >= 0 {
		return
	}
	if !ok && len(of) >= maxWordsOf && !p.isTrusted(w.By) {
		return
	}
	if of == nil {
		// A limit on subjects, because statements may be about portals that are unknown here.
		if len(p.words) >= maxPeers && !p.isTrusted(w.By) {
			return
		}
		of = make(map[record.PortalID]Word)
		p.words[w.Subject] = of
	}
	of[w.By] = w
}

// checkConflict reads from the replica whether a portal is quarantined, and updates its entry.
func (p *Peers) checkConflict(ctx context.Context, id record.PortalID) {
	if p.cfg.Replica == nil {
		return
	}
	c, err := p.cfg.Replica.Quarantined(ctx, id)
	if err != nil {
		p.cfg.Log.Warn("look whether a portal is quarantined", "portal", id, "error", err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.entries[string(id)]; e != nil && e.Quarantined != (c != nil) {
		e.Quarantined = c != nil
		p.markDirty(e, clock.Now())
		p.wakeRun()
	}
}

// checkAllConflicts is checkConflict for all portals, because the proof against one may arrive from another.
func (p *Peers) checkAllConflicts(ctx context.Context) {
	ids, err := p.cfg.Replica.Convicted(ctx)
	if err != nil {
		p.cfg.Log.Warn("look which portals are quarantined", "error", err)
		return
	}
	convicted := make(map[string]bool, len(ids))
	for _, id := range ids {
		convicted[string(id)] = true
	}
	now := clock.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, e := range p.entries {
		if e.Quarantined != convicted[key] {
			e.Quarantined = convicted[key]
			p.markDirty(e, now)
			p.wakeRun()
		}
	}
}
